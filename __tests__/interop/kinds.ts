import type { LockType } from '../../lib/protocols/lock-types';

export interface Kind {
  readonly title: string;
  /** The lock type in this library. */
  readonly lockType: LockType;
  /** Whether locks are named `registryKey:key`; otherwise by their key alone. */
  readonly isPrefixed: boolean;
  /** Whether a waiter is notified by a message, which is faster than polling. */
  readonly isWoken: boolean;
  readonly idleBetweenTries: number;
}

/** Longer than any test takes, so that a waiter that polls in place of being notified fails the test. */
const NEVER = 60_000;

/** The lock types that are shared with Java, by their names there. */
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

/** A lock of Java, and a lock type of ours that shares it. */
export interface RivalKind {
  readonly ours: LockType;
  readonly rival: string;
  readonly isPrefixed: boolean;
}

const SPRING = ['spring-spin', 'spring-pub-sub'];

/** What competes for one lock. A plain lock of Redisson and a fair one do not share a name: see the page for Java. */
export const RIVALS: readonly RivalKind[] = [
  ...(['spin', 'pub-sub', 'fair'] as const).flatMap((ours) =>
    SPRING.map((rival) => ({ ours, rival, isPrefixed: true })),
  ),
  ...['redisson', 'redisson-spin'].map((rival) => ({ ours: 'redisson' as const, rival, isPrefixed: false })),
  ...['redisson-fair', 'redisson-spin'].map((rival) => ({ ours: 'redisson-fair' as const, rival, isPrefixed: false })),
];

export type LockKind = keyof typeof KINDS;

export const LOCK_KINDS = Object.keys(KINDS) as LockKind[];
