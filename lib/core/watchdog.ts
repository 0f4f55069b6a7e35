import { clock, drift, MIN_RENEWED_TTL, wasSuspended } from '../internal/clock';
import { TimeHeap, WakeTimer } from '../internal/timers';
import { SILENT } from '../redis/silence-times';
import type { Hold } from './hold';
import type { WatchdogOfHold } from './of-hold';

/**
 * ms; the shortest interval between two renewals of a hold, however short its ttl: it limits the commands a second.
 */
const LEAST_INTERVAL = MIN_RENEWED_TTL / 3;

/**
 * Watches over all holds of a registry from one timer. It renews those that are due, one right after the other, so
 * that they go to Redis together, and ends each whose deadline has come. Holds that are not due cost a tick nothing.
 * The timer does not keep the process alive.
 */
export class Watchdog implements WatchdogOfHold<Hold> {
  readonly #commandTimeout: number;
  readonly #onOverdue: () => void;
  /**
   * Holds that will be renewed or asked about, by that time or their deadline, whichever comes first. An entry may be
   * due earlier than its hold; the tick inserts it again then.
   */
  #waiting = new TimeHeap<Hold>();
  /** All others, by their deadline. */
  #ending = new TimeHeap<Hold>();
  /** No hold has a lower drift. */
  #leastDrift = Number.POSITIVE_INFINITY;
  readonly #timer = new WakeTimer(() => this.#tick(), false);
  #askedAt = Number.NEGATIVE_INFINITY;
  /** When all holds were to be asked about: a hold that was confirmed before then is not passed on. */
  askedAboutAllAt = Number.NEGATIVE_INFINITY;

  /** `onOverdue` is called when a renewal of a hold that is overdue has failed. */
  constructor(commandTimeout: number, onOverdue: () => void) {
    this.#commandTimeout = commandTimeout;
    this.#onOverdue = onOverdue;
  }

  /** A renewal of it may be in flight already. */
  add(hold: Hold, now: number): void {
    const interval = renewalInterval(hold);
    // Sooner when the reply that granted it came late, so that the renewal has time to be answered.
    if (hold.unread === 0) this.#schedule(hold, Math.min(now + interval, hold.keyUntil - interval));
    else this.#file(hold);
  }

  /** A renewal that was sent at `sentAt` has ended: schedules the next one, or the next try. */
  renewed(hold: Hold, sentAt: number, isConfirmed: boolean): void {
    if (!hold.isHeld) return;
    const now = clock.now();
    if (!isConfirmed && isOverdue(hold, now)) this.#onOverdue();
    const interval = renewalInterval(hold);
    const retry = Math.min(interval, hold.keyUntil - sentAt) / 6;
    this.#schedule(hold, sentAt + (isConfirmed ? interval : retry), sentAt + LEAST_INTERVAL);
    // At once where it is due: after the next tick of the event loop a busy process may block it again.
    if (hold.unread === 0 && timeOfRenewal(hold) <= now && now < hold.until) this.#renew(hold, now, drift(now));
  }

  /** Its deadline was moved by somebody else. */
  moved(hold: Hold): void {
    if (hold.isHeld) this.#file(hold);
  }

  /**
   * The timer is left as it is: to set it again at every unlock would cost more than one tick that finds nothing due.
   */
  remove(hold: Hold): void {
    this.#waiting.remove(hold);
    this.#ending.remove(hold);
  }

  /** Holds were noticed that must not be relied on: asks Redis now, but not within 10 ms of the last question. */
  hurry(): void {
    this.#timer.by(Math.max(clock.now(), this.#askedAt + LEAST_INTERVAL));
  }

  /** Somebody else may have released the lock: asks about this hold now, or at this time, or after what is in flight. */
  askAbout(hold: Hold, at = 0): void {
    hold.renewAt = Math.floor(Math.min(Math.max(clock.now(), at), timeOfRenewal(hold)));
    this.moved(hold);
  }

  /**
   * A connection was made again, perhaps to a server that lost its data: asks about every hold now. A pool may report
   * many connections at once.
   */
  askAboutAll(): void {
    const now = clock.now();
    this.askedAboutAllAt = now;
    const soon = Math.max(now, this.#askedAt + LEAST_INTERVAL);
    for (const hold of this.#holds) {
      hold.renewAt = Math.floor(now);
      this.#file(hold, soon);
    }
  }

  /** Leaves no timer behind, and no hold that nothing would end. */
  close(): void {
    for (const hold of this.#holds) hold.lose('closed');
    this.#waiting = new TimeHeap();
    this.#ending = new TimeHeap();
    this.#timer.close();
  }

  get #holds(): Hold[] {
    return [...this.#waiting.members, ...this.#ending.members];
  }

  /** Sooner if it was asked about meanwhile, but not before `soonest`. */
  #schedule(hold: Hold, renewAt: number, soonest = 0): void {
    const next = hold.mayRenewAt(renewAt) ? renewAt : Number.POSITIVE_INFINITY;
    const at = Math.max(Math.min(next, timeOfRenewal(hold)), soonest);
    // Rounded up: no interval is shorter than the least one.
    hold.renewAt = at === Number.POSITIVE_INFINITY ? undefined : Math.ceil(at);
    this.#file(hold);
  }

  /** Puts it where its next time says, and sees to it that the timer fires then, or at `soonest`. */
  #file(hold: Hold, soonest = Number.NEGATIVE_INFINITY): void {
    this.#leastDrift = Math.min(this.#leastDrift, hold.drift);
    const { renewAt, until, unread } = hold;
    const isWaiting = unread === 0 && renewAt !== undefined;
    const time = isWaiting ? Math.min(until, renewAt) : until;
    const filedFor = this.#waiting.timeOf(hold);
    if (filedFor !== undefined && filedFor <= time) return;
    this.remove(hold);
    if (isWaiting) this.#waiting.add(hold, time);
    else this.#ending.add(hold, time);
    this.#timer.by(Math.max(time, soonest));
  }

  #tick(): void {
    const now = clock.now();
    const driftNow = drift(now);
    if (wasSuspended(this.#leastDrift, driftNow)) this.#askSuspects(now, driftNow);
    // All are taken out first: loss listeners may unlock others, or have them asked about.
    for (const hold of this.#takeDue(now)) {
      if (!hold.isHeld) continue;
      // While an answer may lie unread, it is not lost. Reading the answer puts it back.
      if (hold.until <= now) hold.loseIfDue(now);
      else if (hold.unread === 0 && isSoon(hold, now)) this.#renew(hold, now, driftNow);
      else this.#file(hold);
    }
    this.#timer.by(Math.min(this.#waiting.earliest, this.#ending.earliest));
  }

  /**
   * Takes out the holds whose time has come. Holds that will be due soon are renewed too: those that were taken one
   * by one then go together.
   */
  #takeDue(now: number): Hold[] {
    const due: Hold[] = [];
    for (let { first } = this.#ending; first !== undefined && this.#ending.earliest <= now; { first } = this.#ending) {
      due.push(first);
      this.#ending.remove(first);
    }
    for (let { first } = this.#waiting; first !== undefined; { first } = this.#waiting) {
      if (this.#waiting.earliest > now && !isSoon(first, now)) break;
      due.push(first);
      this.#waiting.remove(first);
    }
    return due;
  }

  /** Has Redis asked now about the holds that must not be relied on. */
  #askSuspects(now: number, driftNow: number): void {
    this.#leastDrift = Number.POSITIVE_INFINITY;
    for (const hold of this.#holds) {
      if (hold.unread === 0 && hold.isSuspectAt(driftNow)) hold.renewAt = Math.floor(now);
      this.#file(hold, now + LEAST_INTERVAL);
    }
  }

  #renew(hold: Hold, now: number, driftNow: number): void {
    this.#askedAt = now;
    hold.renewAt = undefined;
    // Half of what is left, so that there is time for another try.
    const timeout = Math.min(Math.max((hold.keyUntil - now) / 2, LEAST_INTERVAL), this.#commandTimeout);
    // If Redis confirms the hold, this entry stays.
    const next = Math.min(hold.until, now + renewalInterval(hold));
    this.remove(hold);
    this.#waiting.add(hold, next);
    this.#timer.by(next);
    hold.renewInBackground(timeout, now, driftNow);
  }
}

function isSoon(hold: Hold, now: number): boolean {
  return timeOfRenewal(hold) - renewalInterval(hold) / 4 <= now;
}

function timeOfRenewal({ renewAt = Number.POSITIVE_INFINITY }: Hold): number {
  return renewAt;
}

/** ms; `ttl`: of what is renewed. */
function renewalInterval(hold: Hold, ttl = hold.lease?.renewedTtl ?? hold.ttl): number {
  return Math.max(ttl / 3, LEAST_INTERVAL);
}

/** A third of its ttl is left, since it could not be renewed, for so long that Redis counts as silent. */
export function isOverdue(hold: Hold, now: number): boolean {
  const interval = renewalInterval(hold, hold.ttl);
  return hold.mayRenewAt(now) && hold.keyUntil - now <= interval && now - hold.sentAt >= interval + SILENT;
}
