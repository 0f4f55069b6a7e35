import type { Acquisition } from '../acquire/acquisition';
import type { LockLostReason } from '../distributed-lock';
import { CannotAcquireLockError, LockLostError, leaseUnlocked } from '../errors';
import { clock, drift, wasSuspended } from '../internal/clock';
import { ttl as checkedTtl } from '../internal/validation';
import type { Grant, LockProtocol, Ownership, RenewalMode } from '../protocols/protocol';
import { Losable } from './losable';
import type { Watchdog, WatchedLease } from './watchdog';

/**
 * The time of a lease: its deadline, its renewals, its loss. It is lost at its deadline, or as soon as Redis says "not
 * yours". Times are on the monotonic clock.
 */
export abstract class TimedLease extends Losable implements WatchedLease {
  /** The value in Redis that says whose the lock is. */
  readonly owner: string;
  readonly fencingToken: number | undefined;
  renewAt = Number.POSITIVE_INFINITY;
  unread = 0;
  previous: WatchedLease | undefined;
  next: WatchedLease | undefined;

  protected readonly acquisition: Acquisition;
  protected readonly protocol: LockProtocol;
  protected readonly watchdog: Watchdog;
  readonly #commandTimeout: number;
  /** It is not renewed after this time; `-Infinity`: never. */
  #renewUntil: number;
  #until: number;
  #drift: number;
  /** Its deadline has come while a renewal was in flight: the event loop reads what has arrived. */
  protected reading: Promise<void> | undefined;
  /** The key has its full ttl. A grant of `fair` to another process has only the claim window until its first renewal. */
  #hasFullTtl: boolean;

  /** `renewUntil`: on the monotonic clock. */
  constructor(
    key: string,
    acquisition: Acquisition,
    grant: Grant,
    renewUntil: number,
    protocol: LockProtocol,
    watchdog: Watchdog,
    commandTimeout: number,
  ) {
    super(key);
    this.owner = grant.owner;
    this.fencingToken = grant.fencingToken;
    this.acquisition = acquisition;
    this.protocol = protocol;
    this.watchdog = watchdog;
    this.#commandTimeout = commandTimeout;
    this.#renewUntil = renewUntil;
    this.#until = grant.until;
    this.#drift = grant.drift;
    this.#hasFullTtl = grant.renewal === undefined;
  }

  /** From now on its deadline is watched, and it is renewed. */
  protected watch({ renewal, drift }: Grant): void {
    const now = clock.now();
    if (renewal !== undefined) {
      this.unread++;
      void renewal.then((ownership) => this.#renewed(ownership, now, drift));
    }
    this.watchdog.add(this, now);
  }

  /** `unlock` was called. */
  abstract readonly isUnlocked: boolean;
  /** Called once, when the lease is lost. */
  protected abstract onLoss(): void;
  /** Called after every confirmation by Redis. */
  protected onRenewed(): void {}

  /** ms; the ttl that it was taken with. */
  get ttl(): number {
    return this.acquisition.ttl;
  }

  /** ms since its acquisition was sent. */
  get heldFor(): number {
    return clock.now() - this.acquisition.sentAt;
  }

  /** The deadline, unless it is renewed. */
  get until(): number {
    return this.#until;
  }

  get isHeld(): boolean {
    return this.loss === undefined && !this.isUnlocked;
  }

  get wasLost(): boolean {
    this.loseIfDue();
    return this.loss !== undefined;
  }

  get remaining(): number {
    // Computed from the clock at every read: after a pause of the process this runs before any timer does.
    if (!this.isHeld) return 0;
    if (this.isSuspectAt(drift())) {
      this.watchdog.hurry();
      return 0;
    }
    return Math.max(0, this.#until - clock.now());
  }

  assertHeld(): void {
    if (this.remaining > 0) return;
    this.loseIfDue();
    if (this.loss !== undefined) throw this.lossError();
    if (this.isUnlocked) throw leaseUnlocked(this.key);
    throw new LockLostError(this.key, 'unconfirmed');
  }

  /**
   * The wall clock went on while the monotonic clock stood still: the machine was suspended, or the wall clock was set.
   * Until Redis confirms the lease, it must not be relied on. A slow change is harmless: renewals are frequent.
   */
  isSuspectAt(driftNow: number): boolean {
    return wasSuspended(this.#drift, driftNow);
  }

  /** A first renewal is needed in any case: without it a lease ends with the claim window. */
  mayRenewAt(time: number): boolean {
    return !this.#hasFullTtl || time < this.#renewUntil;
  }

  /** As HeldLease. */
  endRenewal(): void {
    this.#renewUntil = Number.NEGATIVE_INFINITY;
    if (this.#hasFullTtl) this.renewAt = Number.POSITIVE_INFINITY;
  }

  renewInBackground(timeout: number, now: number, driftNow: number): void {
    const mode: RenewalMode = this.mayRenewAt(now) ? 'extend' : 'ask';
    this.unread++;
    const settle = (ownership: Ownership): void => this.#renewed(ownership, now, driftNow);
    this.protocol.renew(this.owner, this.ttl, mode, timeout, settle);
  }

  /** The watchdog's renewal has ended. `driftBefore`: as it was before the renewal was sent. */
  #renewed(ownership: Ownership, sentAt: number, driftBefore: number): void {
    this.#read(ownership, driftBefore);
    this.watchdog.renewed(this, sentAt, ownership.state === 'held');
  }

  /** Takes over the answer of a renewal. */
  #read(ownership: Ownership, driftBefore: number): void {
    this.unread--;
    if (this.isHeld) this.#confirm(ownership, driftBefore);
  }

  #confirm(ownership: Ownership, driftBefore: number): void {
    if (ownership.state === 'held') {
      // After a suspension the old deadline is worth nothing. Else it stands, since no script shortens a key's life.
      this.#until = this.isSuspectAt(driftBefore) ? ownership.until : Math.max(this.#until, ownership.until);
      this.#drift = driftBefore;
      this.#hasFullTtl = true;
      this.onRenewed();
    } else if (ownership.state !== 'unknown') {
      this.lose(ownership.state);
    }
  }

  /**
   * Ends the lease if its deadline has come. After a pause of the process, the answer of a renewal may have arrived
   * without having been read. So while a renewal is in flight the lease is only unconfirmed (`remaining` is 0) until
   * the event loop has read what is there.
   */
  loseIfDue(now = clock.now()): void {
    if (!this.isHeld || now < this.#until) return;
    if (this.unread > 0) this.reading ??= this.#readThenLose();
    else this.#loseByDeadline();
  }

  async #readThenLose(): Promise<void> {
    // Sockets are read between two ticks of the event loop. The current tick may have passed that point already.
    await clock.immediate();
    await clock.immediate();
    this.reading = undefined;
    if (this.isHeld && clock.now() >= this.#until) this.#loseByDeadline();
  }

  #loseByDeadline(): void {
    this.lose(this.mayRenewAt(this.#until) ? 'unconfirmed' : 'expired');
  }

  lose(reason: LockLostReason): void {
    if (!this.isHeld) return;
    this.loss = reason;
    this.watchdog.remove(this);
    this.onLoss();
    this.signalLoss();
  }

  /** The release found that the lock was lost before. */
  protected loseAtRelease(reason: LockLostReason): void {
    this.loss = reason;
    this.signalLoss();
  }

  /** See `Lease.renew`; `limit` in ms. */
  async renew(ttl?: number, limit = Number.POSITIVE_INFINITY): Promise<void> {
    const atLeast = ttl === undefined ? this.ttl : Math.ceil(checkedTtl('ttl', ttl));
    this.loseIfDue();
    await this.reading;
    if (this.loss !== undefined) throw this.lossError();
    if (this.isUnlocked) throw leaseUnlocked(this.key);
    const timeout = Math.min(this.#commandTimeout, this.#until - clock.now(), limit);
    const driftBefore = drift();
    this.unread++;
    const ownership = await new Promise<Ownership>((resolve) => {
      this.protocol.renew(this.owner, atLeast, 'extend', timeout, resolve);
    });
    this.#read(ownership, driftBefore);
    if (this.loss !== undefined) throw this.lossError();
    if (ownership.state === 'unknown') {
      throw new CannotAcquireLockError(`Lock "${this.key}" could not be renewed: Redis did not confirm it`, this.key, {
        cause: ownership.cause,
      });
    }
  }
}
