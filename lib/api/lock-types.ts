import type { NameSeparator } from './owner-name';

/** What the options and the names of a lock type depend on. `expireAfter`: the default of the option, in ms. */
interface LockTypeTraits {
  readonly expireAfter: number;
  readonly needsRegistryKey: boolean;
  readonly nameSeparator: NameSeparator;
}

const SPRING: LockTypeTraits = { expireAfter: 60_000, needsRegistryKey: true, nameSeparator: ':' };
/** Redisson's lockWatchdogTimeout. */
const REDISSON: LockTypeTraits = { expireAfter: 30_000, needsRegistryKey: false, nameSeparator: '/' };

/**
 * The names of the lock types, each with the traits that its format has. A file of its own, since locks in memory have
 * these names too and need no scripts. `protocols/lock-types.ts` says what each is made of.
 */
const traits = {
  spin: SPRING,
  'pub-sub': SPRING,
  fair: SPRING,
  redisson: REDISSON,
  'redisson-fair': REDISSON,
};

/** How a lock is written in Redis, and how a waiter learns that it is free. */
export type LockType = keyof typeof traits;

/** @internal */
export const LOCK_TYPES = Object.keys(traits) as LockType[];

/** @internal */
export function traitsOf(lockType: LockType): LockTypeTraits {
  return traits[lockType];
}

export const SHARDED_SUBSCRIPTION_MODES = ['auto', 'on', 'off'] as const;

/** Whether releases go over sharded channels. `auto`: on a cluster, if the server has them. */
export type ShardedSubscriptionMode = (typeof SHARDED_SUBSCRIPTION_MODES)[number];

/** What a caller of a shared lock asks for: a permit, to read, or to write. */
export const SHARED_KINDS = ['semaphore', 'read', 'write'] as const;

export type SharedKind = (typeof SHARED_KINDS)[number];

/** What a lock of this kind is called in messages. */
export function describeKind(kind: SharedKind): string {
  return kind === 'semaphore' ? 'a semaphore' : 'a read/write lock';
}
