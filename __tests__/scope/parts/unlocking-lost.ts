import { describe, expect, it } from '@jest/globals';
import { type Lease, NotLockOwnerError, type RedisLock } from '../../../lib';
import type { LockFixture } from '../../contract/lock-fixture';
import { expectLost, freeze, lose, steal } from '../probes';

export function unlockingLost(fixture: LockFixture): void {
  describe('unlock of the lock after a loss', () => {
    it('tells of the loss first and leaves a later holder alone, whom the next unlock is about', async () => {
      const lock = fixture.registry().obtain('key');
      await lose(fixture, await lock.lock());
      const later = await lock.lock();
      await expectLost(lock.unlock(), 'expired');
      await expectStillHeld(fixture, later);
      await lock.unlock();
      expect(await fixture.isInRedis('key')).toBe(false);
      await expect(lock.unlock()).rejects.toThrow(NotLockOwnerError);
    });

    it('tells of it where there is no later holder, once', async () => {
      const lock = fixture.registry().obtain('key');
      const theirs = await steal(fixture, await lock.lock());
      await expectLost(lock.unlock(), 'stolen');
      await expect(lock.unlock()).rejects.toThrow(NotLockOwnerError);
      await expectStillHeld(fixture, theirs);
      await theirs.unlock();
    });

    it('tells of a loss that no timer has noticed yet (P5)', async () => {
      const lock = fixture.registry().obtain('key');
      await lock.lock({ ttl: 100 });
      freeze(150);
      await expectLost(lock.unlock(), 'expired');
    });

    it('tells every one of several losses, before it is about the holder of now', async () => {
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

    it('does not tell again what the lease itself has told', async () => {
      const lock = fixture.registry().obtain('key');
      const [told, disposed, untold] = [await lockAndLose(fixture, lock), await lockAndLose(fixture, lock), 2];
      for (let i = 0; i < untold; i++) await lockAndLose(fixture, lock);
      await expectLost(told.unlock(), 'expired');
      await disposed[Symbol.asyncDispose]();
      const later = await lock.lock();
      for (let i = 0; i < untold; i++) await expectLost(lock.unlock(), 'expired');
      await expectStillHeld(fixture, later);
      await lock.unlock();
      await expect(lock.unlock()).rejects.toThrow(NotLockOwnerError);
    });

    it('says nothing of the loss of a run, whose own promise tells it', async () => {
      const lock = fixture.registry().obtain('key');
      await expectLost(
        lock.run((lease) => lose(fixture, lease)),
        'expired',
      );
      await expect(lock.unlock()).rejects.toThrow(NotLockOwnerError);
    });

    it('never gives a later holder’s lease back for an earlier one, however many were lost', async () => {
      const lock = fixture.registry().obtain('key');
      for (let i = 0; i < 20; i++) await lose(fixture, await lock.lock());
      const later = await lock.lock();
      for (let i = 0; i < 20; i++) {
        await lock.unlock().catch(() => undefined);
        await expectStillHeld(fixture, later);
      }
      await later.unlock();
    });

    it('remembers a loss through many holders who came and went, and gave back by their leases', async () => {
      const lock = fixture.registry().obtain('key');
      await lose(fixture, await lock.lock());
      for (let i = 0; i < 20; i++) await (await lock.lock()).unlock();
      const later = await lock.lock();
      await expectLost(lock.unlock(), 'expired');
      await expectStillHeld(fixture, later);
      await lock.unlock();
    });

    it('leaves a later holder alone when the registry has forgotten the lock meanwhile', async () => {
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
