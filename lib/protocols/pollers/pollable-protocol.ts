import { Availability } from '../../core/availability';
import { type Pollers, SOON } from './pollers';

/**
 * The protocol of a lock that others may poll for. A base class: most locks are idle, and an object for it would cost
 * memory in each of them. So would one for the availability.
 */
export abstract class PollableProtocol extends Availability {
  /** Made when the lock is contended, or acquired again soon after its release: most locks are neither. */
  protected lazyPollers: Pollers | undefined;
  /** Whole ms: a fraction would cost 16 bytes more for each idle lock. */
  #releasedAt = 0;

  /** As LockProtocol. */
  get availability(): Availability {
    return this;
  }

  /** `undefined`: nobody polls for this lock. */
  protected abstract createPollers(): Pollers | undefined;

  protected get pollers(): Pollers | undefined {
    this.lazyPollers ??= this.createPollers();
    return this.lazyPollers;
  }

  /** The lock must be left free for pollers. */
  protected isPauseDue(now: number): boolean {
    return this.lazyPollers?.pauses.isDue(now) ?? false;
  }

  /** An attempt that was sent then was granted. */
  protected noteGrant(sentAt: number): void {
    if (sentAt - this.#releasedAt < SOON) this.pollers?.acquired(sentAt);
    else this.lazyPollers?.acquired(sentAt);
  }

  /** The lock is handed over, at this time: it is in demand, if not before then from now on. */
  protected noteDemand(at: number): void {
    if (this.lazyPollers === undefined) this.pollers?.acquired(at);
  }

  /** This process released the lock. `wasUnnoticed`: nobody was notified. */
  protected noteRelease(at: number, wasUnnoticed: boolean): void {
    this.#releasedAt = Math.floor(at);
    this.lazyPollers?.released(at, wasUnnoticed);
  }
}
