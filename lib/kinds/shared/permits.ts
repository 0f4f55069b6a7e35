import { clock, drift } from '../../internal/clock';

/** How many may hold a semaphore: the number that was given last counts. One object for each semaphore of a registry. */
export class Permits {
  count = 0;
  /** When one was given here last, on the monotonic clock, and the drift between the clocks then. */
  givenAt = 0;
  drift = 0;
  /** When that number was given which an attempt reported to the lock last. */
  reportedAt = Number.NEGATIVE_INFINITY;
  /** The number came from another process: Redis named a newer one. */
  isOthers = false;
  /** The number that the lock had when it answered last. */
  known: number | undefined;
  /** When this process learned that it is another number than before: on the monotonic clock. */
  changedAt = Number.NEGATIVE_INFINITY;
  /** Where callers of this registry wait for the lock: one of them makes an attempt at once. */
  waiting: { wake(): void } | undefined;

  give(count: number): void {
    this.count = count;
    this.givenAt = clock.now();
    this.drift = drift(this.givenAt);
    this.isOthers = false;
    if (this.isNews) this.waiting?.wake();
  }

  /** The lock answered an attempt that reported the number given then; it has this number. */
  reported(givenAt: number, known: number): void {
    // A late answer: an attempt has reported another number since.
    if (givenAt < this.reportedAt) return;
    this.reportedAt = givenAt;
    if (this.known !== undefined && this.known !== known) this.changedAt = clock.now();
    this.known = known;
    if (givenAt < this.givenAt || !this.isNews) return;
    // A later number of another process counts for the next caller here too, though the queue that has it may be gone.
    this.count = known;
    this.isOthers = true;
  }

  /** The lock is not known to have this number. */
  get isNews(): boolean {
    return this.count !== this.known;
  }
}
