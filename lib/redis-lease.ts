import { clock, drift, pause } from './clock';
import { warn } from './diagnostics';
import { CannotAcquireLockError, LockLostError, LockReleaseError, leaseUnlocked } from './errors';
import type { HeldLease } from './holds';
import type { LockLostReason } from './lock-registry';
import { duration, type LockRequest, type RegistrySettings } from './options';
import type { Orphans } from './orphans';
import type { Redis } from './redis/client';
import { isFinal, isServerAnswer } from './redis/failure';
import type { Claim, Grant, LockStrategy, Ownership, Released } from './strategies/strategy';
import type { Watchdog, WatchedLease } from './watchdog';

/** Beyond so much between wall clock and monotonic clock, the machine was suspended (the monotonic one stands still then). */
const SUSPENDED = 100;

/** A release has at least so long, however little is left of its ttl: the answer decides whether it was a loss. */
const RELEASE_AT_LEAST = 250;

/** What the leases of a registry share. */
export interface LeaseServices {
  readonly settings: RegistrySettings;
  readonly redis: Redis;
  readonly strategy: LockStrategy;
  readonly watchdog: Watchdog;
  readonly orphans: Orphans;
}

/** Whoever has the local turn that goes with a lease. */
export interface LeaseKeeper {
  /** Hands the lock over to the next local caller; `undefined`: there is none; `unknown`: whose it is now is not known. */
  handOver(lease: RedisLease, timeout: number): Promise<Released | 'unknown' | undefined> | undefined;
  /** Called once, when the lease ended, by unlock or loss. */
  leaseOver(lease: RedisLease): void;
}

/** The lease of one acquisition. It ends by `unlock`, or by loss: by its deadline, or as soon as Redis says "not yours". */
export class RedisLease implements HeldLease, WatchedLease {
  readonly key: string;
  readonly claim: Claim;
  readonly fencingToken: number | undefined;
  readonly renewUntil: number;
  renewAt = Number.POSITIVE_INFINITY;
  renewing = false;
  previous: WatchedLease | undefined;
  next: WatchedLease | undefined;

  readonly #services: LeaseServices;
  readonly #keeper: LeaseKeeper;
  #until: number;
  #drift: number;
  #loss: LockLostReason | undefined;
  #unlocking: Promise<void> | undefined;
  #abort: AbortController | undefined;
  /** A claim is under way, and nobody has looked yet whether its answer lies there. */
  #isClaimed: boolean;

  constructor(
    key: string,
    claim: Claim,
    grant: Grant,
    request: LockRequest,
    services: LeaseServices,
    keeper: LeaseKeeper,
  ) {
    this.key = key;
    this.claim = claim;
    this.fencingToken = grant.fencingToken;
    this.#services = services;
    this.#keeper = keeper;
    this.#until = grant.until;
    this.#drift = claim.drift;
    const now = clock.now();
    this.renewUntil = request.renew ? now + services.settings.maxHold : Number.NEGATIVE_INFINITY;
    services.watchdog.add(this, now);
    this.#isClaimed = grant.confirmation !== undefined;
    void grant.confirmation?.then((ownership) => {
      this.#isClaimed = false;
      this.confirm(ownership, claim.drift);
    });
  }

  /** The end of the lease on the monotonic clock, unless it is renewed. */
  get until(): number {
    return this.#until;
  }

  get isHeld(): boolean {
    return this.#loss === undefined && this.#unlocking === undefined;
  }

  get isUnlocked(): boolean {
    return this.#unlocking !== undefined;
  }

  get wasLost(): boolean {
    this.#loseIfDue();
    return this.#loss !== undefined;
  }

  get remaining(): number {
    // Asked of the clock at every read: after a pause of the process this runs before any timer does.
    if (!this.isHeld || this.#isSuspect()) return 0;
    return Math.max(0, this.#until - clock.now());
  }

  // Made when it is first asked for: most leases are given back before anybody looks.
  get signal(): AbortSignal {
    if (this.#abort === undefined) {
      this.#abort = new AbortController();
      if (this.#loss !== undefined) this.#abort.abort(this.lossError());
    }
    return this.#abort.signal;
  }

  assertHeld(): void {
    if (this.remaining > 0) return;
    this.#loseIfDue();
    if (this.#loss !== undefined) throw this.lossError();
    if (this.#unlocking !== undefined) throw leaseUnlocked(this.key);
    throw new LockLostError(this.key, 'unconfirmed');
  }

  /** A fresh error that says how this lease was lost. */
  lossError(result?: unknown): LockLostError {
    return new LockLostError(this.key, this.#loss ?? 'unconfirmed', result);
  }

  /**
   * The wall clock went on while the monotonic one stood still: the machine was suspended, or somebody set the clock.
   * Until Redis confirms it, the lease is not to be relied on.
   */
  #isSuspect(): boolean {
    const suspect = this.isSuspectAt(drift());
    if (suspect) this.#services.watchdog.hurry();
    return suspect;
  }

  /** As above, for a caller who has read the clocks already. A slow drift of the wall clock is harmless: renewals are frequent. */
  isSuspectAt(drift: number): boolean {
    return drift - this.#drift > SUSPENDED;
  }

  /**
   * Takes over what Redis said of the claim, unless the lease has ended since it was asked. `drift` is the difference
   * between wall clock and monotonic clock before it was asked.
   */
  confirm(ownership: Ownership, drift: number): void {
    if (!this.isHeld) return;
    if (ownership.state === 'held') {
      // After a suspension the old deadline is worth nothing; else it holds, since no script shortens a key's life.
      this.#until = this.isSuspectAt(drift) ? ownership.until : Math.max(this.#until, ownership.until);
      this.#drift = drift;
    } else if (ownership.state !== 'unknown') {
      this.lose(ownership.state);
    }
  }

  /** After a pause of the process the deadline may have come, and the timer that tells not have run yet. */
  #loseIfDue(now = clock.now()): void {
    if (this.isHeld && now >= this.#until) this.loseByDeadline();
  }

  loseByDeadline(): void {
    if (this.#isClaimed) {
      // After a pause of the event loop the answer may lie there: it is read before the lease is called lost.
      this.#isClaimed = false;
      void this.#loseUnlessAnswered();
      return;
    }
    this.lose(this.renewUntil > this.#until ? 'unconfirmed' : 'expired');
  }

  async #loseUnlessAnswered(): Promise<void> {
    await clock.immediate();
    await clock.immediate();
    this.#loseIfDue();
  }

  lose(reason: LockLostReason): void {
    if (!this.isHeld) return;
    this.#loss = reason;
    this.#services.watchdog.remove(this);
    this.#keeper.leaseOver(this);
    this.#abort?.abort(this.lossError());
  }

  async renew(ttl?: number, limit = Number.POSITIVE_INFINITY): Promise<void> {
    const atLeast = ttl === undefined ? this.claim.ttl : Math.ceil(duration('ttl', ttl));
    this.#loseIfDue();
    if (this.#loss !== undefined) throw this.lossError();
    if (this.#unlocking !== undefined) throw leaseUnlocked(this.key);
    const { strategy, settings } = this.#services;
    const timeout = Math.min(settings.commandTimeout, this.#until - clock.now(), limit);
    const driftBefore = drift();
    const [ownership] = await strategy.renew([{ claim: this.claim, ttl: atLeast }], timeout);
    if (ownership === undefined) return;
    this.confirm(ownership, driftBefore);
    if (this.#loss !== undefined) throw this.lossError();
    if (ownership.state === 'unknown') {
      throw new CannotAcquireLockError(`Lock "${this.key}" could not be renewed: Redis did not confirm it`, this.key, {
        cause: ownership.cause,
      });
    }
  }

  unlock(): Promise<void> {
    // The first call says how it ended; a second one only waits for it.
    if (this.#unlocking !== undefined) return this.#unlocking.catch(() => undefined);
    const now = clock.now();
    this.#loseIfDue(now);
    if (this.#loss !== undefined) {
      this.#unlocking = Promise.reject(this.lossError());
      // Where Redis has not said that it is not ours, it may stand there for a moment yet.
      this.#services.orphans.follow(this.claim);
    } else {
      // First of all: nobody may renew what is given back. The verdict of a renewal in flight no longer counts.
      this.#services.watchdog.remove(this);
      this.#unlocking = this.#release(now);
    }
    return this.#unlocking;
  }

  /** Hands the lock over to the next local caller, or releases it, and tries that again after a failure that passes. */
  async #release(now: number): Promise<void> {
    const { orphans, redis, settings, strategy } = this.#services;
    const disruptions = redis.disruptions;
    const bound = Math.min(settings.commandTimeout, Math.max(this.#until - now, RELEASE_AT_LEAST));
    const endsAt = now + bound;
    let timeout = bound;
    try {
      // Half of the time, so that there is some left for the release of what could not be handed over.
      const handingOver = this.#keeper.handOver(this, bound / 2);
      let outcome: Released | 'unknown' | undefined;
      if (handingOver !== undefined) {
        outcome = await handingOver;
        timeout = endsAt - clock.now();
      }
      let isRepeated = outcome === 'unknown';
      for (let interval = 10; outcome === undefined || outcome === 'unknown'; interval *= 2) {
        try {
          outcome = await strategy.release(this.claim, timeout);
        } catch (error) {
          if (isFinal(error) || clock.now() + interval >= endsAt) throw error;
          if (!isServerAnswer(error)) isRepeated = true;
          await pause(interval);
          timeout = endsAt - clock.now();
        }
      }
      if (outcome !== 'released') this.#notFound(outcome, isRepeated || disruptions !== redis.disruptions);
      if (!this.claim.isCertain) orphans.follow(this.claim);
    } catch (error) {
      if (error instanceof LockLostError) throw error;
      orphans.follow(this.claim);
      throw new LockReleaseError(
        `Redis did not confirm the release of lock "${this.key}" within ${Math.round(bound)} ms`,
        this.key,
        { cause: error },
      );
    } finally {
      this.#keeper.leaseOver(this);
    }
  }

  /** The release did not find it. Throws, unless a first try may have released it: no loss that could be told from that. */
  #notFound(reason: LockLostReason, isRepeated: boolean): void {
    if (isRepeated) {
      this.#warn('RELEASE_UNCERTAIN', `Lock "${this.key}" was not ours any more when its release was repeated`);
      return;
    }
    this.#loss = reason;
    this.#abort?.abort(this.lossError());
    throw this.lossError();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    try {
      await this.unlock();
    } catch (error) {
      // A loss shows on the signal; of a release that failed nobody else would tell.
      if (!(error instanceof LockLostError)) this.#warn('RELEASE_FAILED', String(error), error);
    }
  }

  #warn(code: string, message: string, cause?: unknown): void {
    warn(this.#services.settings.onWarning, { code, message, key: this.key, cause });
  }
}
