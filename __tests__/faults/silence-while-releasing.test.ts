import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, expect, it } from '@jest/globals';
import { DISTINCT_TYPES } from '../support/lock-types';
import { machineDelay } from '../support/machine-delay';
import { describePrivate, PrivateRedis } from '../support/private-redis';
import { createRegistry, elapsed } from '../support/test-registry';

/** ms after which a process asks Redis before it passes its lock on. */
const STALE = 80;

/** ms; longer than a silence that still may be a slow answer. */
const SILENT = 300;

/** ms in which a call without a wait would have failed at once. */
const SHORTLY = 50;

/** ms; less than what an unlock has to be answered. */
const WAIT_TIME = 600;

describePrivate('Redis falls silent while a lease is being unlocked', () => {
  const redis = PrivateRedis.install();

  afterEach(() => redis.thaw());

  it.each(DISTINCT_TYPES.flatMap((lockType) => [0, 1].map((waiters) => ({ lockType, waiters }))))(
    'P1: to other callers of a $lockType lock that is silence and not contention, with $waiters waiters',
    async ({ lockType, waiters }) => {
      const { registry } = createRegistry(await redis.connect(), { lockType, commandTimeout: 1_000 });
      await registry.run('warm-up', () => undefined);
      const lock = registry.obtain('key');
      const lease = await lock.lock();
      // On a machine that stands still their time may be over before the others call.
      const waiting = Promise.allSettled(Array.from({ length: waiters }, () => lock.lock({ waitTime: WAIT_TIME })));
      await sleep(STALE);
      redis.freeze();
      const unlocking = lease.unlock().catch(() => undefined);
      await sleep(SILENT);
      const others = Promise.allSettled([lock.tryLock({ waitTime: 100 }), lock.lock({ waitTime: 100 })]);
      const timed = Promise.all([waiting, others]);
      // It may make an attempt of its own, which has the time of a command.
      const single = Promise.allSettled([lock.tryLock()]);
      expect(await elapsed(timed)).toBeLessThan(WAIT_TIME + machineDelay());
      for (const outcome of [...(await timed).flat(), ...(await single)]) {
        expect(outcome).toMatchObject({
          status: 'rejected',
          reason: {
            name: 'CannotAcquireLockError',
            message: expect.stringMatching(/not answer(ed)? (for|within) [1-9]\d+ ms/),
          },
        });
      }
      redis.thaw();
      await unlocking;
    },
  );

  it.each(DISTINCT_TYPES)(
    'P1: a tryLock of a %s lock waits for the answer, as for that of its own attempt',
    async (lockType) => {
      const { registry } = createRegistry(await redis.connect(), { lockType });
      await registry.run('warm-up', () => undefined);
      const lock = registry.obtain('key');
      const lease = await lock.lock();
      await sleep(STALE);
      redis.freeze();
      const unlocking = lease.unlock();
      await sleep(SILENT);
      const single = lock.tryLock();
      let isSettled = false;
      void single.finally(() => (isSettled = true)).catch(() => undefined);
      await sleep(SHORTLY);
      expect(isSettled).toBe(false);
      redis.thaw();
      await unlocking;
      await (await single)?.unlock();
    },
  );
});
