import { describe, expect, it } from '@jest/globals';
import { NotLockOwnerError } from '../../../lib';
import type { LockFixture } from '../../contract/lock-fixture';
import { spyOn } from '../../support/spied-client';
import { Gate } from '../gate';
import { expectLost, isExcluded, lose } from '../probes';

export function unlockingInside(fixture: LockFixture): void {
  describe('unlock of the lock inside a scope', () => {
    it.each(['lock', 'tryLock'] as const)(
      'gives back what the scope took with %s, and the run goes on',
      async (take) => {
        const spy = spyOn(fixture.clients[0]);
        const [lock, theirs] = [fixture.registryOn(spy).obtain('key'), fixture.otherRegistry().obtain('key')];
        await lock.run(async (outer) => {
          const before = spy.sent;
          const hold = await lock[take]();
          expect(await lock.tryLock()).toBeNull();
          await lock.unlock();
          expect(hold?.remaining).toBe(0);
          expect(await isExcluded(lock)).toBe(false);
          expect(spy.sent).toBe(before);
          outer.assertHeld();
          expect(await isExcluded(theirs)).toBe(true);
        });
        expect(await fixture.isInRedis('key')).toBe(false);
      },
    );

    it('is refused when the scope acquired nothing: it does not release the run itself', async () => {
      const spy = spyOn(fixture.clients[0]);
      const [lock, theirs] = [fixture.registryOn(spy).obtain('key'), fixture.otherRegistry().obtain('key')];
      await lock.run(
        async (outer) => {
          const before = spy.sent;
          await expect(lock.unlock()).rejects.toMatchObject({ code: 'ERR_NOT_LOCK_OWNER', key: 'key' });
          await lock.run(() => expect(lock.unlock()).rejects.toThrow(NotLockOwnerError));
          await lock.lock();
          await lock.unlock();
          await expect(lock.unlock()).rejects.toThrow(NotLockOwnerError);
          expect(spy.sent).toBe(before);
          outer.assertHeld();
          expect(await fixture.ttlOf('key')).toBeGreaterThan(30_000);
          expect(await isExcluded(theirs)).toBe(true);
        },
        { ttl: 60_000 },
      );
    });

    it('releases the nested lease of that scope only, not of an outer or inner one', async () => {
      const lock = fixture.registry().obtain('key');
      const other = fixture.registry().obtain('other');
      await lock.run(async () => {
        const ofOuter = await other.lock();
        await lock.run(async () => {
          await expect(other.unlock()).rejects.toThrow(NotLockOwnerError);
          ofOuter.assertHeld();
          await lock.lock();
        });
        // The nested lease that the inner scope did not release ended with it.
        await expect(lock.unlock()).rejects.toThrow(NotLockOwnerError);
        expect(await fixture.isInRedis('other')).toBe(true);
        await other.unlock();
        expect(await fixture.isInRedis('other')).toBe(false);
      });
    });

    it('releases another lock that the scope acquired, in Redis too, but not one from before the scope', async () => {
      const registry = fixture.registry();
      const [before, within] = [registry.obtain('before'), registry.obtain('within')];
      const early = await before.lock();
      await registry.run('key', async () => {
        await expect(before.unlock()).rejects.toThrow(NotLockOwnerError);
        await within.lock();
        expect(await fixture.isInRedis('within')).toBe(true);
        await within.unlock();
        expect(await fixture.isInRedis('within')).toBe(false);
      });
      early.assertHeld();
      expect(await fixture.isInRedis('before')).toBe(true);
      await before.unlock();
      expect(await fixture.isInRedis('before')).toBe(false);
    });

    it('reports a loss once, and frees the turn', async () => {
      const lock = fixture.registry().obtain('key');
      const run = lock.run(async (lease) => {
        await lock.lock();
        await lose(fixture, lease);
        await expectLost(lock.unlock(), 'expired');
        await expect(lock.unlock()).rejects.toThrow(NotLockOwnerError);
      });
      await expectLost(run, 'expired');
      await expect(lock.unlock()).rejects.toThrow(NotLockOwnerError);
    });

    it('reports the loss of another lock first, and does not affect a later lease of the scope', async () => {
      const registry = fixture.registry();
      const other = registry.obtain('other');
      await registry.run('key', async () => {
        await lose(fixture, await other.lock());
        const later = await other.lock();
        await expectLost(other.unlock(), 'expired');
        later.assertHeld();
        expect(await fixture.isInRedis('other')).toBe(true);
        await other.unlock();
        expect(await fixture.isInRedis('other')).toBe(false);
        await expect(other.unlock()).rejects.toThrow(NotLockOwnerError);
      });
    });

    it('by work that outlives the scope never releases a later lease of another caller', async () => {
      const lock = fixture.registry().obtain('key');
      const [scopeOver, taken] = [new Gate(), new Gate()];
      let work: Promise<unknown> = Promise.resolve();
      await lock.run(async () => {
        await lock.lock();
        work = taken.opened
          .then(() => lock.unlock())
          .then(
            () => undefined,
            (error: unknown) => error,
          );
        scopeOver.open();
      });
      await scopeOver.opened;
      const later = await lock.lock();
      taken.open();
      await work;
      later.assertHeld();
      expect(await fixture.isInRedis('key')).toBe(true);
      await later.unlock();
    });

    it('by work that outlives the scope releases another lock that it acquired in the scope', async () => {
      const registry = fixture.registry();
      const other = registry.obtain('other');
      const scopeOver = new Gate();
      let work: Promise<unknown> = Promise.resolve();
      await registry.run('key', async () => {
        await other.lock();
        work = scopeOver.opened.then(() => other.unlock());
        work.catch(() => undefined); // checked below
      });
      scopeOver.open();
      await work;
      expect(await fixture.isInRedis('other')).toBe(false);
    });
  });
}
