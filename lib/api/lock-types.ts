import type { NameSeparator } from './owner-name';

/** How the key of a lock is written: as Spring does, or as Redisson does. Another format has another name here. */
export const LOCK_FORMATS = ['spring', 'redisson'] as const;

export type LockFormat = (typeof LOCK_FORMATS)[number];

/**
 * The suffixes of the keys and channels that belong to a lock: a fencing counter, the queue of `fair`, that of shared locks,
 * marks of `lease.eval`, of `forget` and of forced unlocks (`evals`), results of `once`, and marks of waiters. No lock may
 * have the name of one.
 */
export const COMPANIONS = ['fence', 'queue', 'tickets', 'grants', 'waiters', 'evals', 'once', 'wanted'] as const;

export type Companion = (typeof COMPANIONS)[number];

/** What the options and the names of a lock type, and what is said of it, depend on. */
interface LockTypeTraits {
  readonly format: LockFormat;
  /** As TYPE answers about the key of a lock. */
  readonly keyType: string;
  /** Data of an application may look like such a key: only an owner value of this library proves that it is a lock. */
  readonly needsProof?: true;
  /** ms; the default of the option. */
  readonly expireAfter: number;
  /** False: the name of a lock may be its key alone, as other programs have it. */
  readonly needsRegistryKey: boolean;
  readonly nameSeparator: NameSeparator;
  /** Waiters poll: the client need not be able to listen. */
  readonly polls?: true;
  /** False: its leases can be neither detached nor adopted. */
  readonly travels?: false;
  /** Those that need its hash slot; `fence`: with fencing. */
  readonly companions: readonly Companion[];
  /** Its counter of fencing tokens never expires. */
  readonly keepsCounter?: true;
}

/** `needsProof`: the owner values of Spring are UUIDs, and a string of an application may be one too. */
const SPRING: LockTypeTraits = {
  ...{ format: 'spring', keyType: 'string', expireAfter: 60_000, needsRegistryKey: false, nameSeparator: ':' },
  ...{ companions: ['fence'], needsProof: true },
};
/** `expireAfter`: Redisson's lockWatchdogTimeout. Its keys have names of their own. */
const REDISSON: LockTypeTraits = {
  ...{ format: 'redisson', keyType: 'hash', expireAfter: 30_000, needsRegistryKey: false, nameSeparator: '/' },
  ...{ companions: [], keepsCounter: true },
};

/**
 * The table of lock types: what is so for each. It has no code, and is below all that reads it: options, locks in memory,
 * which have no scripts, and messages. `kinds/index.ts` has the code of each by the same names, and `kinds/looks.ts` what finds
 * the locks of each format.
 */
const traits = {
  spin: { ...SPRING, polls: true },
  'pub-sub': SPRING,
  fair: { ...SPRING, needsRegistryKey: true, companions: ['fence', 'queue', 'tickets', 'grants'] },
  redisson: REDISSON,
  'redisson-fair': { ...REDISSON, travels: false },
} satisfies Record<string, LockTypeTraits>;

/** How a lock is written in Redis, and how a waiter learns that it is free. */
export type LockType = keyof typeof traits;

/** The default of a registry on Redis, and of the command line. */
export const DEFAULT_TYPE: LockType = 'spin';

/** @internal */
export const LOCK_TYPES = Object.keys(traits) as LockType[];

/** @internal */
export function traitsOf(lockType: LockType): LockTypeTraits {
  return traits[lockType];
}

/** @internal The types whose leases travel to other processes, and whose holders get a message to stop (`replace`). */
export const TRAVELLING_TYPES: readonly LockType[] = LOCK_TYPES.filter((type) => traitsOf(type).travels !== false);

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

/** What is so for what a caller takes. */
interface KindTraits {
  /** What its key is called in messages. Who asks for a kind that is called otherwise is refused. */
  readonly title: string;
  /** Nobody is beside its holder, whose fencing token is higher than all before. */
  readonly isExclusive?: true;
  /** The callers of a process enter together, on one hold. */
  readonly entersTogether?: true;
}

const READ_WRITE = 'a read/write lock';

/** The table of the kinds of shared locks, and a lock. Who may enter says `kinds/shared`. */
const kindTraits: Readonly<Record<StoredKind, KindTraits>> = {
  lock: { title: 'a lock', isExclusive: true },
  semaphore: { title: 'a semaphore' },
  read: { title: READ_WRITE, entersTogether: true },
  write: { title: READ_WRITE, isExclusive: true },
};

/** What a caller takes: the whole lock, or a share of it. */
export type StoredKind = 'lock' | SharedKind;

export function isExclusive(kind: StoredKind): boolean {
  return kindTraits[kind].isExclusive === true;
}

export function entersTogether(kind: StoredKind): boolean {
  return kindTraits[kind].entersTogether === true;
}

/** The names of some lock types in messages. */
export function listed(types: readonly string[]): string {
  return types.join(', ').replace(/, ([^,]*)$/, ' or $1');
}

/** What a key of this format is called in messages. */
export function describeFormat(format: LockFormat): string {
  return `a lock of type ${listed(typesOf(format))}`;
}

/** What a key that TYPE answers this about is called in messages; `undefined`: no lock has such a key. */
export function describeKeyType(keyType: string): string | undefined {
  const types = LOCK_TYPES.filter((type) => traitsOf(type).keyType === keyType);
  return types.length === 0 ? undefined : `a lock of type ${listed(types)}, or another ${keyType},`;
}

/** What a lock of this kind is called in messages. */
export function describeKind(kind: SharedKind): string {
  return kindTraits[kind].title;
}
