import { type NodeCandidate, PERMITS } from './candidate';
import { ioRedis } from './clients';
import { ourRegistry } from './our-registry';

const ours: NodeCandidate = {
  id: 'semaphore',
  title: 'ours: semaphore',
  kind: 'semaphore',
  packages: ['redis'],
  async open(options) {
    const registry = await ourRegistry(options);
    return {
      async acquire(key) {
        const lease = await registry.semaphore(key, { permits: PERMITS }).lock();
        return () => lease.unlock();
      },
    };
  },
};

function redisSemaphore(kind: 'Semaphore' | 'MultiSemaphore'): NodeCandidate {
  return {
    id: `redis-semaphore-${kind.toLowerCase()}`,
    title: `redis-semaphore: ${kind} (ioredis)`,
    kind: 'semaphore',
    packages: ['redis-semaphore', 'ioredis'],
    async open({ address, ttl }) {
      const { Semaphore, MultiSemaphore } = await import('redis-semaphore');
      const client = await ioRedis(address);
      // Default: gives up after ten seconds.
      const options = { lockTimeout: ttl, acquireTimeout: Number.POSITIVE_INFINITY };
      return {
        async acquire(key) {
          const semaphore =
            kind === 'Semaphore'
              ? new Semaphore(client, key, PERMITS, options)
              : new MultiSemaphore(client, key, PERMITS, 1, options);
          await semaphore.acquire();
          return () => semaphore.release();
        },
      };
    },
  };
}

export const semaphores = [ours, redisSemaphore('Semaphore'), redisSemaphore('MultiSemaphore')];
