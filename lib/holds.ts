import type { Lease } from './lock-registry';

/** A lease as those need it who gave it out. */
export interface HeldLease extends Lease {
  /** `unlock` was called. */
  readonly isUnlocked: boolean;
  readonly wasLost: boolean;
  renew(ttl?: number, timeout?: number): Promise<void>;
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
  #leases: HeldLease[] = [];

  /** Lost leases that are only counted, and the last of them. */
  #counted = 0;
  #lastCounted: HeldLease | undefined;

  add(lease: HeldLease): void {
    this.forgetUnlocked();
    if (this.#leases.length > MOST_LOST) {
      this.#lastCounted = this.#leases.shift();
      this.#counted++;
    }
    this.#leases.push(lease);
  }

  forgetUnlocked(): void {
    this.#leases = this.#leases.filter((lease) => !lease.isUnlocked);
  }

  get isEmpty(): boolean {
    return this.#counted === 0 && this.#next === undefined;
  }

  /** Unlocks the eldest that was not unlocked; false where there is none. */
  async unlockNext(): Promise<boolean> {
    if (this.#counted > 0 && this.#lastCounted !== undefined) {
      this.#counted--;
      throw this.#lastCounted.lossError();
    }
    const next = this.#next;
    await next?.unlock();
    return next !== undefined;
  }

  get #next(): HeldLease | undefined {
    return this.#leases.find((lease) => !lease.isUnlocked);
  }
}
