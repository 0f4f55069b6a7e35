import { clock } from '../../internal/clock';
import { Demand } from './demand';
import { PauseIntervals } from './pause-intervals';
import type { EndOfWait, Signs } from './signs';

/** ms by which a process may be late to take back a lock that it left to pollers. */
export const TAKEN_BACK_LATE = 100;

/** What this process knows of the lock, as far as it may be free. */
type Lock =
  /** It is held, or nothing is known of it. */
  | { readonly state: 'held' }
  /** This process released it in the ordinary way. `wasUnnoticed`: nobody was notified. */
  | { readonly state: 'released'; readonly at: number; readonly wasUnnoticed: boolean }
  /** This process leaves it to pollers. `isWatched`: the next attempt tells whether one has taken it. */
  | { readonly state: 'left'; readonly until: number; readonly isWatched: boolean }
  /** Another process leaves it to pollers. */
  | { readonly state: 'left by another'; readonly until: number };

const HELD: Lock = { state: 'held' };

/**
 * When a lock that is busy all the time is left free, and for how long. What an event makes of the state of the lock
 * (`left` and watched: the next attempt tells whether a poller has taken it):
 *
 *   acquired             any -> held; `left` was an unused pause
 *   refused              `released` -> held; `left`, watched -> held, by a poller
 *   refusedByListener    `left`, watched, its time over -> held, an unused pause
 *   released             any -> released
 *   beforeAttempt        `released`, a pause was due -> left
 *   begin, leftOrDueIn   any -> left
 *   over                 `left` -> held
 *   announced            any but `left` -> left by another
 *   announcedRelease     `left by another` -> held
 */
export class Pauses {
  readonly #signs: Signs;
  readonly #intervals: PauseIntervals;
  readonly #demand = new Demand();
  /** When the last pause began, in whatever process. */
  #lastAt = Number.NEGATIVE_INFINITY;
  #lock: Lock = HELD;

  constructor(idleBetweenTries: number, signs: Signs) {
    this.#signs = signs;
    this.#intervals = new PauseIntervals(idleBetweenTries, signs);
  }

  /** ms that a pause lasts. */
  get length(): number {
    return this.#intervals.pause;
  }

  /** ms from one pause to the next. */
  interval(now: number): number {
    return this.#intervals.next(now);
  }

  /** ms since the lock has been in demand here, or since the last pause began. */
  busyFor(now: number): number {
    return now - Math.max(this.#demand.since, this.#lastAt);
  }

  /** The lock must be left free, and not handed over. */
  isDue(now: number): boolean {
    return this.busyFor(now) >= this.interval(now);
  }

  /** This process acquired the lock by an attempt that was sent then. `wait`: it had waited. */
  acquired(sentAt: number, wait: EndOfWait | undefined): void {
    this.#demand.acquired(sentAt, wait, this.#freeUntil);
    this.over(false, sentAt);
    this.#lock = HELD;
  }

  /** An attempt before this time continues the demand. */
  get #freeUntil(): number {
    const lock = this.#lock;
    if (lock.state === 'released') return lock.at + this.length;
    return lock.state === 'left' ? lock.until : Number.NEGATIVE_INFINITY;
  }

  /** An attempt was refused: somebody has taken the lock. During a pause only a poller can have done so. */
  refused(at: number): void {
    if (this.#lock.state === 'released') this.#lock = HELD;
    if (this.#lock.state === 'left' && this.#lock.isWatched) this.over(true, at);
    // `left by another` stays: the attempt may be older than that pause.
  }

  /** The lock is held by a process that is no poller, or it is still left free. */
  refusedByListener(at: number): void {
    if (this.#lock.state === 'left' && this.#lock.isWatched && at >= this.#lock.until) this.over(false, at);
  }

  /** Ends the pause of this process, if there is one. `isTaken`: a poller took the lock. */
  over(isTaken: boolean, at: number): void {
    if (this.#lock.state !== 'left') return;
    this.#lock = HELD;
    if (isTaken) this.#signs.seen(at);
    else this.#signs.pauseUnused();
  }

  released(at: number, wasUnnoticed: boolean): void {
    this.#lock = { state: 'released', at, wasUnnoticed };
  }

  /** This process left the lock to pollers. `isWatched`: the next attempt tells whether one has taken it. */
  begin(at: number, isWatched: boolean): void {
    this.#lastAt = at;
    this.#lock = { state: 'left', until: at + this.length, isWatched };
  }

  /** Another process said that it leaves the lock to pollers, or this one did. */
  announced(at: number): void {
    this.#lastAt = at;
    if (this.#lock.state === 'left') return;
    // The other process takes the lock back first: otherwise this one would be taken for a poller.
    this.#lock = { state: 'left by another', until: at + this.length + TAKEN_BACK_LATE };
  }

  /** A release was published: a pause of another process is over. */
  announcedRelease(): void {
    if (this.#lock.state === 'left by another') this.#lock = HELD;
  }

  /** The end of a slice left the lock free: that counts as a pause. */
  replacedByBreak(at: number): void {
    this.#lastAt = at;
  }

  /** The server left the lock to pollers now (`ms` is 0), or says in how many ms the next pause is due. */
  leftOrDueIn(at: number, ms: number): void {
    if (ms === 0) this.begin(at, true);
    else this.#lastAt = at + ms - this.interval(at);
  }

  /** Before an attempt: ms to leave the lock free. Turns the last release into a pause if one was due. */
  beforeAttempt(): number {
    const lock = this.#lock;
    if (lock.state === 'released' && this.isDue(lock.at) && clock.now() < lock.at + this.length) {
      this.begin(lock.at, lock.wasUnnoticed);
    }
    return this.left();
  }

  /** ms for which a free lock is to stay so. */
  left(): number {
    const lock = this.#lock;
    // The clock is not read where the lock was not left free.
    return 'until' in lock ? Math.max(0, lock.until - clock.now()) : 0;
  }
}
