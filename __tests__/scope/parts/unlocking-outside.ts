import { describe, expect, it } from '@jest/globals';
import { NotLockOwnerError } from '../../../lib';
import type { LockFixture } from '../../contract/lock-fixture';
import { spyOn } from '../../support/spied-client';
import { Gate } from '../gate';
import { Sections } from '../sections';

export function unlockingOutside(fixture: LockFixture): void {
  describe('unlock of the lock outside any scope', () => {
    it('is refused, and changes nothing in Redis, when nothing was acquired, or it was released already', async () => {
      const spy = spyOn(fixture.clients[0]);
      const lock = fixture.registryOn(spy).obtain('key');
      const held = await fixture.otherRegistry().obtain('key').lock({ ttl: 60_000 });
      await expect(lock.unlock()).rejects.toMatchObject({ code: 'ERR_NOT_LOCK_OWNER', key: 'key' });
      expect(spy.sent).toBe(0);
      held.assertHeld();
      expect(await fixture.ttlOf('key')).toBeGreaterThan(30_000);
      await held.unlock();
      await lock.lock();
      await lock.unlock();
      const next = await fixture.otherRegistry().obtain('key').lock({ ttl: 60_000 });
      const before = spy.sent;
      await expect(lock.unlock()).rejects.toThrow(NotLockOwnerError);
      expect(spy.sent).toBe(before);
      next.assertHeld();
      expect(await fixture.ttlOf('key')).toBeGreaterThan(30_000);
      await next.unlock();
    });

    it('is refused while a run holds the lock, in this process or in another', async () => {
      const [lock, theirs] = [fixture.registry().obtain('key'), fixture.otherRegistry().obtain('key')];
      const [inside, refused] = [new Gate(), new Gate()];
      const holder = lock.run(async (lease) => {
        // The scope also has a nested lease, which a call outside must not release.
        const hold = await lock.lock();
        inside.open();
        await refused.opened;
        lease.assertHeld();
        hold.assertHeld();
        await hold.unlock();
      });
      await inside.opened;
      await expect(lock.unlock()).rejects.toThrow(NotLockOwnerError);
      await expect(theirs.unlock()).rejects.toThrow(NotLockOwnerError);
      expect(await fixture.isInRedis('key')).toBe(true);
      refused.open();
      await holder;
    });

    it('can be mixed with the unlock of leases by several callers: none releases the lease of another', async () => {
      const lock = fixture.registry().obtain('key');
      const sections = new Sections(fixture.oracle());
      const byLease = async (name: string) => {
        const lease = await lock.lock();
        await sections.enter(name, () => lease.assertHeld());
        await lease.unlock();
        await lease.unlock();
      };
      const byLock = async (name: string) => {
        const lease = await lock.lock();
        await sections.enter(name, () => lease.assertHeld());
        await lock.unlock();
      };
      const byBlock = async (name: string) => {
        await using lease = await lock.lock();
        await sections.enter(name, () => lease.assertHeld());
      };
      const byRun = (name: string) => lock.run((lease) => sections.enter(name, () => lease.assertHeld()));
      const names = Array.from({ length: 16 }, (_, i) => `${i}`);
      const styles = [byLease, byLock, byBlock, byRun];
      await Promise.all(names.map((name, i) => styles[i % styles.length]?.(name)));
      expect([...sections.entered].sort()).toEqual([...names].sort());
      expect(sections.violations).toEqual([]);
      await expect(lock.unlock()).rejects.toThrow(NotLockOwnerError);
      expect(await fixture.isInRedis('key')).toBe(false);
    });

    it('is refused to the second of two callers that release one lease at the same time', async () => {
      const lock = fixture.registry().obtain('key');
      await lock.lock();
      const [first, second] = await Promise.allSettled([lock.unlock(), lock.unlock()]);
      expect(first.status).toBe('fulfilled');
      expect(second).toMatchObject({ status: 'rejected', reason: { code: 'ERR_NOT_LOCK_OWNER' } });
      expect(await fixture.isInRedis('key')).toBe(false);
    });
  });
}
