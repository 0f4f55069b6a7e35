import type { NodeCandidate } from './candidate';
import { ioRedis } from './clients';

/** Its lock object is one owner, so each acquisition creates a new one. It has no renewal. */
export const verrou: NodeCandidate = {
  id: 'verrou',
  title: '@verrou/core',
  kind: 'polling',
  packages: ['@verrou/core', 'ioredis'],
  async open({ address, ttl }) {
    const { Verrou } = await import('@verrou/core');
    const { redisStore } = await import('@verrou/core/drivers/redis');
    const connection = await ioRedis(address);
    const factory = new Verrou({ default: 'redis', stores: { redis: { driver: redisStore({ connection }) } } });
    return {
      async acquire(key) {
        const lock = factory.createLock(key, ttl);
        await lock.acquire();
        return () => lock.release();
      },
      object: (key) => factory.createLock(key, ttl),
    };
  },
};
