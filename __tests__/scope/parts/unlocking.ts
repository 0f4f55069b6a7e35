import { describe, expect, it } from '@jest/globals';
import { type Lease, NotLockOwnerError, type RedisLock } from '../../../lib';
import type { LockFixture } from '../../contract/lock-fixture';
import { block } from '../../support/block';
import { spyOn } from '../../support/spied-client';
import { expectLost, Gate, isExcluded, lose, Sections } from '../probes';

export function unlocking(fixture: LockFixture): void {
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

  describe('unlock of the lock outside any scope', () => {
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

  describe('unlock of the lock after a loss', () => {
    it('reports a loss that no timer has detected yet (P5)', async () => {
      const lock = fixture.registry().obtain('key');
      await lock.lock({ ttl: 300 });
      block(350);
      await expectLost(lock.unlock(), 'expired');
    });

    it('reports each of several losses, before it releases the current holder', async () => {
      const lock = fixture.registry().obtain('key');
      for (let i = 0; i < 3; i++) await lose(fixture, await lock.lock());
      const later = await lock.lock();
      for (let i = 0; i < 3; i++) {
        await expectLost(lock.unlock(), 'expired');
        await expectStillHeld(fixture, later);
      }
      await lock.unlock();
      expect(await fixture.isInRedis('key')).toBe(false);
      await expect(lock.unlock()).rejects.toThrow(NotLockOwnerError);
    });

    it('does not repeat a loss that the lease itself has reported', async () => {
      const lock = fixture.registry().obtain('key');
      const [reported, disposed, unreported] = [await lockAndLose(fixture, lock), await lockAndLose(fixture, lock), 2];
      for (let i = 0; i < unreported; i++) await lockAndLose(fixture, lock);
      await expectLost(reported.unlock(), 'expired');
      await disposed[Symbol.asyncDispose]();
      const later = await lock.lock();
      for (let i = 0; i < unreported; i++) await expectLost(lock.unlock(), 'expired');
      await expectStillHeld(fixture, later);
      await lock.unlock();
      await expect(lock.unlock()).rejects.toThrow(NotLockOwnerError);
    });

    it('does not report the loss of a run, which its own promise reports', async () => {
      const lock = fixture.registry().obtain('key');
      await expectLost(
        lock.run((lease) => lose(fixture, lease)),
        'expired',
      );
      await expect(lock.unlock()).rejects.toThrow(NotLockOwnerError);
    });

    it('does not affect a later holder when the lock was evicted meanwhile', async () => {
      const registry = fixture.registry();
      const forgotten = registry.obtain('key');
      await lose(fixture, await forgotten.lock());
      registry.expireUnusedOlderThan(-1);
      const later = await registry.obtain('key').lock();
      await expectLost(forgotten.unlock(), 'expired');
      await expectStillHeld(fixture, later);
      await later.unlock();
    });
  });
}

async function lockAndLose(fixture: LockFixture, lock: RedisLock): Promise<Lease> {
  const lease = await lock.lock();
  await lose(fixture, lease);
  return lease;
}

async function expectStillHeld(fixture: LockFixture, lease: Lease): Promise<void> {
  lease.assertHeld();
  expect(await fixture.isInRedis(lease.key)).toBe(true);
}
