import type { LockType } from '../../../lib/kinds';

/** ms; longer than any test takes, so that a waiter that polls in place of being notified fails the test. */
const NEVER = 600_000;

/**
 * The lock types that are shared with Java, by their names there. A waiter is notified by a message where it is not to
 * poll. Locks of Spring are named `registryKey:key`, those of Redisson by their key alone.
 */
export const KINDS = {
  'spring-spin': { title: 'Spring spin', options: { lockType: 'spin', idleBetweenTries: 20 } },
  'spring-pub-sub': { title: 'Spring pub-sub', options: { lockType: 'pub-sub', idleBetweenTries: NEVER } },
  redisson: { title: 'RLock', options: { lockType: 'redisson', idleBetweenTries: NEVER } },
  'redisson-fair': { title: 'fair lock', options: { lockType: 'redisson-fair', idleBetweenTries: NEVER } },
} as const;

/** A lock of Java, and a lock type of ours that shares it. */
export interface RivalKind {
  readonly ours: LockType;
  readonly rival: string;
}

/** What competes for one lock. A plain lock of Redisson and a fair one do not share a name: see the page for Java. */
export const RIVALS: readonly RivalKind[] = [
  ...(['spin', 'pub-sub', 'fair'] as const).flatMap((ours) =>
    ['spring-spin', 'spring-pub-sub'].map((rival) => ({ ours, rival })),
  ),
  ...['redisson', 'redisson-spin'].map((rival) => ({ ours: 'redisson' as const, rival })),
  ...['redisson-fair', 'redisson-spin'].map((rival) => ({ ours: 'redisson-fair' as const, rival })),
];

export type LockKind = keyof typeof KINDS;

export const LOCK_KINDS = Object.keys(KINDS) as LockKind[];
