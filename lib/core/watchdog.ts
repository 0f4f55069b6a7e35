import { clock, drift, MIN_RENEWED_TTL, wasSuspended } from '../internal/clock';
import { type Timed, TimeHeap, WakeTimer } from '../internal/timers';
import { SILENT } from './availability';

/**
 * ms; the shortest interval between two renewals of a lease, however short its ttl: it limits the commands a second.
 */
const LEAST_INTERVAL = MIN_RENEWED_TTL / 3;

/** What the watchdog knows of a lease. Times are on the monotonic clock. */
export interface WatchedLease extends Timed {
  /** ms */
  readonly ttl: number;
  /** The deadline: the lease ends then, unless it is renewed. */
  readonly until: number;
  /** When the last request was sent that Redis confirmed. */
  readonly sentAt: number;
  readonly isHeld: boolean;
  /** Renewals in flight whose answer has not been read. */
  readonly unread: number;
  /** Kept by the watchdog: when to renew it, or to ask about it; `undefined`: not at all. Whole ms. */
  renewAt: number | undefined;
  /** The drift between the clocks when its deadline was measured. */
  readonly drift: number;
  /** Whether only Redis can say if the lease is still held, since the wall clock has run ahead of the monotonic one. */
  isSuspectAt(drift: number): boolean;
  /** Whether a renewal at this time may extend it. */
  mayRenewAt(time: number): boolean;
  /**
   * Extends it where it may be renewed, and else only asks about it. Notifies the watchdog when Redis has answered.
   * `now` and `drift` as read before.
   */
  renewInBackground(timeout: number, now: number, drift: number): void;
  /** Ends the lease if its deadline has come. */
  loseIfDue(now: number): void;
}

/**
 * Watches over all leases of a registry from one timer. It renews those that are due, one right after the other, so
 * that they go to Redis together, and ends each whose deadline has come. Leases that are not due cost a tick nothing.
 * The timer does not keep the process alive.
 */
export class Watchdog {
  readonly #commandTimeout: number;
  readonly #onOverdue: () => void;
  /**
   * Leases that will be renewed or asked about, by that time or their deadline, whichever comes first. An entry may be
   * due earlier than its lease; the tick inserts it again then.
   */
  #waiting = new TimeHeap<WatchedLease>();
  /** All others, by their deadline. */
  #ending = new TimeHeap<WatchedLease>();
  /** No lease has a lower drift. */
  #leastDrift = Number.POSITIVE_INFINITY;
  readonly #timer = new WakeTimer(() => this.#tick(), false);
  #askedAt = Number.NEGATIVE_INFINITY;

  /** `onOverdue` is called when a renewal of a lease that is overdue has failed. */
  constructor(commandTimeout: number, onOverdue: () => void) {
    this.#commandTimeout = commandTimeout;
    this.#onOverdue = onOverdue;
  }

  /** A renewal of it may be in flight already. */
  add(lease: WatchedLease, now: number): void {
    this.#leastDrift = Math.min(this.#leastDrift, lease.drift);
    const interval = renewalInterval(lease);
    // Sooner when the reply that granted it came late, so that the renewal has time to be answered.
    if (lease.unread === 0) this.#schedule(lease, Math.min(now + interval, lease.until - interval));
    else this.#file(lease);
  }

  /** A renewal that was sent at `sentAt` has ended: schedules the next one, or the next try. */
  renewed(lease: WatchedLease, sentAt: number, isConfirmed: boolean): void {
    if (!lease.isHeld) return;
    const now = clock.now();
    if (!isConfirmed && isOverdue(lease, now)) this.#onOverdue();
    const interval = renewalInterval(lease);
    const retry = Math.min(interval, lease.until - sentAt) / 6;
    this.#schedule(lease, sentAt + Math.max(isConfirmed ? interval : retry, LEAST_INTERVAL));
    // At once where it is due: after the next tick of the event loop a busy process may block it again.
    if (lease.unread === 0 && lease.renewAt !== undefined && lease.renewAt <= now && now < lease.until)
      this.#renew(lease, now, drift(now));
  }

  /** Its deadline was moved by somebody else. */
  moved(lease: WatchedLease): void {
    if (lease.isHeld) this.#file(lease);
  }

  /**
   * The timer is left as it is: to set it again at every unlock would cost more than one tick that finds nothing due.
   */
  remove(lease: WatchedLease): void {
    this.#waiting.remove(lease);
    this.#ending.remove(lease);
  }

  /** Leases were noticed that must not be relied on: asks Redis now, but not within 10 ms of the last question. */
  hurry(): void {
    this.#timer.by(Math.max(clock.now(), this.#askedAt + LEAST_INTERVAL));
  }

  /** Somebody else may have released the lock: asks about this lease now. */
  askAbout(lease: WatchedLease): void {
    lease.renewAt = Math.floor(clock.now());
    this.#file(lease);
  }

  /**
   * A connection was made again, perhaps to a server that lost its data: asks about every lease now. A pool may report
   * many connections at once.
   */
  askAboutAll(): void {
    const now = clock.now();
    const soon = Math.max(now, this.#askedAt + LEAST_INTERVAL);
    for (const lease of this.#leases) {
      lease.renewAt = Math.floor(now);
      this.#file(lease, soon);
    }
  }

  /** Leaves no timer behind. */
  close(): void {
    this.#waiting = new TimeHeap();
    this.#ending = new TimeHeap();
    this.#timer.cancel();
  }

  get #leases(): WatchedLease[] {
    return [...this.#waiting.members, ...this.#ending.members];
  }

  #schedule(lease: WatchedLease, renewAt: number): void {
    // Rounded up: no interval is shorter than the least one.
    lease.renewAt = lease.mayRenewAt(renewAt) ? Math.ceil(renewAt) : undefined;
    this.#file(lease);
  }

  /** Puts it where its next time says, and sees to it that the timer fires then, or at `soonest`. */
  #file(lease: WatchedLease, soonest = Number.NEGATIVE_INFINITY): void {
    const { renewAt, until, unread } = lease;
    const isWaiting = unread === 0 && renewAt !== undefined;
    const time = isWaiting ? Math.min(until, renewAt) : until;
    if (lease.position >= 0) {
      if (this.#waiting.has(lease) && this.#waiting.timeOf(lease) <= time) return;
      this.remove(lease);
    }
    if (isWaiting) this.#waiting.add(lease, time);
    else this.#ending.add(lease, time);
    this.#timer.by(Math.max(time, soonest));
  }

  #tick(): void {
    const now = clock.now();
    const driftNow = drift(now);
    const suspects = wasSuspended(this.#leastDrift, driftNow) ? this.#takeSuspects(now, driftNow) : [];
    // All are taken out first: loss listeners may unlock others, or have them asked about.
    for (const lease of [...suspects, ...this.#takeDue(now)]) {
      if (!lease.isHeld) continue;
      if (lease.until <= now) this.#end(lease, now);
      else if (lease.unread === 0 && isSoon(lease, now)) this.#renew(lease, now, driftNow);
      else this.#file(lease);
    }
    this.#timer.by(Math.min(this.#waiting.earliest, this.#ending.earliest));
  }

  /**
   * Takes out the leases whose time has come. Leases that will be due soon are renewed too: those that were taken one
   * by one then go together.
   */
  #takeDue(now: number): WatchedLease[] {
    const due: WatchedLease[] = [];
    for (let { first } = this.#ending; first !== undefined && this.#ending.earliest <= now; { first } = this.#ending) {
      due.push(first);
      this.#ending.remove(first);
    }
    for (let { first } = this.#waiting; first !== undefined; { first } = this.#waiting) {
      if (this.#waiting.earliest > now && (first.unread > 0 || !isSoon(first, now))) break;
      due.push(first);
      this.#waiting.remove(first);
    }
    return due;
  }

  /** Takes out the leases about which Redis has to be asked in any case. */
  #takeSuspects(now: number, driftNow: number): WatchedLease[] {
    const suspects = this.#leases.filter((lease) => lease.unread === 0 && lease.isSuspectAt(driftNow));
    this.#leastDrift = this.#leases.reduce((least, lease) => Math.min(least, lease.drift), Number.POSITIVE_INFINITY);
    for (const lease of suspects) {
      this.remove(lease);
      lease.renewAt = Math.floor(now);
    }
    return suspects;
  }

  #end(lease: WatchedLease, now: number): void {
    lease.loseIfDue(now);
    if (!lease.isHeld) return;
    // An answer may lie unread.
    this.remove(lease);
    this.#ending.add(lease, now + LEAST_INTERVAL);
  }

  #renew(lease: WatchedLease, now: number, driftNow: number): void {
    this.#askedAt = now;
    // Half of what is left, so that there is time for another try.
    const timeout = Math.min(Math.max((lease.until - now) / 2, LEAST_INTERVAL), this.#commandTimeout);
    // If Redis confirms the lease, this entry stays.
    const next = Math.min(lease.until, now + renewalInterval(lease));
    this.remove(lease);
    this.#waiting.add(lease, next);
    this.#timer.by(next);
    lease.renewInBackground(timeout, now, driftNow);
  }
}

function isSoon(lease: WatchedLease, now: number): boolean {
  return lease.renewAt !== undefined && lease.renewAt - renewalInterval(lease) / 4 <= now;
}

function renewalInterval({ ttl }: WatchedLease): number {
  return Math.max(ttl / 3, LEAST_INTERVAL);
}

/** A third of its ttl is left, since it could not be renewed, for so long that Redis counts as silent. */
export function isOverdue(lease: WatchedLease, now: number): boolean {
  const interval = renewalInterval(lease);
  return lease.mayRenewAt(now) && lease.until - now <= interval && now - lease.sentAt >= interval + SILENT;
}
