import type { NameSeparator } from './owner-name';

/** What the key of a lock is: a string as Spring's, or a hash as Redisson's. */
export const LOCK_FORMATS = ['spring', 'redisson'] as const;

export type LockFormat = (typeof LOCK_FORMATS)[number];

/** What the options and the names of a lock type depend on. */
interface LockTypeTraits {
  readonly format: LockFormat;
  /** ms; the default of the option. */
  readonly expireAfter: number;
  readonly needsRegistryKey: boolean;
  readonly nameSeparator: NameSeparator;
  /** Waiters poll: the client need not be able to listen. */
  readonly polls?: true;
  /** False: its leases can be neither detached nor adopted. */
  readonly travels?: false;
  /** When a lock has companion keys, which need its hash slot on a single server too. */
  readonly hasCompanions: 'always' | 'with fencing' | 'never';
}

const SPRING: LockTypeTraits = {
  ...{ format: 'spring', expireAfter: 60_000, needsRegistryKey: true, nameSeparator: ':' },
  hasCompanions: 'with fencing',
};
/** `expireAfter`: Redisson's lockWatchdogTimeout. */
const REDISSON: LockTypeTraits = {
  ...{ format: 'redisson', expireAfter: 30_000, needsRegistryKey: false, nameSeparator: '/' },
  hasCompanions: 'never',
};

/**
 * The names of the lock types, each with the traits that its format has. A file of its own, since locks in memory have
 * these names too and need no scripts. `kinds/index.ts` says what each is made of.
 */
const traits = {
  spin: { ...SPRING, polls: true },
  'pub-sub': SPRING,
  fair: { ...SPRING, hasCompanions: 'always' },
  redisson: REDISSON,
  'redisson-fair': { ...REDISSON, travels: false },
} satisfies Record<string, LockTypeTraits>;

/** How a lock is written in Redis, and how a waiter learns that it is free. */
export type LockType = keyof typeof traits;

/** @internal */
export const LOCK_TYPES = Object.keys(traits) as LockType[];

/** @internal */
export function traitsOf(lockType: LockType): LockTypeTraits {
  return traits[lockType];
}

/** @internal The types whose locks have this format: none has that of shared locks. */
export function typesOf(format: LockFormat | 'shared'): LockType[] {
  return LOCK_TYPES.filter((type) => traitsOf(type).format === format);
}

export const SHARDED_SUBSCRIPTION_MODES = ['auto', 'on', 'off'] as const;

/** Whether releases go over sharded channels. `auto`: on a cluster, if the server has them. */
export type ShardedSubscriptionMode = (typeof SHARDED_SUBSCRIPTION_MODES)[number];

/** What a caller of a shared lock asks for: a permit, to read, or to write. */
export const SHARED_KINDS = ['semaphore', 'read', 'write'] as const;

export type SharedKind = (typeof SHARED_KINDS)[number];

/** What a key of this format is called in messages. */
export function describeFormat(format: LockFormat): string {
  const types = typesOf(format);
  return `a lock of type ${types.slice(0, -1).join(', ')} or ${types.at(-1)}`;
}

/** What a lock of this kind is called in messages. */
export function describeKind(kind: SharedKind): string {
  return kind === 'semaphore' ? 'a semaphore' : 'a read/write lock';
}
