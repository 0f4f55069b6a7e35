import { RedisLockRegistry } from '../../../lib';
import type { Address } from '../candidate';
import { ioRedis, nodeRedis } from '../clients';
import { type Held, heldWhile, type Library, TTL, WAIT } from './library';
import { openPeer } from './peer';
import type { PeerName } from './peers';

/** How a library is opened; and what its pages say that matters here. */
export interface Entry {
  readonly packages: readonly string[];
  /** The settings that are not its defaults, for people. */
  readonly settings: string;
  /** How a holder learns that it lost the lock. */
  readonly tells: string;
  /** It is a program in another language. */
  readonly peer?: PeerName;
  readonly open: (address: Address, program: readonly string[]) => Promise<Library>;
}

/** What says that a lock was not free within the wait is no failure. */
async function unlessRefused(lock: Promise<Held>, isRefusal: (error: Error) => boolean): Promise<Held | null> {
  try {
    return await lock;
  } catch (error) {
    if (isRefusal(error as Error)) return null;
    throw error;
  }
}

function ours(lockType: 'spin' | 'pub-sub' | 'fair', minReplicas = 0): Entry {
  return {
    packages: ['redis-lock-registry', 'redis'],
    settings: `lockType ${lockType}, expireAfter ${TTL}${minReplicas > 0 ? `, minReplicas ${minReplicas}` : ''}`,
    tells: 'lease.remaining, lease.signal',
    async open(address) {
      const options = { registryKey: 'locks', lockType, expireAfter: TTL, minReplicas, onWarning: () => undefined };
      const registry = new RedisLockRegistry(await nodeRedis(address), options);
      return {
        async lock(key) {
          const lease = await registry.obtain(key).tryLock({ waitTime: WAIT });
          const isTold = () => lease?.signal.aborted === true;
          return lease && { remaining: () => lease.remaining, isTold, release: () => lease.unlock() };
        },
      };
    },
  };
}

/** A program in another language. */
function foreign(peer: PeerName, settings: string, tells: string): Entry {
  return { peer, packages: [peer], settings, tells, open: (address, program) => openPeer(program, address) };
}

export const LIBRARIES: Readonly<Record<string, Entry>> = {
  'ours, spin': ours('spin'),
  'ours, pub-sub': ours('pub-sub'),
  'ours, fair': ours('fair'),
  'ours, spin, minReplicas': ours('spin', 1),
  redlock: {
    packages: ['redlock', 'ioredis'],
    settings: `using(), which extends; duration ${TTL}, retryCount ${WAIT / 200}`,
    tells: 'the signal of using()',
    async open(address) {
      const { default: Redlock } = await import('redlock');
      const redlock = new Redlock([await ioRedis(address)], { retryCount: WAIT / 200 });
      redlock.on('error', () => undefined);
      const isRefusal = ({ message }: Error) => message.includes('unable to achieve a quorum');
      return {
        lock: (key) =>
          unlessRefused(
            heldWhile((task) => redlock.using([key], TTL, task)),
            isRefusal,
          ),
      };
    },
  },
  'redis-semaphore': {
    packages: ['redis-semaphore', 'ioredis'],
    settings: `Mutex, lockTimeout ${TTL}, acquireTimeout ${WAIT}; it refreshes by default`,
    tells: 'mutex.isAcquired, onLockLost',
    async open(address) {
      const { Mutex } = await import('redis-semaphore');
      const client = await ioRedis(address);
      return {
        async lock(key) {
          let isLost = false;
          const onLockLost = () => {
            isLost = true;
          };
          const mutex = new Mutex(client, key, { lockTimeout: TTL, acquireTimeout: WAIT, onLockLost });
          if (!(await mutex.tryAcquire())) return null;
          const remaining = () => (mutex.isAcquired ? undefined : 0);
          return { remaining, isTold: () => isLost, release: () => mutex.release() };
        },
      };
    },
  },
  '@verrou/core': {
    packages: ['@verrou/core', 'ioredis'],
    settings: `createLock(key, ${TTL}), retry.timeout ${WAIT}; it has no renewal`,
    tells: 'lock.isExpired(), lock.getRemainingTime()',
    async open(address) {
      const { Verrou } = await import('@verrou/core');
      const { redisStore } = await import('@verrou/core/drivers/redis');
      const driver = redisStore({ connection: await ioRedis(address) });
      const verrou = new Verrou({ default: 'redis', stores: { redis: { driver } } });
      return {
        async lock(key) {
          const lock = verrou.createLock(key, TTL);
          if (!(await lock.acquire({ retry: { timeout: WAIT } }))) return null;
          const remaining = () => (lock.isExpired() ? 0 : (lock.getRemainingTime() ?? 0));
          return { remaining, release: () => lock.release() };
        },
      };
    },
  },
  'redlock-universal': {
    packages: ['redlock-universal', 'redis'],
    settings: `using(), which extends; ttl ${TTL}, retryAttempts ${WAIT / 100}`,
    tells: 'the signal of using()',
    async open(address) {
      const { createLock, NodeRedisAdapter } = await import('redlock-universal');
      const adapter = new NodeRedisAdapter(await nodeRedis(address));
      const create = (key: string) => createLock({ adapter, key, ttl: TTL, retryAttempts: WAIT / 100 });
      const isRefusal = ({ name, message }: Error) =>
        name === 'LockAcquisitionError' && /already|held|attempts/i.test(message);
      return {
        lock: (key) =>
          unlessRefused(
            heldWhile((task) => create(key).using((signal) => task(signal))),
            isRefusal,
          ),
      };
    },
  },
  'Redisson (Java)': foreign(
    'Redisson',
    `getLock(key), tryLock(${WAIT}), lockWatchdogTimeout ${TTL}: it renews`,
    'isHeldByCurrentThread(), which asks Redis',
  ),
  'redsync (Go)': foreign('redsync', `WithExpiry(${TTL}), a context of ${WAIT}; it has no renewal`, 'mutex.Until()'),
  'bsm/redislock (Go)': foreign(
    'redislock',
    `Obtain(key, ${TTL}), LinearBackoff(100), a context of ${WAIT}; it has no renewal`,
    'lock.TTL(), which asks Redis',
  ),
  'redis-py (Python)': foreign(
    'redis-py',
    `lock(timeout ${TTL}, blocking_timeout ${WAIT}), socket_timeout 1000; it has no renewal`,
    'lock.owned(), which asks Redis',
  ),
};
