import { clock, MAX_DELAY } from '../internal/clock';
import { type Linked, LinkedList } from '../internal/linked-list';

/** ms; the shortest interval between two renewals of a lease, however short its ttl: it limits the commands a second. */
const LEAST_INTERVAL = 10;

/** What the watchdog knows of a lease. Times are on the monotonic clock. */
export interface WatchedLease extends Linked<WatchedLease> {
  /** ms */
  readonly ttl: number;
  /** The deadline: the lease ends then, unless it is renewed. */
  readonly until: number;
  readonly isHeld: boolean;
  /** Renewals in flight whose answer has not been read. */
  readonly unread: number;
  /** Kept by the watchdog: when to renew it, or to ask about it; `Infinity`: not at all. */
  renewAt: number;
  /** Whether only Redis can say if the lease is still held, since the wall clock has run ahead of the monotonic one. */
  isSuspectAt(drift: number): boolean;
  /** Whether a renewal at this time may extend it. */
  mayRenewAt(time: number): boolean;
  /**
   * Extends it where it may be renewed, and else only asks about it. Tells the watchdog when Redis has answered. `now`
   * and `drift` as read before.
   */
  renewInBackground(timeout: number, now: number, drift: number): void;
  /** Ends the lease if its deadline has come. */
  loseIfDue(now: number): void;
}

/**
 * Watches over all leases of a registry from one timer. It renews those that are due, in one tick of the event loop, so
 * that they go to Redis together, and ends each whose deadline has come. The timer does not keep the process alive.
 */
export class Watchdog {
  readonly #commandTimeout: number;
  #leases = new LinkedList<WatchedLease>();
  #timer: NodeJS.Timeout | undefined;
  #wakesAt = Number.POSITIVE_INFINITY;
  #askedAt = Number.NEGATIVE_INFINITY;

  constructor(commandTimeout: number) {
    this.#commandTimeout = commandTimeout;
  }

  /** A renewal of it may be in flight already. */
  add(lease: WatchedLease, now: number): void {
    this.#leases.append(lease);
    const interval = renewalInterval(lease);
    // Sooner when the reply that granted it came late, so that the renewal has time to be answered.
    if (lease.unread === 0) this.#schedule(lease, Math.min(now + interval, lease.until - interval));
    else this.#wakeBy(lease.until);
  }

  /** A renewal that was sent at `sentAt` has ended: schedules the next one, or the next try. */
  renewed(lease: WatchedLease, sentAt: number, isConfirmed: boolean): void {
    if (!lease.isHeld) return;
    const now = clock.now();
    const interval = renewalInterval(lease);
    const retry = Math.min(interval, lease.until - now) / 6;
    this.#schedule(lease, Math.max(isConfirmed ? sentAt + interval : now + retry, now + LEAST_INTERVAL));
  }

  /** The timer is left as it is: to set it again at every unlock would cost more than one tick that finds nothing due. */
  remove(lease: WatchedLease): void {
    this.#leases.remove(lease);
  }

  /** Leases were noticed that must not be relied on: asks Redis about them now, unless it has just been asked. */
  hurry(): void {
    this.#wakeBy(Math.max(clock.now(), this.#askedAt + LEAST_INTERVAL));
  }

  /** Somebody else may have released the lock: asks about this lease now. */
  askAbout(lease: WatchedLease): void {
    const now = clock.now();
    lease.renewAt = now;
    this.#wakeBy(now);
  }

  /**
   * A connection was made again, perhaps to a server that lost its data: asks about every lease now. A pool may report
   * many connections at once.
   */
  askAboutAll(): void {
    const now = clock.now();
    for (const lease of this.#leases) lease.renewAt = now;
    this.#wakeBy(Math.max(now, this.#askedAt + LEAST_INTERVAL));
  }

  /** Leaves no timer behind. */
  close(): void {
    this.#leases = new LinkedList();
    clock.clearTimeout(this.#timer);
  }

  #schedule(lease: WatchedLease, renewAt: number): void {
    lease.renewAt = lease.mayRenewAt(renewAt) ? renewAt : Number.POSITIVE_INFINITY;
    this.#wakeBy(Math.min(lease.until, lease.renewAt));
  }

  #wakeBy(time: number): void {
    if (time >= this.#wakesAt) return;
    clock.clearTimeout(this.#timer);
    this.#wakesAt = time;
    this.#timer = clock.setTimeout(() => this.#tick(), Math.max(1, Math.min(time - clock.now(), MAX_DELAY)));
    this.#timer.unref?.();
  }

  #tick(): void {
    this.#wakesAt = Number.POSITIVE_INFINITY;
    const now = clock.now();
    const drift = clock.wallNow() - now;
    let next = Number.POSITIVE_INFINITY;
    // Iterate over a copy: loss listeners may unlock other leases.
    for (const lease of [...this.#leases]) {
      if (!lease.isHeld) continue;
      if (lease.until <= now) {
        lease.loseIfDue(now);
        if (lease.isHeld) next = Math.min(next, now + LEAST_INTERVAL);
        continue;
      }
      next = Math.min(next, lease.until);
      if (lease.unread > 0) continue;
      // Leases that will be due soon are renewed too: those that were taken one by one then go together.
      const isDue = lease.renewAt - renewalInterval(lease) / 4 <= now || lease.isSuspectAt(drift);
      if (isDue) this.#renew(lease, now, drift);
      else next = Math.min(next, lease.renewAt);
    }
    this.#wakeBy(next);
  }

  #renew(lease: WatchedLease, now: number, drift: number): void {
    this.#askedAt = now;
    // Half of what is left, so that there is time for another try.
    const timeout = Math.min(Math.max((lease.until - now) / 2, LEAST_INTERVAL), this.#commandTimeout);
    lease.renewInBackground(timeout, now, drift);
  }
}

function renewalInterval({ ttl }: WatchedLease): number {
  return Math.max(ttl / 3, LEAST_INTERVAL);
}
