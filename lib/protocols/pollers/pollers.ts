import { clock } from '../../internal/clock';
import { SHORTEST_PAUSE } from './pause-intervals';
import { Pauses, TAKEN_BACK_LATE } from './pauses';
import { Signs } from './signs';
import { TakeBack } from './take-back';

/**
 * ms of waiting before a waiter that listens polls faster than `idleBetweenTries`; one that only polls waits longer.
 */
export const USUAL_PACE_FOR = 300;
export const USUAL_PACE_OF_POLLING = 2_000;

/** ms; a lock that is acquired again within this time after its release may be busy all the time. */
export const SOON = SHORTEST_PAUSE;

/** ms; the faster polls: the interval is halved every 250 ms, down to the shortest one. */
const HALVED_EVERY = 250;
const SHORTEST_INTERVAL = 3;

/**
 * What is known of the pollers of one lock, which publish no releases: Spring's SPIN_LOCK, Redisson's spin lock, a
 * loop of SET NX. Redis does not show them, so they have to be detected.
 *
 * A lock that is in demand all the time is left free now and then for a little more than a polling interval, up to 500
 * ms, and waiters that listen are not notified. Then only a poller can have taken it. From then on there are more of
 * these pauses, until no poller was seen for a minute. One process pauses for all: the others are notified, and make no
 * attempt meanwhile.
 *
 * A poller that takes the lock over and over leaves it free for moments only, and notifies nobody. A waiter that sees
 * the holders change like that polls faster and faster.
 */
export class Pollers {
  readonly #idleBetweenTries: number;
  readonly #usualPaceFor: number;
  readonly #signs = new Signs();
  /** When the lock is left free, and for how long. */
  readonly pauses: Pauses;
  readonly takeBack = new TakeBack();

  /** `usualPaceFor`: ms for which a waiter polls at its usual pace in any case. */
  constructor(idleBetweenTries: number, usualPaceFor: number) {
    this.#idleBetweenTries = idleBetweenTries;
    this.#usualPaceFor = usualPaceFor;
    this.pauses = new Pauses(idleBetweenTries, this.#signs);
  }

  /** This process acquired the lock by an attempt that was sent then. */
  acquired(sentAt: number): void {
    this.pauses.acquired(sentAt, this.#signs.granted());
  }

  /** An attempt was refused. `remaining`: ms that are left of the holder's key; `hints`: releases noticed so far. */
  refused(at: number, remaining: number, hints: number): void {
    this.pauses.refused(at);
    this.#signs.refused(at, { remaining, hints });
  }

  /** An attempt was refused, and it is no sign of pollers: a listener holds the lock, or it is left free. */
  refusedByListener(at: number): void {
    this.pauses.refusedByListener(at);
    this.#signs.refusedByListener(at);
  }

  /** This process released the lock. `wasUnnoticed`: nobody was notified. */
  released(at: number, wasUnnoticed: boolean): void {
    this.pauses.released(at, wasUnnoticed);
  }

  /** A process said that it leaves the lock to pollers. It may be this one: its own message reaches it too. */
  announced(at: number): void {
    this.pauses.announced(at);
    this.#signs.announced();
  }

  /** This process left the lock free in place of a hand-over. `notify`: no local caller has taken it back in time. */
  leftByHandOver(at: number, notify: () => void): void {
    this.pauses.begin(at, true);
    this.takeBack.start(this.pauses.length + TAKEN_BACK_LATE, notify);
  }

  /** ms until the next poll of a waiter whose usual interval is `usual`. */
  pollingInterval(usual: number): number {
    const now = clock.now();
    if (!this.#signs.isSuspected(now)) return usual;
    const interval = Math.min(usual, this.#idleBetweenTries);
    const beyond = this.#signs.waitedFor(now) - this.#usualPaceFor;
    if (beyond <= 0 || !this.#signs.wasSeenJustNow(now)) return interval;
    return Math.max(interval / 2 ** (beyond / HALVED_EVERY), Math.min(SHORTEST_INTERVAL, interval));
  }
}
