import type { NameSeparator } from '../owner-name';
import type { LockType } from './lock-type-names';

/** What is known of a lock type before there is a registry. */
export interface LockTypeTraits {
  /** ms; the default of the option `expireAfter`. */
  readonly expireAfter: number;
  /** Whether a lock's name has to begin with a `registryKey`. */
  readonly needsRegistryKey: boolean;
  /** What separates the parts of an owner value before its number. */
  readonly nameSeparator: NameSeparator;
}

const SPRING: LockTypeTraits = { expireAfter: 60_000, needsRegistryKey: true, nameSeparator: ':' };
/** Redisson's lockWatchdogTimeout. */
const REDISSON: LockTypeTraits = { expireAfter: 30_000, needsRegistryKey: false, nameSeparator: '/' };

/** A file of its own: to check the options of a registry loads no lock type. */
const traits: Record<LockType, LockTypeTraits> = {
  spin: SPRING,
  'pub-sub': SPRING,
  fair: SPRING,
  redisson: REDISSON,
  'redisson-fair': REDISSON,
};

export const LOCK_TYPES = Object.keys(traits) as LockType[];

export function traitsOf(lockType: LockType): LockTypeTraits {
  return traits[lockType];
}
