import { describe, expect, it } from '@jest/globals';
import { type Lease, NotLockOwnerError, type RedisLock } from '../../../lib';
import type { LockFixture } from '../../contract/lock-fixture';
import { block } from '../../support/block';
import { expectLost, lose } from '../probes';

export function unlockingLost(fixture: LockFixture): void {
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
