import { isExclusive, type StoredKind } from '../../api/lock-types';

/*
 * Who may enter a shared lock: for locks in memory, which have no scripts. In Redis `mayEnter` in queue.lua says it. One
 * table of cases is tried on both.
 */

/** One that is inside, or wants to enter. */
export interface Sharer {
  readonly kind: StoredKind;
  /** How many permits of a semaphore. */
  readonly takes: number;
}

/** `inside`: also those that come first, as if they had entered: so nobody overtakes. `permits`: of a semaphore. */
export function mayEnter({ kind, takes }: Sharer, inside: readonly Sharer[], permits: number): boolean {
  // Also one that takes more than there are: the number was lowered while it waited.
  if (inside.length === 0) return true;
  if (isExclusive(kind) || inside.some((other) => other.kind !== kind)) return false;
  return kind === 'read' || taken(inside) + takes <= permits;
}

/** How many permits they have. */
export function taken(some: readonly Pick<Sharer, 'takes'>[]): number {
  return some.reduce((sum, { takes }) => sum + takes, 0);
}
