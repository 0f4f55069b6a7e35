import type { NodeCandidate } from './candidate';
import { nodeRedis } from './clients';

export const ourReadWrite: NodeCandidate = {
  id: 'read-write',
  title: 'ours: readWrite',
  kind: 'readWrite',
  packages: ['redis'],
  async open({ address, ttl }) {
    const { RedisLockRegistry } = (await import(
      process.env.BENCH_LIBRARY as string
    )) as unknown as typeof import('../../../lib');
    const registry = new RedisLockRegistry(await nodeRedis(address), { registryKey: 'locks', expireAfter: ttl });
    return {
      async acquire(key) {
        const lease = await registry.readWrite(key).write.lock();
        return () => lease.unlock();
      },
      async acquireShared(key) {
        const lease = await registry.readWrite(key).read.lock();
        return () => lease.unlock();
      },
    };
  },
};
