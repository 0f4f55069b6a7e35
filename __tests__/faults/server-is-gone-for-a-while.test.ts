import { setTimeout as pause } from 'node:timers/promises';
import { expect, it } from '@jest/globals';
import { LOCK_TYPES } from '../support/lock-types';
import { machineDelay } from '../support/machine-delay';
import { describePrivate, PrivateRedis } from '../support/private-redis';
import { untilQuiet } from '../support/server-load';
import { createRegistry, elapsed } from '../support/test-registry';

const UNAVAILABLE_AFTER = 4_000;

// A waiter notices the silence with its first question after the outage began: polls are a second apart at the most.
const NOTICED = 1_000;

describePrivate.each(LOCK_TYPES)('the server is gone while callers wait for a %s lock', (lockType) => {
  const options = { lockType, unavailableAfter: UNAVAILABLE_AFTER, commandTimeout: 1_000, idleBetweenTries: 100 };

  async function waiting() {
    const redis = await PrivateRedis.start('--appendonly', 'yes', '--appendfsync', 'always');
    const registryKey = 'gone';
    const holder = createRegistry(await redis.connect(), { ...options, registryKey });
    const lease = await holder.registry.obtain('key').lock({ ttl: 600_000 });
    const { registry } = createRegistry(await redis.connect(), { ...options, registryKey });
    const calls = [1, 2, 3].map(() => registry.obtain('key').lock());
    const outcomes = Promise.allSettled(calls);
    await untilQuiet(await redis.connect());
    await redis.kill();
    return { redis, lease, calls, outcomes, goneAt: performance.now() };
  }

  it('P1: for shorter than unavailableAfter: they go on waiting, and get the lock in turn', async () => {
    const { redis, lease, calls } = await waiting();
    await pause(UNAVAILABLE_AFTER / 4);
    await redis.revive();
    await pause(UNAVAILABLE_AFTER);
    await lease.unlock();
    for (const call of calls) await (await call).unlock();
  });

  it('P1: for longer: each rejects at that time', async () => {
    const { outcomes, goneAt } = await waiting();
    await elapsed(outcomes);
    expect(performance.now() - goneAt).toBeGreaterThan(UNAVAILABLE_AFTER - NOTICED);
    expect(performance.now() - goneAt).toBeLessThan(UNAVAILABLE_AFTER + 2 * NOTICED + machineDelay());
    for (const outcome of await outcomes) {
      expect(outcome).toMatchObject({ status: 'rejected', reason: { name: 'CannotAcquireLockError' } });
    }
  });
});
