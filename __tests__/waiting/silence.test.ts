import { setTimeout as sleep } from 'node:timers/promises';
import { expect, it } from '@jest/globals';
import { LOCK_TYPES } from '../support/lock-types';
import { describePrivate, PrivateRedis } from '../support/private-redis';
import { uniqueKey } from '../support/redis';
import { createRegistry } from '../support/test-registry';
import { until } from '../support/until';

const WAIT_TIME = 4_000;

describePrivate('A server that falls silent while callers wait', () => {
  const redis = PrivateRedis.install();

  it.each(LOCK_TYPES)(
    'is an error for the callers of a %s lock after `unavailableAfter`, and not contention',
    async (lockType) => {
      const options = { registryKey: uniqueKey('silence'), lockType, commandTimeout: 300, unavailableAfter: 600 };
      const holder = createRegistry(await redis.connect(), options);
      const waiter = createRegistry(await redis.connect(), options);
      const lease = await holder.registry.obtain('key').lock({ ttl: 60_000 });
      const outcomes: unknown[] = [];
      const lock = waiter.registry.obtain('key');
      for (const waiting of [lock.tryLock({ waitTime: WAIT_TIME }), lock.lock()]) {
        waiting.then(
          (outcome) => outcomes.push(outcome),
          (error) => outcomes.push(error),
        );
      }
      await sleep(300); // both have been refused, and wait
      redis.freeze();
      try {
        await until(() => outcomes.length === 2, { within: WAIT_TIME + 1_500 });
      } finally {
        redis.thaw();
      }
      for (const outcome of outcomes) expect(outcome).toMatchObject({ name: 'CannotAcquireLockError' });
      expect(lease.signal.aborted).toBe(false);
    },
  );
});
