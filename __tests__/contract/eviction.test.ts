import { expect, it } from '@jest/globals';
import { RedisLockRegistry } from '../../lib';
import { Oracle } from '../support/oracle';
import { createRealClient, describeReal, uniqueKey } from '../support/redis';

describeReal('A lock that was evicted from the cache', () => {
  it('still works, and excludes the new object of its key, and the other way round', async () => {
    const client = await createRealClient();
    const registry = new RedisLockRegistry(client, { registryKey: uniqueKey(), cacheCapacity: 1 });
    const evicted = registry.obtain('key');
    registry.obtain('another'); // takes the only place in the cache
    const fresh = registry.obtain('key');
    expect(fresh).not.toBe(evicted);

    const lease = await evicted.lock();
    expect(await fresh.tryLock()).toBeNull();
    expect(fresh.isAcquiredInThisProcess).toBe(true);
    await lease.unlock();

    const next = await fresh.lock();
    expect(await evicted.tryLock()).toBeNull();
    expect(evicted.isAcquiredInThisProcess).toBe(true);
    await evicted.unlock(); // one lock, two objects
    expect(next.remaining).toBe(0);
    await registry.close();
  });

  it('excludes others while locks are obtained, evicted and run concurrently', async () => {
    const registry = new RedisLockRegistry(await createRealClient(), { registryKey: uniqueKey(), cacheCapacity: 40 });
    const keys = ['a', 'b', 'c'];
    const oracleClient = await createRealClient();
    const oracles = keys.map(() => new Oracle(oracleClient));
    await Promise.all(
      Array.from({ length: 30 }, async (_, i) => {
        const lock = registry.obtain(keys[i % 3] as string);
        for (let round = 0; round < 5; round++) {
          registry.expireUnusedOlderThan(-1);
          registry.obtain(`filler ${i} ${round}`);
          await lock.run(() => oracles[i % 3]?.section(() => undefined));
        }
      }),
    );
    expect(oracles.flatMap(({ violations }) => violations)).toEqual([]);
    expect(oracles.map(({ entered }) => entered)).toEqual([50, 50, 50]);
    await registry.close();
  });
});
