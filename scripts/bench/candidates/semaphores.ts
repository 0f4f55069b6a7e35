import { type Candidate, PERMITS } from './candidate';
import { ioRedis, nodeRedis } from './clients';

const ours: Candidate = {
  id: 'semaphore',
  title: 'ours: semaphore',
  kind: 'semaphore',
  packages: ['redis'],
  async open({ address, ttl }) {
    const { RedisLockRegistry } = (await import(
      process.env.BENCH_LIBRARY as string
    )) as unknown as typeof import('../../../lib');
    const registry = new RedisLockRegistry(await nodeRedis(address), { registryKey: 'locks', expireAfter: ttl });
    return {
      async acquire(key) {
        const lease = await registry.semaphore(key, { permits: PERMITS }).lock();
        return () => lease.unlock();
      },
    };
  },
};

const redisSemaphore: Candidate = {
  id: 'redis-semaphore-semaphore',
  title: 'redis-semaphore: Semaphore (ioredis)',
  kind: 'semaphore',
  packages: ['redis-semaphore', 'ioredis'],
  async open({ address, ttl }) {
    const { Semaphore } = await import('redis-semaphore');
    const client = await ioRedis(address);
    return {
      async acquire(key) {
        // Default: gives up after ten seconds.
        const options = { lockTimeout: ttl, acquireTimeout: Number.POSITIVE_INFINITY };
        const semaphore = new Semaphore(client, key, PERMITS, options);
        await semaphore.acquire();
        return () => semaphore.release();
      },
    };
  },
};

export const semaphores = [ours, redisSemaphore];
