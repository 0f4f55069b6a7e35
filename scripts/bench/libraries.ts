import { subscribe, tracingChannel } from 'node:diagnostics_channel';
import { createRequire } from 'node:module';
import type { Lease, RedisClient, RedisLockRegistry, RedisLockRegistryOptions } from '../../lib';
import type { Candidate, Locks, OpenOptions, Release } from './candidate';
import { ioRedis, nodeRedis } from './clients';
import { floors } from './floors';
import { heldWhile } from './torture/library';

/** Of every semaphore. */
export const PERMITS = 4;

type Options = Partial<RedisLockRegistryOptions>;

/** A registry of the built package, as a user would make it. */
async function ourRegistry({ address, ttl, library: file }: OpenOptions, options: Options, useIoredis = false) {
  const library = (await import(file)) as typeof import('../../lib');
  const adapted = async (): Promise<RedisClient> => {
    const { fromIoredis } = createRequire(file)(
      'redis-lock-registry/ioredis',
    ) as typeof import('../../lib/clients/ioredis');
    return fromIoredis(await ioRedis(address)) as RedisClient;
  };
  const client = useIoredis ? await adapted() : await nodeRedis(address);
  return new library.RedisLockRegistry(client, { registryKey: 'locks', expireAfter: ttl, ...options });
}

const releaseOf = async (locking: Promise<Lease>): Promise<Release> => {
  const lease = await locking;
  return () => lease.unlock();
};

/** The built package with default options, or a few others, used as in its README. */
function ours(
  candidate: Pick<Candidate, 'id' | 'title'> & Partial<Candidate>,
  options: Options,
  locksOf: (registry: RedisLockRegistry) => Locks = ourLocks,
): Candidate {
  const usesIoredis = candidate.packages?.includes('ioredis');
  const open = async (openOptions: OpenOptions) => locksOf(await ourRegistry(openOptions, options, usesIoredis));
  return { packages: ['redis'], open, isOurs: true, ...candidate };
}

function ourLocks(registry: RedisLockRegistry): Locks {
  const acquire = async (key: string) => {
    const lease = await registry.obtain(key).lock();
    return () => lease.unlock();
  };
  return {
    acquire,
    async acquireListened(key) {
      const lease = await registry.obtain(key).lock();
      lease.signal.addEventListener('abort', ignore, { once: true });
      return () => lease.unlock();
    },
    acquireAll: (keys) => releaseOf(registry.multi(keys).lock()),
    keep: acquire,
    once: (key, task) => registry.once(key, task, { keepFor: KEPT_FOR }),
    object: (key) => registry.obtain(key),
  };
}

/** ms for which the result of a task is kept. */
const KEPT_FOR = 60_000;

const ignore = () => undefined;

/** Subscribers of all channels that do nothing: what remains are the messages, and the async context of each operation. */
function observe(): void {
  const all = { start: ignore, end: ignore, asyncStart: ignore, asyncEnd: ignore, error: ignore };
  for (const name of ['acquire', 'hold', 'release']) tracingChannel(`redis-lock-registry:${name}`).subscribe(all);
  for (const name of ['lost', 'renewed', 'warning']) subscribe(`redis-lock-registry:${name}`, ignore);
}

const OURS: readonly Candidate[] = [
  ours({ id: 'spin', title: 'ours: spin' }, { lockType: 'spin' }),
  ours({ id: 'observed', title: 'ours: spin, with subscribers' }, { lockType: 'spin' }, (registry) => {
    observe();
    return ourLocks(registry);
  }),
  ours({ id: 'fenced', title: 'ours: spin, fencing' }, { lockType: 'spin', fencing: true }),
  ours({ id: 'released', title: 'ours: spin, handOver 0' }, { lockType: 'spin', handOver: 0 }),
  ours({ id: 'replicated', title: 'ours: spin, minReplicas 1' }, { lockType: 'spin', minReplicas: 1 }),
  ours(
    { id: 'spin-ioredis', title: 'ours: spin (ioredis)', packages: ['ioredis'], floor: 'floor-ioredis' },
    { lockType: 'spin' },
  ),
  ours({ id: 'pub-sub', title: 'ours: pub-sub' }, { lockType: 'pub-sub' }),
  ours({ id: 'fair', title: 'ours: fair' }, { lockType: 'fair' }),
  ours({ id: 'semaphore', title: 'ours: semaphore' }, {}, (registry) => ({
    acquire: (key) => releaseOf(registry.semaphore(key, { permits: PERMITS }).lock()),
    acquirePermit: (key, permits) => releaseOf(registry.semaphore(key, { permits }).lock()),
  })),
  ours({ id: 'read-write', title: 'ours: readWrite' }, {}, (registry) => ({
    acquire: (key) => releaseOf(registry.readWrite(key).write.lock()),
    acquireShared: (key) => releaseOf(registry.readWrite(key).read.lock()),
  })),
];

/** What redlock and its successor have in common. */
interface RedlockLike {
  acquire(keys: string[], ttl: number): Promise<{ release(): Promise<unknown> }>;
  using(keys: string[], ttl: number, task: (signal: AbortSignal) => Promise<void>): Promise<unknown>;
}

function redlockLocks(locks: RedlockLike, ttl: number): Locks {
  const acquireAll = async (keys: readonly string[]) => {
    const lock = await locks.acquire([...keys], ttl);
    return () => lock.release();
  };
  return {
    acquire: (key) => acquireAll([key]),
    acquireAll,
    keep: async (key) => (await heldWhile((task) => locks.using([key], ttl, task))).release,
  };
}

type Open = Candidate['open'];

const redisSemaphore =
  (kind: 'Mutex' | 'Semaphore' | 'MultiSemaphore'): Open =>
  async ({ address, ttl }) => {
    const library = await import('redis-semaphore');
    const client = await ioRedis(address);
    // Default: gives up after ten seconds.
    const options = { lockTimeout: ttl, acquireTimeout: Number.POSITIVE_INFINITY };
    const object = (key: string) => {
      if (kind === 'Mutex') return new library.Mutex(client, key, options);
      if (kind === 'Semaphore') return new library.Semaphore(client, key, PERMITS, options);
      return new library.MultiSemaphore(client, key, PERMITS, 1, options);
    };
    const acquirePermit = (key: string, permits: number) =>
      acquiring(() => new library.Semaphore(client, key, permits, options))(key);
    return { acquire: acquiring(object), keep: acquiring(object), object, acquirePermit };
  };

/** An object that is one owner is made for each acquisition. */
function acquiring(object: (key: string) => { acquire(): Promise<unknown>; release(): unknown }) {
  return async (key: string): Promise<Release> => {
    const lock = object(key);
    await lock.acquire();
    return () => lock.release();
  };
}

const redlock: Open = async ({ address, ttl }) => {
  const { default: Redlock } = await import('redlock');
  const client = await ioRedis(address);
  const locks = redlockLocks(new Redlock([client], { retryCount: -1 }), ttl);
  return {
    ...locks,
    // By hand, as it is usually done: the result is looked for before, and again under the lock.
    async once(key, task) {
      const name = `${key}:result`;
      const there = await client.get(name);
      if (there !== null) return there;
      const release = await locks.acquire(key);
      try {
        const result = (await client.get(name)) ?? (await task());
        await client.set(name, result, 'PX', KEPT_FOR);
        return result;
      } finally {
        await release();
      }
    },
  };
};

const sesameRedlock: Open = async ({ address, ttl }) => {
  const { Redlock } = await import('@sesamecare-oss/redlock');
  // With -1 it allocates an object for every attempt.
  return redlockLocks(new Redlock([await ioRedis(address)], { retryCount: Number.MAX_SAFE_INTEGER }), ttl);
};

const redlockUniversal: Open = async ({ address, ttl }) => {
  const { createLock, LockManager, NodeRedisAdapter } = await import('redlock-universal');
  const adapter = new NodeRedisAdapter(await nodeRedis(address));
  const attempts = Number.MAX_SAFE_INTEGER;
  const object = (key: string) => createLock({ adapter, key, ttl, retryAttempts: attempts });
  const manager = new LockManager({ nodes: [adapter], defaultTTL: ttl, defaultRetryAttempts: attempts });
  const locks = new Map<string, ReturnType<typeof object>>();
  const lockOf = (key: string) => {
    const lock = locks.get(key) ?? object(key);
    locks.set(key, lock);
    return lock;
  };
  return {
    async acquire(key) {
      const lock = lockOf(key);
      const handle = await lock.acquire();
      return () => lock.release(handle);
    },
    async acquireAll(keys) {
      const handles = await manager.acquireBatch([...keys]);
      return () => manager.releaseBatch(handles);
    },
    keep: async (key) => (await heldWhile((task) => lockOf(key).using(task))).release,
    object,
  };
};

/** It has no renewal. */
const verrou: Open = async ({ address, ttl }) => {
  const { Verrou } = await import('@verrou/core');
  const { redisStore } = await import('@verrou/core/drivers/redis');
  const driver = redisStore({ connection: await ioRedis(address) });
  const factory = new Verrou({ default: 'redis', stores: { redis: { driver } } });
  const object = (key: string) => factory.createLock(key, ttl);
  return { acquire: acquiring(object), object };
};

const simpleRedisMutex: Open = async ({ address, ttl }) => {
  const { lock } = await import('simple-redis-mutex');
  const client = await nodeRedis(address);
  return { acquire: (key) => lock(client, key, { timeout: ttl }) };
};

const nodeRedisson: Open = async ({ address, ttl }) => {
  const { Redisson } = await import('node-redisson');
  const redisson = new Redisson({ redis: { options: { ...address } }, lockWatchdogTimeout: BigInt(ttl) });
  const acquire = async (key: string) => {
    const lock = redisson.getLock(key);
    await lock.lock();
    return () => lock.unlock();
  };
  return { acquire, keep: acquire, object: (key) => redisson.getLock(key) };
};

/** It runs with its own defaults; only a limit on the number of attempts is lifted. */
function peer(id: string, name: string, client: string, open: Open, rest: Partial<Candidate> = {}): Candidate {
  return { id, title: name, packages: [name, client], open, ...rest };
}

/** Similar to another one, or far behind. */
const isVariant = true;

const PEERS: readonly Candidate[] = [
  peer('redlock', 'redlock', 'ioredis', redlock),
  peer('sesame-redlock', '@sesamecare-oss/redlock', 'ioredis', sesameRedlock, { isVariant }),
  peer('redlock-universal', 'redlock-universal', 'redis', redlockUniversal, { isVariant }),
  peer('redis-semaphore', 'redis-semaphore', 'ioredis', redisSemaphore('Mutex'), {
    title: 'redis-semaphore (ioredis)',
  }),
  peer('verrou', '@verrou/core', 'ioredis', verrou),
  peer('simple-redis-mutex', 'simple-redis-mutex', 'redis', simpleRedisMutex, { isVariant }),
  peer('node-redisson', 'node-redisson', 'ioredis', nodeRedisson, { isVariant }),
  ...(['Semaphore', 'MultiSemaphore'] as const).map((kind) =>
    peer(`redis-semaphore-${kind.toLowerCase()}`, 'redis-semaphore', 'ioredis', redisSemaphore(kind), {
      title: `redis-semaphore: ${kind} (ioredis)`,
    }),
  ),
];

export const candidates: readonly Candidate[] = [...floors, ...OURS, ...PEERS];

export function candidateNamed(id: string): Candidate {
  const found = candidates.find((one) => one.id === id);
  if (found === undefined) throw new Error(`There is no candidate "${id}"`);
  return found;
}
