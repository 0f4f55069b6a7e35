/**
 * Compiled by `npm run typecheck`, never run: which clients fit without casts, and which do not.
 */

import { Redis as Upstash } from '@upstash/redis';
import { Redis as UpstashInWorkers } from '@upstash/redis/cloudflare';
import type { GlideClient, GlideClusterClient } from '@valkey/valkey-glide';
import { Redis } from 'ioredis';
import * as ioredis6 from 'ioredis6';
import * as iovalkey from 'iovalkey';
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
import { type RedisClient, RedisLockRegistry, type RedisLockRegistryOptions } from '../../../lib';
import { fromIoredis } from '../../../lib/clients/ioredis';
import { fromUpstash } from '../../../lib/clients/upstash';
import { fromGlide } from '../../../lib/clients/valkey-glide';

const options = { registryKey: 'orders' };
const sentinelOptions = { name: 'locks', sentinelRootNodes: [{ host: 'localhost', port: 26_379 }] };
const clusterOptions = { rootNodes: [{ url: 'redis://localhost:7000' }] };
const nodes = [{ host: 'localhost', port: 7000 }];
const sentinels = { sentinels: [{ host: 'localhost', port: 26_379 }], name: 'locks' };

/** What the constructor takes. */
type Accepted = ConstructorParameters<typeof RedisLockRegistry>[0];

export const ofNodeRedis: readonly Accepted[] = [
  createClient(),
  createClient({ RESP: 2 }),
  createClient({ RESP: 3 }),
  createClient().withTypeMapping({ [RESP_TYPES.BLOB_STRING]: Buffer }),
  createClient({ commandOptions: { typeMapping: { [RESP_TYPES.BLOB_STRING]: Buffer, [RESP_TYPES.NUMBER]: String } } }),
  createClient().withCommandOptions({ timeout: 100 }),
  createClientPool(),
  createCluster(clusterOptions),
  createSentinel(sentinelOptions),
  redis5.createClient(),
  redis5.createClient({ RESP: 2 }),
  redis5.createClient({ RESP: 3 }),
  redis5.createClient().withTypeMapping({ [redis5.RESP_TYPES.BLOB_STRING]: Buffer }),
  redis5.createClientPool(),
  redis5.createCluster(clusterOptions),
  redis5.createSentinel(sentinelOptions),
];

export const ofIoredis: readonly Accepted[] = [
  fromIoredis(new Redis()),
  fromIoredis(new Redis('redis://localhost:6379', { enableAutoPipelining: true })),
  fromIoredis(new Redis(sentinels)),
  fromIoredis(new Redis.Cluster(nodes)),
  fromIoredis(new ioredis6.Redis()),
  fromIoredis(new ioredis6.Redis({ replyMapping: 'resp3' })),
  fromIoredis(new ioredis6.Redis(sentinels)),
  fromIoredis(new ioredis6.Cluster(nodes)),
  fromIoredis(new iovalkey.Redis()),
  fromIoredis(new iovalkey.Cluster(nodes)),
];

export const ofUpstash: readonly Accepted[] = [
  fromUpstash(Upstash.fromEnv()),
  fromUpstash(new Upstash({ url: 'https://example.org', token: 'token', automaticDeserialization: false })),
  fromUpstash(new UpstashInWorkers({ url: 'https://example.org', token: 'token' })),
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
  glide: GlideClient,
  glideCluster: GlideClusterClient,
): Accepted[] {
  const ofGlide = [fromGlide(glide), fromGlide(glideCluster)];
  return [client, fiveParameters, inferred, cluster, client5, cluster5, ...ofGlide];
}

/** Any client will do with an adapter of a few lines; this one is made like ioredis. */
export function adapted(other: { evalsha(sha: string, keys: number, ...rest: string[]): Promise<unknown> }) {
  const client: RedisClient = {
    eval: async () => null,
    evalSha: (sha, { keys = [], arguments: args = [] } = {}) => other.evalsha(sha, keys.length, ...keys, ...args),
  };
  return new RedisLockRegistry(client, options);
}

export function subscribers(
  pool: ReturnType<typeof createClientPool>,
  glide: GlideClient,
): RedisLockRegistryOptions['subscriber'][] {
  return [
    createClient(),
    createCluster(clusterOptions),
    createSentinel(sentinelOptions),
    redis5.createClient(),
    fromGlide(glide),
    // @ts-expect-error: a pool has no pub/sub connection
    pool,
  ];
}

export function refused(glide: GlideClient) {
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
  // @ts-expect-error: not without the adapter
  new RedisLockRegistry(new Redis(), options);
  // @ts-expect-error: not without the adapter
  new RedisLockRegistry(glide, options);
  // @ts-expect-error: an address is not a client
  fromIoredis('redis://localhost:6379');
  // @ts-expect-error: nothing of ioredis
  fromIoredis({ evalsha: async () => 1 });
  // @ts-expect-error: not without the adapter
  new RedisLockRegistry(Upstash.fromEnv(), options);
  // @ts-expect-error: nothing of @upstash/redis
  fromUpstash({ eval: async () => 1 });
  // @ts-expect-error: nothing of valkey-glide
  fromGlide({ eval: async () => 1 });
}
