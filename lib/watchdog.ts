import { clock, MAX_DELAY } from './clock';
import { type Linked, LinkedList } from './linked-list';
import type { Claim, LockStrategy, Ownership } from './strategies/strategy';

/** ms; no lease is renewed, or tried to be, more often than that, however short its ttl: it bounds the commands a second. */
const LEAST_INTERVAL = 10;

/** What the watchdog knows of a lease. Times are on the monotonic clock. */
export interface WatchedLease extends Linked<WatchedLease> {
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
  /** Takes over what Redis said; `drift` as it was before Redis was asked. */
  confirm(ownership: Ownership, drift: number): void;
  loseByDeadline(): void;
}

/**
 * Watches over every lease of a registry from one timer: renews those that are due, together, and tells each whose
 * deadline has come. The timer does not keep the process alive.
 */
export class Watchdog {
  readonly #strategy: LockStrategy;
  readonly #commandTimeout: number;
  #leases = new LinkedList<WatchedLease>();
  #timer: NodeJS.Timeout | undefined;
  #wakesAt = Number.POSITIVE_INFINITY;
  #askedAt = Number.NEGATIVE_INFINITY;

  constructor(strategy: LockStrategy, commandTimeout: number) {
    this.#strategy = strategy;
    this.#commandTimeout = commandTimeout;
  }

  add(lease: WatchedLease, now: number): void {
    this.#leases.append(lease);
    this.#schedule(lease, now + renewalInterval(lease));
  }

  /** The timer is left as it is: setting it anew at every unlock would cost more than one tick for nothing. */
  remove(lease: WatchedLease): void {
    this.#leases.remove(lease);
  }

  /** Somebody noticed that leases may not be relied on: asks Redis about them now, unless it has just been asked. */
  hurry(): void {
    this.#wakeBy(Math.max(clock.now(), this.#askedAt + LEAST_INTERVAL));
  }

  /** Leaves no timer behind. */
  close(): void {
    this.#leases = new LinkedList();
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
    // Whoever hears of a loss may unlock others at once.
    for (const lease of [...this.#leases]) {
      if (!lease.isHeld) continue;
      if (lease.until <= now) {
        lease.loseByDeadline();
        if (lease.isHeld) next = Math.min(next, now + LEAST_INTERVAL);
        continue;
      }
      next = Math.min(next, lease.until);
      if (lease.renewing) continue;
      // Those that will be due soon come along: leases that were taken one by one are then renewed together.
      if (lease.renewAt - renewalInterval(lease) / 4 <= now || lease.isSuspectAt(drift)) due.push(lease);
      else next = Math.min(next, lease.renewAt);
    }
    for (const [timeout, leases] of this.#byPatience(due, now)) void this.#renew(leases, timeout, now, drift);
    this.#wakeBy(next);
  }

  /**
   * How long each may wait for an answer: half of what is left, so that there is time for another try. Those that can
   * wait about as long go together, so that none takes the time of one that has more.
   */
  #byPatience(leases: readonly WatchedLease[], now: number): Map<number, WatchedLease[]> {
    const groups = new Map<number, WatchedLease[]>();
    for (const lease of leases) {
      const patience = Math.max((lease.until - now) / 2, LEAST_INTERVAL);
      const timeout = Math.min(2 ** Math.floor(Math.log2(patience)), this.#commandTimeout);
      const group = groups.get(timeout);
      if (group === undefined) groups.set(timeout, [lease]);
      else group.push(lease);
    }
    return groups;
  }

  async #renew(leases: readonly WatchedLease[], timeout: number, now: number, drift: number): Promise<void> {
    this.#askedAt = now;
    for (const lease of leases) lease.renewing = true;
    const answers = await this.#strategy.renew(
      // A lease that is not to be renewed is only asked about.
      leases.map((lease) => ({ claim: lease.claim, ttl: now < lease.renewUntil ? lease.claim.ttl : -lease.claim.ttl })),
      timeout,
    );
    const answeredAt = clock.now();
    leases.forEach((lease, i) => {
      const answer = answers[i];
      lease.renewing = false;
      if (answer === undefined) return;
      lease.confirm(answer, drift);
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
