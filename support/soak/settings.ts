import { LOCK_TYPES, type LockType, typesOf } from '../../lib/api/lock-types';

/**
 * What one soak runs on: a lock type, several types that share their names in Redis, those with several keys in each
 * call, a kind of shared lock, or a server with a replica that every acquisition waits for, of locks of all kinds.
 */
export const SOAK_TYPES = [...LOCK_TYPES, 'mixed', 'multi', 'semaphore', 'read-write', 'replicated'] as const;
export type SoakType = (typeof SOAK_TYPES)[number];

/**
 * What a soak does beside all else when it is asked to: one worker is half deaf while all are busy; one listens at a replica
 * from the beginning; callers of `once` leave while others have joined them; shared locks move between the nodes of a
 * cluster, key by key, and nothing else happens to them.
 */
export const SOAK_EXTRAS = ['half open', 'listens at a replica', 'callers of once leave', 'slot moves'] as const;
export type SoakExtra = (typeof SOAK_EXTRAS)[number];

/** The types whose format is Spring's string: they exclude each other on one name. */
const MIXED: readonly LockType[] = typesOf('spring').sort();

/** Shared locks do not depend on the lock type. */
function isShared(type: SoakType): type is 'semaphore' | 'read-write' {
  return type === 'semaphore' || type === 'read-write';
}

/** Whether the locks of the type move: those of other types are tried elsewhere, and have one key to move. */
export function movesSlots(type: SoakType, extras: readonly SoakExtra[]): boolean {
  return isShared(type) && extras.includes('slot moves');
}

/** How often a call takes several keys together: shared locks are not. */
export function shareOfSeveral(type: SoakType): number {
  return isShared(type) || type === 'replicated' ? 0 : type === 'multi' ? 1 : 0.2;
}

export function lockTypeOf(type: SoakType, worker: number): LockType {
  if (isShared(type)) return 'spin';
  return type === 'mixed' || type === 'multi' || type === 'replicated'
    ? (MIXED[worker % MIXED.length] as LockType)
    : type;
}

/** The types whose locks can be replaced, but for calls with several keys. */
const REPLACEABLE: readonly SoakType[] = [...MIXED, 'redisson', 'mixed'];

export function isReplaceable(type: SoakType): boolean {
  return REPLACEABLE.includes(type);
}

export const KEYS = ['a', 'b', 'c', 'd'] as const;
/** A key that is used in calm alone: no dead process can hold it. */
export const CALM_KEY = 'calm';
/** The key of all calls of `once`. */
export const ONCE_KEY = 'once';
export const REGISTRY_KEY = 'soak';

/** ms; long enough that a lock that nobody holds is still there when leftovers are searched for. */
export const LONG_TTL = 30_000;
/** ms; the longest time that a waiter asks for. */
export const LONGEST_WAIT = 2_500;
/** ms; longer than a fault and a task take together, and shorter than a fault. */
export const GRACES = { long: 5_000, short: 500 } as const;
/** ms; the longest time for which a lease is held. */
export const LONGEST_HOLD = 1_200;
/** ms; the longest `minHold`. */
export const LONGEST_MIN_HOLD = 500;

export const registryOptions = {
  registryKey: REGISTRY_KEY,
  expireAfter: LONG_TTL,
  fencing: true,
  idleBetweenTries: 30,
  commandTimeout: 1_000,
  unavailableAfter: 3_000,
  // The position of a killed process in Redisson's queue blocks the lock for this time.
  fairLockWaitTimeout: 1_000,
} as const;

/** ms; longer than a replica takes that follows, and shorter than most faults. */
export const REPLICATED = { minReplicas: 1, replicaTimeout: 100 } as const;

/** ms beyond its bound after which a call counts as not settled, on the clock of `AwakeClock`. */
export const SETTLING_MARGIN = 1_000;

/** ms of delay where nothing is wrong: requests in flight can be met by a fault. */
export const HEALTHY = 1;
