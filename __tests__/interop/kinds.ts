import type { LockType } from '../../lib/strategies';

export interface Kind {
  readonly title: string;
  /** What our side calls it. */
  readonly lockType: LockType;
  /** Locks are named `registryKey:key`; else by their key alone. */
  readonly isPrefixed: boolean;
  /** A waiter is woken by a message, and so soon that it cannot have been by polling. */
  readonly isWoken: boolean;
  readonly idleBetweenTries: number;
}

/** Longer than any test takes: whoever waits by messages and polls is found out. */
const NEVER = 60_000;

/** The kinds of lock that are shared with Java, as they are called there. */
export const KINDS = {
  'spring-spin': {
    title: 'Spring spin',
    lockType: 'spin',
    isPrefixed: true,
    isWoken: false,
    idleBetweenTries: 20,
  },
  'spring-pub-sub': {
    title: 'Spring pub-sub',
    lockType: 'pub-sub',
    isPrefixed: true,
    isWoken: true,
    idleBetweenTries: NEVER,
  },
  redisson: {
    title: 'RLock',
    lockType: 'redisson',
    isPrefixed: false,
    isWoken: true,
    idleBetweenTries: NEVER,
  },
  'redisson-fair': {
    title: 'fair lock',
    lockType: 'redisson-fair',
    isPrefixed: false,
    isWoken: true,
    idleBetweenTries: NEVER,
  },
} as const satisfies Record<string, Kind>;

export type LockKind = keyof typeof KINDS;

export const LOCK_KINDS = Object.keys(KINDS) as LockKind[];
