import { clock, MAX_DELAY } from './clock';
import type { Claim, LockStrategy, Ownership } from './strategies/strategy';

/** ms; no lease is renewed, or tried to be, more often than that, however short its ttl: it bounds the commands a second. */
const LEAST_INTERVAL = 10;

/** What the watchdog knows of a lease. Times are on the monotonic clock. */
export interface WatchedLease {
  readonly claim: Claim;
  /** The deadline: it ends then, unless it is renewed. */
  readonly until: number;
  /** After that it is not renewed any more; `-Infinity`: never. */
  readonly renewUntil: number;
  readonly isHeld: boolean;
  /** Kept by the watchdog: when the lease is to be renewed, `Infinity` for not at all, and whether a renewal is in flight. */
  renewAt: number;
  renewing: boolean;
  /** Whether the wall clock has run so far ahead of the monotonic one that only Redis can tell if the lease is still held. */
  isSuspectAt(drift: number): boolean;
  confirm(ownership: Ownership): void;
  loseByDeadline(): void;
}

/**
 * Watches over every lease of a registry from one timer: renews those that are due, together, and tells each whose
 * deadline has come. The timer does not keep the process alive.
 */
export class Watchdog {
  readonly #strategy: LockStrategy;
  readonly #commandTimeout: number;
  readonly #leases = new Set<WatchedLease>();
  #timer: NodeJS.Timeout | undefined;
  #wakesAt = Number.POSITIVE_INFINITY;

  constructor(strategy: LockStrategy, commandTimeout: number) {
    this.#strategy = strategy;
    this.#commandTimeout = commandTimeout;
  }

  add(lease: WatchedLease): void {
    this.#leases.add(lease);
    this.#schedule(lease, clock.now() + renewalInterval(lease));
  }

  /** The timer is left as it is: setting it anew at every unlock would cost more than one tick for nothing. */
  remove(lease: WatchedLease): void {
    this.#leases.delete(lease);
  }

  /** Somebody noticed that leases may not be relied on: asks Redis about them now. */
  hurry(): void {
    this.#wakeBy(clock.now());
  }

  /** Leaves no timer behind. */
  close(): void {
    this.#leases.clear();
    clock.clearTimeout(this.#timer);
  }

  #schedule(lease: WatchedLease, renewAt: number): void {
    lease.renewAt = renewAt < lease.renewUntil ? renewAt : Number.POSITIVE_INFINITY;
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
    const due: WatchedLease[] = [];
    let next = Number.POSITIVE_INFINITY;
    for (const lease of this.#leases) {
      if (lease.until <= now) {
        lease.loseByDeadline();
        continue;
      }
      next = Math.min(next, lease.until);
      if (lease.renewing) continue;
      // Those that will be due soon come along: leases that were taken one by one are then renewed together.
      if (lease.renewAt - renewalInterval(lease) / 4 <= now || lease.isSuspectAt(drift)) due.push(lease);
      else next = Math.min(next, lease.renewAt);
    }
    if (due.length > 0) void this.#renew(due, now);
    this.#wakeBy(next);
  }

  async #renew(leases: readonly WatchedLease[], now: number): Promise<void> {
    let timeout = this.#commandTimeout;
    for (const lease of leases) {
      lease.renewing = true;
      // Half of what is left, so that there is time for another try.
      timeout = Math.min(timeout, Math.max((lease.until - now) / 2, LEAST_INTERVAL));
    }
    const answers = await this.#strategy.renew(
      // A lease that is not to be renewed is only asked about.
      leases.map((lease) => ({ claim: lease.claim, ttl: now < lease.renewUntil ? lease.claim.ttl : 0 })),
      timeout,
    );
    const answeredAt = clock.now();
    leases.forEach((lease, i) => {
      const answer = answers[i];
      lease.renewing = false;
      if (answer === undefined) return;
      lease.confirm(answer);
      if (!lease.isHeld) return;
      const interval = renewalInterval(lease);
      const renewAt = answer.state === 'held' ? now + interval : answeredAt + interval / 6;
      this.#schedule(lease, Math.max(renewAt, answeredAt + LEAST_INTERVAL));
    });
  }
}

function renewalInterval({ claim }: WatchedLease): number {
  return Math.max(claim.ttl / 3, LEAST_INTERVAL);
}
