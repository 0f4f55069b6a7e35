import type { StoredKind } from '../../api/lock-types';

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

/** Whether one may enter beside others of its kind. Beside those of another kind none may. */
const beside: Readonly<Record<StoredKind, (takes: number, inside: readonly Sharer[], permits: number) => boolean>> = {
  lock: () => false,
  write: () => false,
  read: () => true,
  semaphore: (takes, inside, permits) => taken(inside) + takes <= permits,
};

/** `inside`: also those that come first, as if they had entered: so nobody overtakes. `permits`: of a semaphore. */
export function mayEnter({ kind, takes }: Sharer, inside: readonly Sharer[], permits: number): boolean {
  // Also one that takes more than there are: the number was lowered while it waited.
  if (inside.length === 0) return true;
  return inside.every((other) => other.kind === kind) && beside[kind](takes, inside, permits);
}

/** How many permits they have. */
export function taken(some: readonly Pick<Sharer, 'takes'>[]): number {
  return some.reduce((sum, { takes }) => sum + takes, 0);
}
