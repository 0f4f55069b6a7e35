/**
 * Compiled by `npm run typecheck`, never run: which clients fit without casts, and which do not.
 */

import {
  createClient,
  createClientPool,
  createCluster,
  createSentinel,
  RESP_TYPES,
  type RedisClientType,
  type RedisClusterType,
} from 'redis';
import * as redis5 from 'redis5';
import { RedisLockRegistry } from '../../lib';

const options = { registryKey: 'orders' };
const sentinelOptions = { name: 'locks', sentinelRootNodes: [{ host: 'localhost', port: 26_379 }] };
const clusterOptions = { rootNodes: [{ url: 'redis://localhost:7000' }] };

export const accepted = [
  // redis 6
  new RedisLockRegistry(createClient(), options),
  new RedisLockRegistry(createClient({ RESP: 2 }), options),
  new RedisLockRegistry(createClient({ RESP: 3 }), options),
  new RedisLockRegistry(createClient().withTypeMapping({ [RESP_TYPES.BLOB_STRING]: Buffer }), options),
  new RedisLockRegistry(
    createClient({
      commandOptions: { typeMapping: { [RESP_TYPES.BLOB_STRING]: Buffer, [RESP_TYPES.NUMBER]: String } },
    }),
    options,
  ),
  new RedisLockRegistry(createClient().withCommandOptions({ timeout: 100 }), options),
  new RedisLockRegistry(createClientPool(), options),
  new RedisLockRegistry(createCluster(clusterOptions), options),
  new RedisLockRegistry(createSentinel(sentinelOptions), options),
  // redis 5
  new RedisLockRegistry(redis5.createClient(), options),
  new RedisLockRegistry(redis5.createClient({ RESP: 2 }), options),
  new RedisLockRegistry(redis5.createClient({ RESP: 3 }), options),
  new RedisLockRegistry(redis5.createClient().withTypeMapping({ [redis5.RESP_TYPES.BLOB_STRING]: Buffer }), options),
  new RedisLockRegistry(redis5.createClientPool(), options),
  new RedisLockRegistry(redis5.createCluster(clusterOptions), options),
  new RedisLockRegistry(redis5.createSentinel(sentinelOptions), options),
];

/** As applications declare what they are given. */
export function declared(
  client: RedisClientType,
  fiveParameters: RedisClientType<
    Record<string, never>,
    Record<string, never>,
    Record<string, never>,
    3,
    Record<string, never>
  >,
  inferred: ReturnType<typeof createClient>,
  cluster: RedisClusterType,
  client5: redis5.RedisClientType,
  cluster5: redis5.RedisClusterType,
) {
  return [client, fiveParameters, inferred, cluster, client5, cluster5].map(
    (each) => new RedisLockRegistry(each, options),
  );
}

/** Any client will do with an adapter of a few lines; this one is made like ioredis. */
export function adapted(other: { evalsha(sha: string, keys: number, ...rest: string[]): Promise<unknown> }) {
  return new RedisLockRegistry(
    {
      eval: async () => null,
      evalSha: (sha, { keys = [], arguments: args = [] } = {}) => other.evalsha(sha, keys.length, ...keys, ...args),
    },
    options,
  );
}

export function subscribers(pool: ReturnType<typeof createClientPool>) {
  return [
    new RedisLockRegistry(pool, { ...options, lockType: 'pub-sub', subscriber: createClient() }),
    new RedisLockRegistry(pool, { ...options, lockType: 'pub-sub', subscriber: createCluster(clusterOptions) }),
    new RedisLockRegistry(pool, { ...options, lockType: 'pub-sub', subscriber: createSentinel(sentinelOptions) }),
    new RedisLockRegistry(pool, { ...options, lockType: 'pub-sub', subscriber: redis5.createClient() }),
    // @ts-expect-error: a pool has no pub/sub connection
    new RedisLockRegistry(pool, { ...options, lockType: 'pub-sub', subscriber: pool }),
  ];
}

export function refused() {
  // @ts-expect-error: no eval
  new RedisLockRegistry({ get() {} }, options);
  // @ts-expect-error: no evalSha
  new RedisLockRegistry({ eval: async () => 1 }, options);
  // @ts-expect-error: not promises
  new RedisLockRegistry({ eval: () => 1, evalSha: () => 1 }, options);
  // @ts-expect-error: an address is not a client
  new RedisLockRegistry('redis://localhost:6379', options);
  // @ts-expect-error: no registryKey
  new RedisLockRegistry(createClient(), {});
  // @ts-expect-error: no options
  new RedisLockRegistry(createClient());
  // @ts-expect-error: an unknown option
  new RedisLockRegistry(createClient(), { ...options, expiresAfter: 1_000 });
  // @ts-expect-error: an unknown type of lock
  new RedisLockRegistry(createClient(), { ...options, lockType: 'zookeeper' });
  // @ts-expect-error: a client that is about to be connected is not one yet
  new RedisLockRegistry(createClient().connect(), options);
}
