import { Acquisition } from '../acquire/acquisition';
import type { LockLostReason } from '../distributed-lock';
import { LockLostError, leaseUnlocked } from '../errors';
import { clock, drift, wasSuspended } from '../internal/clock';
import type { Keep } from '../protocols/min-hold/kept';
import type { Grant, LockProtocol } from '../protocols/protocol';
import { Losable } from './losable';
import type { Watchdog, WatchedLease } from './watchdog';

/**
 * The time of a lease: its deadline, and its loss. It is lost at its deadline, or as soon as Redis says "not yours".
 *
 * There may be many leases, so each is small. Its times are whole ms on the monotonic clock, rounded down: a fraction
 * would cost 16 bytes each, and a deadline must never be later than it was computed. Of its acquisition it keeps what
 * it needs itself; the acquisition too only where more is known of it. Methods are `private` and not `#`, here and in
 * other classes that have an object for each lock: V8 would mark each object, in 8 bytes for each such class.
 */
export abstract class TimedLease extends Losable implements WatchedLease {
  /** The value in Redis that says whose the lock is. */
  readonly owner: string;
  readonly fencingToken: number | undefined;
  /** ms; the ttl that it was taken with. */
  readonly ttl: number;
  renewAt: number | undefined;
  unread = 0;
  position = -1;
  /** The deadline, unless it is renewed. */
  until: number;
  drift: number;

  protected readonly protocol: LockProtocol;
  /** When its acquisition was sent. */
  readonly #sentAt: number;
  /** Its acquisition had, or might have got, a position in a queue in Redis. */
  readonly #wasEnqueued: boolean;
  /** `undefined`: each of its attempts was answered, and there is nothing else to know of it. */
  #acquisition: Acquisition | undefined;
  /** Its deadline has come while a renewal was in flight: the event loop reads what has arrived. */
  protected reading: Promise<void> | undefined;

  constructor(acquisition: Acquisition, grant: Grant, protocol: LockProtocol) {
    super();
    const { ticket, isCertain, minHold } = acquisition;
    this.owner = grant.owner;
    this.fencingToken = grant.fencingToken;
    this.ttl = acquisition.ttl;
    this.protocol = protocol;
    this.#sentAt = Math.floor(acquisition.sentAt);
    this.#wasEnqueued = acquisition.isEnqueued;
    this.#acquisition = isCertain && minHold === undefined && ticket === grant.owner ? undefined : acquisition;
    this.until = Math.floor(grant.until);
    this.drift = grant.drift;
  }

  protected abstract readonly watchdog: Watchdog;

  /** `unlock` was called. */
  abstract readonly isUnlocked: boolean;
  /** Called once, when the lease is lost. */
  protected abstract onLoss(): void;
  abstract mayRenewAt(time: number): boolean;
  abstract renewInBackground(timeout: number, now: number, driftNow: number): void;

  /** ms since its acquisition was sent, or a little more. */
  get heldFor(): number {
    return clock.now() - this.#sentAt;
  }

  /** As Acquisition: how long the lock is to be kept when it is released now. */
  get keep(): Keep | undefined {
    return this.#acquisition?.keep;
  }

  /** As Acquisition: what Redis says of it from now on is final. */
  protected get isCertain(): boolean {
    return this.#acquisition === undefined || this.#acquisition.isCertain;
  }

  /** Its acquisition, made once more if it was not kept. */
  protected get acquisition(): Acquisition {
    if (this.#acquisition === undefined) {
      this.#acquisition = new Acquisition(this.owner, this.ttl, this.#wasEnqueued, undefined, this.#sentAt);
      this.#acquisition.isEnqueued = this.#wasEnqueued;
    }
    return this.#acquisition;
  }

  get isHeld(): boolean {
    return this.loss === undefined && !this.isUnlocked;
  }

  /** Whether it was lost. Ends it first if its deadline has come: then its listeners run now. */
  checkLost(): boolean {
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
    return Math.max(0, this.until - clock.now());
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
    return wasSuspended(this.drift, driftNow);
  }

  /**
   * Ends the lease if its deadline has come. After a pause of the process, the answer of a renewal may have arrived
   * without having been read. So while a renewal is in flight the lease is only unconfirmed (`remaining` is 0) until
   * the event loop has read what is there.
   */
  loseIfDue(now = clock.now()): void {
    if (!this.isHeld || now < this.until) return;
    if (this.unread > 0) this.reading ??= this.readThenLose();
    else this.loseByDeadline();
  }

  private async readThenLose(): Promise<void> {
    // Sockets are read between two ticks of the event loop. The current tick may have passed that point already.
    await clock.immediate();
    await clock.immediate();
    this.reading = undefined;
    if (this.isHeld && clock.now() >= this.until) this.loseByDeadline();
  }

  private loseByDeadline(): void {
    this.lose(this.mayRenewAt(this.until) ? 'unconfirmed' : 'expired');
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
}
