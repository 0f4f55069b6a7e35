import type { Lease, LockOptions, RedisLockRegistry } from '../../lib';
import { LOCK_TYPES, type LockType } from '../../lib/kinds';

type Held = Pick<Lease, 'unlock'>;
type Acquire = (registry: RedisLockRegistry, key: string, options: LockOptions) => Promise<Held>;

export interface AnyLock {
  readonly name: string;
  /** Of its registry. */
  readonly lockType: LockType;
  readonly acquire: Acquire;
  /** How another caller keeps all others out; by default as above. */
  readonly keepOut?: Acquire;
}

/** One of two segments. */
function segment(registry: RedisLockRegistry, key: string, options: LockOptions): Promise<Held> {
  return new Promise((resolve, reject) => {
    const task = () => new Promise<void>((end) => resolve({ unlock: async () => end() }));
    registry.segmented(key, { segments: 2 }).run(task, options).catch(reject);
  });
}

/** Every kind of lock, for tests of what an acquisition does for each of them. */
export const EVERY_LOCK: readonly AnyLock[] = [
  ...LOCK_TYPES.map((lockType) => ({
    name: `a ${lockType} lock`,
    lockType,
    acquire: (registry: RedisLockRegistry, key: string, options: LockOptions) => registry.obtain(key).lock(options),
  })),
  {
    name: 'a semaphore',
    lockType: 'spin',
    acquire: (registry, key, options) => registry.semaphore(key, { permits: 1 }).lock(options),
  },
  {
    name: 'a lock for reading',
    lockType: 'spin',
    acquire: (registry, key, options) => registry.readWrite(key).read.lock(options),
    keepOut: (registry, key, options) => registry.readWrite(key).write.lock(options),
  },
  {
    name: 'a lock for writing',
    lockType: 'spin',
    acquire: (registry, key, options) => registry.readWrite(key).write.lock(options),
  },
  {
    name: 'a lock of two keys',
    lockType: 'pub-sub',
    acquire: (registry, key, options) => registry.multi([key, `${key}+`]).lock(options),
  },
  {
    name: 'a segmented lock',
    lockType: 'spin',
    acquire: segment,
    async keepOut(registry, key, options) {
      const both = [await segment(registry, key, options), await segment(registry, key, options)];
      return { unlock: async () => void (await Promise.all(both.map((held) => held.unlock()))) };
    },
  },
];
