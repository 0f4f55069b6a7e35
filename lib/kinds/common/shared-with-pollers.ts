import { isWithoutHolder, nameIn } from '../../api/owner-name';
import type { Refusal } from '../../core/protocol';
import { clock } from '../../internal/clock';

/**
 * ms; the limits of a pause: 1.1 times `idleBetweenTries`. It outlasts the interval of most pollers, so that one that
 * waits makes an attempt in it. Redisson's spin lock sleeps for up to 128 ms between two attempts, Spring's for 100 ms
 * by default. A round trip and the delay of a busy machine are added to both.
 */
const SHORTEST_PAUSE = 145;
export const LONGEST_PAUSE = 500;

/** Between two pauses, a lock is busy for this many times their length. So they take a sixth of the time. */
const PAUSE_EVERY = 5;

/** The same while a process of this library takes the lock in the pauses. */
const PAUSE_AGAIN = 1;

/** ms by which a process may be late to take back a lock that it left to pollers. */
const TAKEN_BACK_LATE = 100;

/**
 * ms of waiting before a waiter that listens polls faster than `idleBetweenTries`; one that only polls waits longer.
 */
export const USUAL_PACE_FOR = 300;
export const USUAL_PACE_OF_POLLING = 1_000;

/** ms; the faster polls: the interval is halved every 250 ms, down to the shortest one, while holders change. */
const HALVED_EVERY = 250;
const SHORTEST_INTERVAL = 3;
const CHANGE_IS_RECENT = 1_000;

/** ms after a change of holders for which a waiter that listens polls at every `idleBetweenTries`. */
const CHANGE_IS_REMEMBERED = 60_000;

/** ms without a refusal after which the caller that was refused has given up: a waiter is refused at each poll. */
const REFUSAL_IS_REMEMBERED = 60_000;

/**
 * A renewal also prolongs a key, but by at least a quarter of its ttl: renewals come at a third, less the slack of the
 * watchdog. A gain below this part of the ttl is a new holder.
 */
const RENEWED_AFTER = 0.2;

/** What ends each pause that runs in a registry. */
export type Pauses = Set<() => Promise<void>>;

/** The holder's key, as a refusal found it: the ms that were left of it, and the releases noticed by then. */
interface HoldersKey {
  readonly at: number;
  readonly remaining: number;
  readonly hints: number;
}

/**
 * A lock may be shared with clients that take it by polling, and publish no releases: Spring's SPIN_LOCK, Redisson's
 * spin lock, a loop of SET NX. Redis does not show them. With the option `sharedWithPollers` there is one object for
 * each lock, and three rules:
 *
 * A busy lock goes from one caller to the next, and is never free for them. So it is left free now and then: when it has
 * been busy for five pauses, the process that releases it leaves it free for a pause. Waiters that listen are asked to
 * make no attempt meanwhile. One process pauses for all.
 *
 * A poller that takes the lock over and over leaves it free for moments only, and notifies nobody. A waiter that sees
 * the holder change like that polls faster and faster, until it has the lock.
 *
 * A process of type `spin` polls too, and up to eight times as often as others: it has most of the pauses. Where one took the
 * lock in a pause, the next pause comes sooner, and waiters that listen let others go first when it releases the lock.
 */
export class Pollers {
  /** ms that a pause lasts. */
  readonly pause: number;
  readonly #idleBetweenTries: number;
  readonly #usualPaceFor: number;
  readonly #pauses: Pauses | undefined;
  /** Since when the lock has not been free for a pause, as far as this process knows; `undefined`: it does not. */
  #busySince: number | undefined;
  #releasedAt = Number.NEGATIVE_INFINITY;
  /** Until when this process leaves it to pollers, and until when another one does. */
  #leftUntil = 0;
  #leftByOtherUntil = 0;
  /** A process of this library polls too: it took the lock in the last pause, before others that poll less often. */
  #isTakenFirst = false;
  /** Since when this process has waited for the lock, and the key of its last holder that may poll. */
  #waitsSince: number | undefined;
  #refusedAt = Number.NEGATIVE_INFINITY;
  #lastKey: HoldersKey | undefined;
  /** When the holder last changed without a message. */
  #changedAt = Number.NEGATIVE_INFINITY;

  /** `usualPaceFor`: ms for which a waiter polls at its usual pace in any case. */
  constructor(idleBetweenTries: number, usualPaceFor: number, pauses?: Pauses) {
    this.#idleBetweenTries = idleBetweenTries;
    this.#usualPaceFor = usualPaceFor;
    this.#pauses = pauses;
    this.pause = Math.min(Math.max(1.1 * idleBetweenTries, SHORTEST_PAUSE), LONGEST_PAUSE);
  }

  /** ms from the start of a pause to that of the next. */
  get interval(): number {
    return (this.#isTakenFirst ? PAUSE_AGAIN : PAUSE_EVERY) * this.pause;
  }

  /** A release at this time is to leave the lock to pollers. */
  isDue(now: number): boolean {
    return now - (this.#busySince ?? now) >= this.interval;
  }

  /** ms for which a free lock is to stay so. */
  get freeFor(): number {
    return Math.max(0, Math.max(this.#leftUntil, this.#leftByOtherUntil) - clock.now());
  }

  /**
   * The lock was left to pollers. `end` notifies waiters if the lock is still free when this process should have taken it
   * back. It never rejects. Absent: the server does that.
   */
  left(at: number, end?: () => Promise<void>): void {
    this.released(at);
    this.#leftUntil = this.#busySince = at + this.pause;
    if (end === undefined) return;
    const endNow = (): Promise<void> => {
      clock.clearTimeout(timer);
      this.#pauses?.delete(endNow);
      return end();
    };
    const timer = clock.setTimeout(() => void endNow(), this.pause + TAKEN_BACK_LATE);
    timer.unref?.();
    this.#pauses?.add(endNow);
  }

  /** A process said that it leaves the lock to pollers. It may be this one: its own message reaches it too. */
  announced(at: number): void {
    this.#lastKey = undefined;
    if (at < this.#leftUntil) return;
    this.#busySince = at + this.pause;
    // The other process takes the lock back first: otherwise this one would be taken for a poller.
    this.#leftByOtherUntil = at + this.pause + TAKEN_BACK_LATE;
  }

  /**
   * A release was published: a pause of another process is over. But one that polls leaves the lock free after its slice:
   * so a waiter lets others go first, unless it has waited for long.
   */
  announcedRelease(): void {
    const now = clock.now();
    const since = this.#waiterSince(now);
    const goesLast = this.#isTakenFirst && since !== undefined && now - since < PAUSE_EVERY * this.pause;
    this.#leftByOtherUntil = goesLast ? now + this.#idleBetweenTries : 0;
  }

  /** This process acquired the lock by an attempt that was sent then. */
  acquired(sentAt: number): void {
    const since = this.#waiterSince(sentAt);
    if (this.#leftUntil > 0 && since === undefined) this.#isTakenFirst = false;
    // The lock was free, or pollers had it.
    const isNew = since === undefined ? sentAt - this.#releasedAt >= this.pause : this.#changedAt >= since;
    if (isNew) this.#busySince = sentAt;
    this.#waitsSince = this.#lastKey = undefined;
  }

  released(at: number): void {
    this.#releasedAt = at;
    this.#leftUntil = this.#leftByOtherUntil = 0;
  }

  /** An attempt was refused. `remaining`: ms that are left of the holder's key; `hints`: releases noticed so far. */
  refused(at: number, { remaining, owner }: Pick<Refusal, 'remaining' | 'owner'>, hints: number): void {
    const last = this.#lastKey;
    if (this.#leftUntil > 0 && at - this.#leftUntil < TAKEN_BACK_LATE) {
      this.#isTakenFirst = nameIn(owner ?? '') !== undefined;
    }
    this.refusedByListener(at);
    // What is kept ends, and what is detached is adopted, without a message: a new holder then is no sign of pollers.
    if (isWithoutHolder(owner)) return;
    this.#lastKey = { at, remaining, hints };
    if (last !== undefined && isSuccessor(this.#lastKey, last)) this.#changedAt = at;
  }

  /** An attempt was refused, and the holder is no poller. */
  refusedByListener(at: number): void {
    const since = this.#waiterSince(at);
    // Nothing was known of the lock for long.
    if (since === undefined && at - this.#releasedAt >= this.interval) this.#busySince = at;
    this.#waitsSince = since ?? at;
    this.#refusedAt = at;
    this.#lastKey = undefined;
  }

  #waiterSince(now: number): number | undefined {
    return now - this.#refusedAt < REFUSAL_IS_REMEMBERED ? this.#waitsSince : undefined;
  }

  /** ms until the next poll of a waiter whose usual interval is `usual`. */
  pollingInterval(usual: number): number {
    const now = clock.now();
    const sinceChange = now - this.#changedAt;
    if (sinceChange >= CHANGE_IS_REMEMBERED) return usual;
    const interval = Math.min(usual, this.#idleBetweenTries);
    const beyond = now - (this.#waitsSince ?? now) - this.#usualPaceFor;
    if (beyond <= 0 || sinceChange >= CHANGE_IS_RECENT) return interval;
    return Math.max(interval / 2 ** (beyond / HALVED_EVERY), Math.min(SHORTEST_INTERVAL, interval));
  }
}

/** Whether a key belongs to a new holder, which took the lock without a message. */
function isSuccessor(key: HoldersKey, before: HoldersKey): boolean {
  const gained = key.remaining - before.remaining + (key.at - before.at);
  return key.hints === before.hints && key.remaining > before.remaining && gained <= RENEWED_AFTER * key.remaining;
}
