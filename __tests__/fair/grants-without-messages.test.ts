import { expect, it } from '@jest/globals';
import { HoldableClient } from '../support/held-commands';
import { LOCK_TYPES } from '../support/lock-types';
import { describePrivate, PrivateRedis } from '../support/private-redis';
import { uniqueKey } from '../support/redis';
import { createRegistry } from '../support/test-registry';
import { until } from '../support/until';

const KEY = 'key';

/** ms within which a lock that nobody holds is free: a grant that nobody claims stands for a second. */
const FREE_WITHIN = 3_000;

describePrivate.each(LOCK_TYPES)('A %s lock whose waiter sent a request that is executed late', (lockType) => {
  const redis = PrivateRedis.install();

  const start = async () => {
    const registryKey = uniqueKey('no-messages');
    const other = createRegistry(await redis.connect(), { registryKey, lockType });
    const client = new HoldableClient(await redis.connect());
    const waiter = createRegistry(client, { registryKey, lockType });
    return { client, lock: waiter.registry.obtain(KEY), other: other.registry.obtain(KEY) };
  };

  const isFree = async (lock: { tryLock(): Promise<{ unlock(): Promise<void> } | null> }) => {
    const lease = await lock.tryLock();
    await lease?.unlock();
    return lease !== null;
  };

  it('is free again when the request overtook nothing but the abort of its caller', async () => {
    const { client, lock, other } = await start();
    const lease = await other.lock();
    const abort = new AbortController();
    const waiting = lock.lock({ signal: abort.signal });
    const rejected = expect(waiting).rejects.toBe('left');
    await until(() => client.answered > 1);
    const late = await client.catchNext('held');
    await lease.unlock();
    abort.abort('left');
    await rejected;
    await until(() => client.inFlight === 0);
    await late.deliver();
    await until(() => isFree(other), { within: FREE_WITHIN });
  });

  it('is free again when the request survived its connection, and the lock was granted and released meanwhile', async () => {
    const { client, lock, other } = await start();
    await other.lock({ ttl: 800 }); // never released
    const waiting = lock.lock();
    await until(() => client.answered > 1);
    const late = await client.catchNext('cut');
    const lease = await waiting;
    await lease.unlock();
    await late.deliver();
    await until(() => isFree(other), { within: FREE_WITHIN });
  });
});
