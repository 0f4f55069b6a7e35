import { clock } from '../internal/clock';

/** ms; Redisson's spin lock sleeps for up to 128 ms between two attempts, Spring's for 100 ms by default. */
const SHORTEST_PAUSE = 130;
const LONGEST_PAUSE = 500;

/** While no poller is known, it takes at least this many times the length of a pause from one pause to the next. */
const SELDOM = 38;

/** ms for which a waiter that listens polls at its usual pace in any case; one that only polls does so for longer. */
export const PATIENCE = 300;
export const PATIENCE_OF_POLLING = 2_000;

/** ms from one pause to the next, at least, while no poller is known. */
const WHILE_UNKNOWN = 5_000;
/** ms to the next pause, after one in which the lock was taken. */
const AFTER_USE = 400;
/** ms from one pause to the next, at most, while a poller is known: each unused pause doubles them. */
const WHILE_KNOWN = 1_600;

/** ms for which others are known to poll after the last sign of it. */
const KNOWN_FOR = 60_000;

/** ms; a waiter has polled at least once in this time, so a longer silence means that nobody waited. */
const LONGEST_SILENCE = 1_500;

/** ms; one change of holders without a message may be a message that was lost. Two within this time are a sign. */
const TWO_CHANGES = 2_500;

/** ms; after a sign that the holders change without messages, a waiter polls faster for this long. */
const CHANGING = 1_000;

/** ms; a lock that is acquired again within this time after its release may be busy all the time. */
export const SOON = 100;

/** ms; the faster polls: the interval is halved each time, down to the shortest one. */
const HALVED_EVERY = 250;
const SHORTEST_INTERVAL = 3;

/**
 * What is known of others that poll for one lock and publish no releases: Spring's SPIN_LOCK, Redisson's spin lock, a
 * loop of SET NX. Redis does not show them, so they have to be detected.
 *
 * A lock that is in demand all the time is left free now and then for a little more than a polling interval, and waiters
 * that listen are not notified. Then only a poller can have taken it. From then on there are more of these pauses, until
 * no poller was seen for a minute. One process pauses for all: the others hear of it.
 *
 * A poller that takes the lock over and over leaves it free for moments only, and notifies nobody. A waiter that sees
 * the holders change like that polls faster and faster.
 */
export class Pollers {
  readonly #idleBetweenTries: number;
  readonly #patience: number;
  readonly #pause: number;
  readonly #seldom: number;
  /** ms from one pause to the next. */
  #interval: number;
  /** Since when this process has held the lock or waited for it, without a break that is as long as a pause. */
  #busySince = Number.POSITIVE_INFINITY;
  #releasedAt = Number.NEGATIVE_INFINITY;
  /** When the last pause began, be it of this process or of another one. */
  #pausedAt = Number.NEGATIVE_INFINITY;
  /** Of the last pause of this process. */
  #pauseEndsAt = Number.NEGATIVE_INFINITY;
  /** Runs while the lock is left to pollers, and nobody was notified that it is free. */
  #takingBack: NodeJS.Timeout | undefined;
  /** Nobody was notified of the last release. */
  #isUnheard = false;
  /** The next attempt tells whether a poller took the lock. */
  #isWatching = false;
  #seenAt = Number.NEGATIVE_INFINITY;
  /** The last refusal since this process had the lock, and the first of that wait. */
  #refusal: { readonly at: number; readonly remaining: number; readonly hints: number } | undefined;
  #waitingSince = 0;
  /** When the holders changed without a message, once and repeatedly. */
  #changedAt = Number.NEGATIVE_INFINITY;
  #changingAt = Number.NEGATIVE_INFINITY;

  /** `patience`: ms for which a waiter polls at its usual pace in any case. */
  constructor(idleBetweenTries: number, patience: number) {
    this.#idleBetweenTries = idleBetweenTries;
    this.#patience = patience;
    this.#pause = Math.min(Math.max(1.1 * idleBetweenTries, SHORTEST_PAUSE), LONGEST_PAUSE);
    this.#seldom = Math.max(WHILE_UNKNOWN, SELDOM * this.#pause);
    this.#interval = this.#seldom;
  }

  /** This process acquired the lock by an attempt that was sent then. */
  acquired(sentAt: number): void {
    const busyUntil = this.#refusal === undefined ? this.#releasedAt + this.#pause : this.#refusal.at + LONGEST_SILENCE;
    // Pollers had it during the wait: their turn is over.
    const wasPolled = this.#refusal !== undefined && this.#seenAt >= this.#waitingSince;
    if (sentAt >= busyUntil || sentAt < this.#busySince || wasPolled) this.#busySince = sentAt;
    this.#waitingSince = sentAt;
    this.#refusal = undefined;
    if (this.#isWatching) this.pauseOver(false, sentAt);
  }

  /** An attempt was refused. `remaining`: ms that the holder's key still has to live; `hints`: messages heard so far. */
  refused(at: number, remaining: number, hints: number): void {
    const last = this.#refusal;
    this.#refusal = { at, remaining, hints };
    const isFirst = last === undefined || last.remaining === 0 || at - last.at >= LONGEST_SILENCE;
    if (isFirst) this.#waitingSince = at;
    if (this.#isWatching) this.pauseOver(true, at);
    if (last === undefined || hints !== last.hints || remaining <= last.remaining) return;
    // A renewal makes a key live longer too, but only after a quarter of its life.
    const age = remaining - last.remaining + (at - last.at);
    if (age > 0.2 * remaining) return;
    if (at - this.#changedAt < TWO_CHANGES) this.#seen(at);
    this.#changedAt = at;
  }

  /** Another process, which is not a poller, holds the lock. */
  waiting(at: number): void {
    this.#refusal = { at, remaining: 0, hints: 0 };
    if (this.#isWatching && at >= this.#pauseEndsAt) this.pauseOver(false, at);
  }

  /** This process released the lock. `isUnheard`: nobody was notified. */
  released(at: number, isUnheard: boolean): void {
    this.#releasedAt = at;
    this.#isUnheard = isUnheard;
  }

  /** The lock must be left free, and not handed over. */
  isPauseDue(now: number): boolean {
    return this.busyFor(now) >= this.#interval;
  }

  /** ms for which this process has been busy with the lock, without a pause. */
  busyFor(now: number): number {
    return now - Math.max(this.#busySince, this.#pausedAt);
  }

  /** ms that a pause lasts. */
  get pause(): number {
    return this.#pause;
  }

  /** ms from one pause to the next. */
  get interval(): number {
    return this.#interval;
  }

  /** This process released the lock. `pauseIn`: 0 if it was left to pollers, ms until it may be, or not asked for. */
  releasedBy(at: number, pauseIn: number | undefined): void {
    if (pauseIn === 0) this.beginPause(at, true);
    else if (pauseIn !== undefined) this.#pausedAt = at + pauseIn - this.#interval;
    this.#releasedAt = at;
  }

  /** A pause began: another process has left the lock free, or this one does so in the ordinary course. */
  paused(at: number): void {
    this.#pausedAt = at;
  }

  /** This process left the lock free. `isWatching`: the next attempt tells whether a poller has taken it. */
  beginPause(at: number, isWatching: boolean): void {
    this.#releasedAt = at;
    this.#pausedAt = at;
    this.#pauseEndsAt = at + this.#pause;
    this.#isWatching = isWatching;
  }

  /** This process left the lock free. `onLate` is called when nobody has taken it back by `late` ms after the pause. */
  takeBackWithin(late: number, onLate: () => void): void {
    this.#takingBack = clock.setTimeout(() => {
      this.#takingBack = undefined;
      onLate();
    }, this.#pause + late);
    this.#takingBack.unref?.();
  }

  /** An attempt was answered: the lock is taken, or its holder will publish its release. */
  takenBack(): void {
    if (this.#takingBack === undefined) return;
    clock.clearTimeout(this.#takingBack);
    this.#takingBack = undefined;
  }

  /** ms for which a lock that was left free is to stay so. A release that was due for a pause becomes one now. */
  get pauseBeforeAttempt(): number {
    const isDue = this.isPauseDue(this.#releasedAt);
    if (isDue && clock.now() < this.#releasedAt + this.#pause) this.beginPause(this.#releasedAt, this.#isUnheard);
    return this.pauseLeft;
  }

  /** ms for which a lock that this process left free is to stay so. */
  get pauseLeft(): number {
    // The clock is not read where the lock was not left free.
    return this.#pauseEndsAt <= this.#releasedAt ? 0 : Math.max(0, this.#pauseEndsAt - clock.now());
  }

  /** ms until the next poll of a waiter whose usual interval is `usual`. */
  pollingInterval(usual: number): number {
    const now = clock.now();
    if (now - this.#seenAt >= KNOWN_FOR && now - this.#changedAt >= CHANGING) return usual;
    const interval = Math.min(usual, this.#idleBetweenTries);
    const impatience = now - this.#waitingSince - this.#patience;
    if (impatience <= 0 || now - this.#changingAt >= CHANGING) return interval;
    return Math.max(interval / 2 ** (impatience / HALVED_EVERY), Math.min(SHORTEST_INTERVAL, interval));
  }

  /** Whether a poller took the lock that was left free. */
  pauseOver(isTaken: boolean, at: number): void {
    this.#isWatching = false;
    if (isTaken) this.#seen(at);
    else this.#interval = Math.min(2 * this.#interval, at - this.#seenAt < KNOWN_FOR ? WHILE_KNOWN : this.#seldom);
  }

  #seen(at: number): void {
    this.#seenAt = at;
    this.#changingAt = at;
    this.#interval = AFTER_USE;
  }
}
