import { expect, it } from '@jest/globals';
import type { Lease, RedisLockRegistryOptions } from '../../../lib';
import { traitsOf } from '../../../lib/api/lock-types';
import { LOCK_TYPES } from '../../support/lock-types';
import { describePrivate, PrivateRedis } from '../../support/private-redis';
import { uniqueKey } from '../../support/redis';
import { scriptsRun } from '../../support/server-load';
import { createRegistry } from '../../support/test-registry';
import { until } from '../../support/until';

const KEY = 'key';

/** A subscriber that cannot subscribe: the waiter polls. */
const subscriber = { subscribe: () => Promise.reject(new Error('refused')), unsubscribe: async () => undefined };

const waiters: Record<string, Pick<RedisLockRegistryOptions, 'subscriber'>> = {
  'is notified': {},
  polls: { subscriber },
};

describePrivate.each(LOCK_TYPES)('A %s lock that some processes take with fencing, and others without', (lockType) => {
  const redis = PrivateRedis.install();

  it.each(Object.keys(waiters))(
    'A lock that some processes take with fencing, and others without gives a waiter with fencing, which %s, a token of its own, or says why there is none',
    async (how) => {
      const registryKey = uniqueKey('mixed');
      const open = async (options: Omit<RedisLockRegistryOptions, 'registryKey' | 'onWarning'>) =>
        createRegistry(await redis.connect(), { registryKey, lockType, ...options }).registry.obtain(KEY);
      const [fenced, plain] = [await open({ fencing: true, ...waiters[how] }), await open({})];
      const first = await fenced.lock();
      let last = first.fencingToken as number;
      expect(last).toBeGreaterThan(0);
      await first.unlock();
      for (let round = 0; round < 2; round++) {
        const held = await plain.lock();
        expect(held.fencingToken).toBeUndefined();
        const before = await scriptsRun(redis.admin);
        const waiting = fenced.lock().catch((error: Error) => error);
        await until(async () => (await scriptsRun(redis.admin)) > before); // it was refused, and waits
        await held.unlock();
        const outcome = await waiting;
        if (outcome instanceof Error) {
          expect(outcome.message).toMatch(/fencing/i);
          continue;
        }
        const lease = outcome as Lease;
        expect(lease.fencingToken).toBeGreaterThan(last);
        last = lease.fencingToken as number;
        await lease.unlock();
      }
    },
  );

  it('A lock that some processes take with fencing, and others without gives a waiter with fencing a token of its own, though the last one is ahead of the clock of the server (P10)', async () => {
    if (traitsOf(lockType).keepsCounter) return; // Redisson's counter is no time
    const { registry: plain, registryKey, nameOf } = createRegistry(await redis.connect(), { lockType });
    const options = { lockType, registryKey, fencing: true };
    const { registry: fenced } = createRegistry(await redis.connect(), options);
    const ahead = 2 * 1_000 * Date.now();
    await redis.admin.set(`{${nameOf(KEY)}}:fence`, String(ahead));
    const held = await plain.obtain(KEY).lock();
    const before = await scriptsRun(redis.admin);
    const waiting = fenced.obtain(KEY).lock();
    await until(async () => (await scriptsRun(redis.admin)) > before); // it was refused, and waits
    await held.unlock();
    const lease = await waiting;
    expect(lease.fencingToken).toBeGreaterThan(ahead);
    await lease.unlock();
  });
});
