import { type EndOfWait, LONGEST_SILENCE } from './signs';

/**
 * For how long a lock has been in demand: held by this process or waited for, without a break that was as long as a
 * pause.
 */
export class Demand {
  #since = Number.POSITIVE_INFINITY;

  /** `Infinity`: it was not acquired yet. */
  get since(): number {
    return this.#since;
  }

  /**
   * This process acquired the lock by an attempt that was sent then. `wait`: it had waited. Otherwise, it had the lock
   * before, and an attempt before `freeUntil` comes without a break.
   */
  acquired(sentAt: number, wait: EndOfWait | undefined, freeUntil: number): void {
    const withoutBreakUntil = wait === undefined ? freeUntil : wait.refusedAt + LONGEST_SILENCE;
    // A poller had the lock during the wait: the demand starts again.
    const isNew = wait?.wasPolled || this.#since === Number.POSITIVE_INFINITY || sentAt >= withoutBreakUntil;
    if (isNew) this.#since = sentAt;
  }
}
