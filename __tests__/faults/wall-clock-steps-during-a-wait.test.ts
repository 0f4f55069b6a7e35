import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, expect, it, jest } from '@jest/globals';
import { LOCK_TYPES } from '../support/lock-types';
import { describePrivate, PrivateRedis } from '../support/private-redis';
import { uniqueKey } from '../support/redis';
import { createRegistry } from '../support/test-registry';
import { until } from '../support/until';

describePrivate('The wall clock steps while a caller waits', () => {
  const redis = PrivateRedis.install();

  afterEach(() => {
    jest.restoreAllMocks();
  });

  it.each(LOCK_TYPES.flatMap((lockType) => [200, -200, 3_600_000].map((step) => ({ lockType, step }))))(
    'P12: a fresh lease of a $lockType lock is held, after a step of $step ms',
    async ({ lockType, step }) => {
      const registryKey = uniqueKey('step');
      const [holder, waiter] = [
        createRegistry(await redis.connect(), { registryKey, lockType }).registry,
        createRegistry(await redis.connect(), { registryKey, lockType }).registry,
      ];
      const held = await holder.obtain('key').lock();
      const waiting = waiter.run('key', async (lease) => {
        lease.assertHeld();
        const { remaining } = lease;
        // A fair lock is first granted for a second, and its first renewal is sent at once.
        await until(() => lease.remaining > 10_000 || lease.signal.aborted);
        return { remaining, aborted: lease.signal.aborted };
      });
      waiting.catch(() => undefined); // it settles below
      await sleep(200); // it was refused, and waits
      const now = Date.now;
      jest.spyOn(Date, 'now').mockImplementation(() => now() + step);
      await held.unlock();
      const { remaining, aborted } = await waiting;
      expect(remaining).toBeGreaterThan(0);
      expect(aborted).toBe(false);
    },
  );
});
