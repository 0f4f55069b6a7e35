import type { InternalLease } from './internal-lease';

/**
 * Maximum number of lost leases kept for `unlock()` to report. Leases that are never unlocked are not kept for ever.
 */
const MOST_LOST = 16;

/**
 * The leases of one lock that were taken with `lock` or `tryLock` in one place (a scope, or outside all scopes), in the
 * order in which `lock.unlock()` ends them. `lock.unlock()` does not know which caller calls it. At most one of the
 * leases is held, but for a shared lock. Those before it were lost, and each of their holders has an `unlock()` to come,
 * which reports the loss: so the `finally` of an earlier holder never releases the lease of a later one.
 */
export class UnlockOrder {
  #leases: InternalLease[];
  /** Lost leases that are only counted, and the last of them. */
  #counted = 0;
  #lastCounted: InternalLease | undefined;
  /** Many that are held are looked at only when they are twice as many as before: each one more would look at all. */
  #lookAt = 0;

  constructor(first?: InternalLease) {
    this.#leases = first === undefined ? [] : [first];
  }

  /** With one more. A lease alone is an order by itself: nearly all are, and there may be many. */
  static with(lease: InternalLease, others: InternalLease | UnlockOrder | undefined): InternalLease | UnlockOrder {
    if (others === undefined || others.isUnlocked) return lease;
    const order = UnlockOrder.of(others);
    order.add(lease);
    return order;
  }

  static of(leases: InternalLease | UnlockOrder): UnlockOrder {
    return leases instanceof UnlockOrder ? leases : new UnlockOrder(leases);
  }

  add(lease: InternalLease): void {
    if (this.#leases.length >= this.#lookAt) this.#forgetSome();
    this.#leases.push(lease);
  }

  /** Forgets the leases that were unlocked, and counts the oldest lost ones. Of a shared lock, all others may be held. */
  #forgetSome(): void {
    const open = this.#leases.filter(({ isUnlocked }) => !isUnlocked);
    let tooMany = open.length - MOST_LOST;
    this.#leases = open.filter((lease) => {
      if (tooMany <= 0 || !lease.checkLost()) return true;
      tooMany--;
      this.#lastCounted = lease;
      this.#counted++;
      return false;
    });
    this.#lookAt = this.#leases.length > MOST_LOST ? 2 * this.#leases.length : 0;
  }

  /** All of them were, and no loss is left to be reported. */
  get isUnlocked(): boolean {
    return this.#counted === 0 && this.#leases.every((lease) => lease.isUnlocked);
  }

  /** Several leases are held, as a shared lock may be: `lock.unlock()` cannot know which one to end. */
  get isAmbiguous(): boolean {
    return this.#leases.filter((lease) => !lease.isUnlocked && !lease.checkLost()).length > 1;
  }

  /** Unlocks the oldest lease that was not unlocked; false when there is none. */
  async unlockNext(): Promise<boolean> {
    if (this.#counted > 0) {
      this.#counted--;
      throw (this.#lastCounted as InternalLease).lossError();
    }
    const next = this.#leases.find((lease) => !lease.isUnlocked);
    await next?.unlock();
    return next !== undefined;
  }
}
