import { expect, it } from '@jest/globals';
import type { DistributedLock, Lease, LockLostError, LockOptions } from '../../lib';
import { reliable, SLACK } from '../contract/timing';
import { block } from '../support/block';
import { machineDelay } from '../support/machine-delay';
import { describeReal } from '../support/redis';
import { expectLost, SCOPE_TYPES, ScopeFixture } from './scope-fixture';

const reenter: Record<string, (lock: DistributedLock, options: LockOptions) => Promise<unknown>> = {
  run: (lock, options) => lock.run(() => undefined, options),
  lock: async (lock, options) => (await lock.lock(options)).unlock(),
  tryLock: async (lock, options) => (await lock.tryLock(options))?.unlock(),
};

describeReal.each(SCOPE_TYPES)('In the scope of a %s lock', (lockType) => {
  const scope = ScopeFixture.install(lockType);

  it('In a scope, a lease that is lost admits no re-entry: run, lock and tryLock reject, send nothing, and make no new acquisition', async () => {
    const { spy, lock } = scope.spied();
    const run = lock.run(async (lease) => {
      await scope.lose(lease);
      const before = spy.sent;
      const entering = lock.run(() => scope.enter('never'));
      await expectLost(entering, 'expired');
      await expectLost(lock.lock(), 'expired');
      await expectLost(lock.tryLock(), 'expired');
      await expectLost(lock.lock({ ttl: 600_000, waitTime: 1_000 }), 'expired');
      expect(spy.sent).toBe(before);
      expect(lock.isAcquiredInThisProcess).toBe(false);
      expect(await scope.isInRedis('key')).toBe(false);
    });
    await expectLost(run, 'expired');
    expect(scope.entered).toEqual([]);
  });

  it('In a scope, a lease that is lost makes every level that was inside reject with the result of its own task', async () => {
    const results: unknown[] = [];
    const descend = async (level: number, lease: Lease): Promise<number> => {
      if (level === 3) await scope.lose(lease);
      else {
        await scope.lock
          .run((nested) => descend(level + 1, nested))
          .catch((error: LockLostError) => results.push(error.result));
      }
      return level;
    };
    await expect(scope.lock.run((lease) => descend(0, lease))).rejects.toMatchObject({
      result: 0,
      reason: 'expired',
    });
    expect(results).toEqual([3, 2, 1]);
  });

  it('In a scope, a lease that is lost to another process is lost on every level, and the new holder is not affected', async () => {
    const run = scope.lock.run((outer) =>
      scope.lock.run(async (middle) => {
        await scope.admin.del(scope.nameOf('key'));
        const thief = await scope.theirs.lock({ ttl: 60_000 });
        await expectLost(middle.renew(), 'stolen');
        for (const lease of [outer, middle]) {
          expect(lease.remaining).toBe(0);
          expect(() => lease.assertHeld()).toThrow(expect.objectContaining({ reason: 'stolen' }));
        }
        await expectLost(scope.lock.lock(), 'stolen');
        return thief;
      }),
    );
    const error = (await run.catch((reason: unknown) => reason)) as LockLostError;
    expect(error.reason).toBe('stolen');
    const thief = error.result as Lease;
    await scope.expectStillHeld(thief);
    await thief.unlock();
  });

  it('In a scope, a lease that is lost by its ttl is detected at once after a pause of the process, before any timer has run (P5)', async () => {
    const { spy, lock } = scope.spied();
    const run = lock.run(
      async () => {
        const nested = await lock.lock();
        const before = spy.sent;
        block(600);
        expect(nested.remaining).toBe(0);
        const entering = lock.run(() => 'never');
        await Promise.all([expectLost(entering, 'expired'), expectLost(lock.tryLock(), 'expired')]);
        expect(spy.sent).toBe(before);
      },
      { ttl: 500 },
    );
    await expectLost(run, 'expired');
  });

  it('In a scope, a lease that is lost is detected by a nested call with a longer ttl: its task is not called, and the turn is free', async () => {
    const run = scope.lock.run(
      async () => {
        await scope.admin.del(scope.nameOf('key'));
        const entering = scope.lock.run(() => scope.enter('never'), { ttl: 600_000 });
        await expectLost(entering, 'expired');
        await expectLost(scope.lock.tryLock(), 'expired');
        return 'result';
      },
      { ttl: 30_000 },
    );
    await expect(run).rejects.toMatchObject({ reason: 'expired', result: 'result' });
    expect(scope.entered).toEqual([]);
  });

  it.each(Object.entries(reenter))(
    'A nested call with a ttl that is longer extends the lease, also beyond the nested %s',
    async (_, enter) => {
      await scope.lock.run(
        async (lease) => {
          await enter(scope.lock, { ttl: 600_000 });
          expect(lease.remaining).toBeGreaterThan(reliable(600_000) - SLACK - machineDelay());
          expect(await scope.ttlOf('key')).toBeGreaterThan(600_000 - SLACK - machineDelay());
        },
        { ttl: 30_000 },
      );
    },
  );

  it.each(Object.entries(reenter))(
    'A nested call with a ttl that is shorter, or the default, does not change the lease, and sends nothing: %s',
    async (_, enter) => {
      const { spy, lock } = scope.spied({ expireAfter: 600_000 });
      await lock.run(
        async (lease) => {
          const before = spy.sent;
          await enter(lock, { ttl: 1_000 });
          await enter(lock, { ttl: 1_000 });
          await enter(lock, {});
          expect(spy.sent).toBe(before);
          expect(lease.remaining).toBeLessThanOrEqual(60_000);
          expect(lease.remaining).toBeGreaterThan(reliable(60_000) - SLACK - machineDelay());
          expect(await scope.ttlOf('key')).toBeGreaterThan(60_000 - SLACK - machineDelay());
        },
        { ttl: 60_000 },
      );
    },
  );
});
