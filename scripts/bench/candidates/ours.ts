import type { RedisLockRegistryOptions } from '../../../lib';
import type { Candidate } from './candidate';
import { nodeRedis } from './clients';

type LockType = NonNullable<RedisLockRegistryOptions['lockType']>;

/** The built package with default options, used as in the README. */
function ours(lockType: LockType): Candidate {
  return {
    id: lockType,
    title: `ours: ${lockType}`,
    kind: 'ours',
    packages: ['redis'],
    async open({ address, ttl }) {
      const { RedisLockRegistry } = (await import(
        process.env.BENCH_LIBRARY as string
      )) as unknown as typeof import('../../../lib');
      const client = await nodeRedis(address);
      const registry = new RedisLockRegistry(client, { registryKey: 'locks', lockType, expireAfter: ttl });
      const acquire = async (key: string) => {
        const lease = await registry.obtain(key).lock();
        return () => lease.unlock();
      };
      return { acquire, keep: acquire, object: (key) => registry.obtain(key) };
    },
  };
}

export const ourCandidates = [ours('spin'), ours('pub-sub'), ours('fair')];
