import type { Lease } from './lock-registry';

/** A lease as those need it who gave it out. */
export interface HeldLease extends Lease {
  /** `unlock` was called. */
  readonly isUnlocked: boolean;
  readonly wasLost: boolean;
  /** A fresh `LockLostError` that says how it was lost; `result` is what the task under it returned. */
  lossError(result?: unknown): Error;
}

/** So many lost leases are remembered for their holders to be told. Whoever never unlocks is not remembered for ever. */
const MOST_LOST = 16;

/**
 * The leases of one lock that were taken with `lock` or `tryLock` in one place (a scope, or outside any), for
 * `lock.unlock()`, which cannot know its caller. One of them at most is held; those before it were lost, and the holder
 * of each has yet to be told by an `unlock()`: so an earlier holder's `finally` never releases a later one's lease.
 */
export class Holds {
  readonly #leases: HeldLease[] = [];

  add(lease: HeldLease): void {
    this.forgetUnlocked();
    if (this.#leases.length > MOST_LOST) this.#leases.shift();
    this.#leases.push(lease);
  }

  forgetUnlocked(): void {
    while (this.#leases[0]?.isUnlocked) this.#leases.shift();
  }

  /** The one that `unlock()` is about: the eldest that was not unlocked. */
  get next(): HeldLease | undefined {
    return this.#leases.find((lease) => !lease.isUnlocked);
  }
}
