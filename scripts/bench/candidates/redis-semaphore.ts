import type { Mutex as RedisMutex } from 'redis-semaphore';
import type { Address, NodeCandidate } from './candidate';
import { ioRedis, nodeRedis } from './clients';

type RedisClient = ConstructorParameters<typeof RedisMutex>[0];

/** Its mutex object is one owner, so each acquisition creates a new one. */
function redisSemaphore(
  id: string,
  title: string,
  driver: string,
  connect: (to: Address) => Promise<RedisClient>,
): NodeCandidate {
  return {
    id,
    title,
    kind: 'polling',
    isVariant: driver === 'redis',
    packages: ['redis-semaphore', driver],
    async open({ address, ttl }) {
      const { Mutex } = await import('redis-semaphore');
      const client = await connect(address);
      // Default: gives up after ten seconds.
      const object = (key: string) =>
        new Mutex(client, key, { lockTimeout: ttl, acquireTimeout: Number.POSITIVE_INFINITY });
      const acquire = async (key: string) => {
        const mutex = object(key);
        await mutex.acquire();
        return () => mutex.release();
      };
      return { acquire, keep: acquire, object };
    },
  };
}

/** The ioredis commands that the mutex uses, implemented with node-redis. */
async function shim(address: Address): Promise<RedisClient> {
  const client = await nodeRedis(address);
  const split = (numberOfKeys: number, rest: string[]) => ({
    keys: rest.slice(0, numberOfKeys),
    arguments: rest.slice(numberOfKeys).map(String),
  });
  const commands = {
    set: (key: string, value: string, _px: 'PX', ttl: number, _nx: 'NX') =>
      client.set(key, value, { condition: 'NX', expiration: { type: 'PX', value: ttl } }),
    evalsha: (sha1: string, keys: number, ...rest: string[]) => client.evalSha(sha1, split(keys, rest)),
    eval: (source: string, keys: number, ...rest: string[]) => client.eval(source, split(keys, rest)),
  };
  return commands as unknown as RedisClient;
}

export const redisSemaphores = [
  redisSemaphore('redis-semaphore', 'redis-semaphore (ioredis)', 'ioredis', ioRedis),
  redisSemaphore('redis-semaphore-node-redis', 'redis-semaphore (node-redis)', 'redis', shim),
];
