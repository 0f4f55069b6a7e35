import { expect, it } from '@jest/globals';
import { RedisLockRegistry } from '../../lib';
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
});
