import type { Acquisition } from '../acquire/acquisition';
import { CannotAcquireLockError, leaseUnlocked } from '../errors';
import { clock, drift } from '../internal/clock';
import { ttl as checkedTtl } from '../internal/validation';
import type { Grant, LockProtocol, Ownership, RenewalMode } from '../protocols/protocol';
import { TimedLease } from './timed-lease';

/** The renewals of a lease, by the watchdog and by its holder, and what their answers do. */
export abstract class RenewableLease extends TimedLease {
  /** Renewed until this time, in whole ms; `undefined`: as long as it is held. */
  #renewUntil: number | undefined;
  /** The key has its full ttl. A grant with a claim window has it only after its first renewal. */
  #hasFullTtl: boolean;

  /** `renewFor`: ms from now on. */
  constructor(acquisition: Acquisition, grant: Grant, renewFor: number, now: number, protocol: LockProtocol) {
    super(acquisition, grant, protocol);
    this.#renewUntil = renewFor === Number.POSITIVE_INFINITY ? undefined : Math.floor(now + renewFor);
    this.#hasFullTtl = grant.renewal === undefined;
  }

  /** ms */
  protected abstract readonly commandTimeout: number;

  /** From `now` on its deadline is watched, and it is renewed. */
  protected watch({ renewal, drift }: Grant, now: number): void {
    if (renewal !== undefined) {
      this.unread++;
      void renewal.then((ownership) => this.renewed(ownership, now, drift));
    }
    this.watchdog.add(this, now);
  }

  /** Called after every confirmation by Redis. */
  protected onRenewed(): void {}

  /** A first renewal is needed in any case: without it a lease ends with the claim window. */
  mayRenewAt(time: number): boolean {
    return !this.#hasFullTtl || this.#renewUntil === undefined || time < this.#renewUntil;
  }

  /** As HeldLease. */
  endRenewal(): void {
    this.#renewUntil = 0;
    if (this.#hasFullTtl) this.renewAt = undefined;
  }

  renewInBackground(timeout: number, now: number, driftNow: number): void {
    const mode: RenewalMode = this.mayRenewAt(now) ? 'extend' : 'ask';
    this.unread++;
    const settle = (ownership: Ownership): void => this.renewed(ownership, now, driftNow);
    this.protocol.renew(this.owner, this.ttl, mode, timeout, settle);
  }

  /** The watchdog's renewal has ended. `driftBefore`: as it was before the renewal was sent. */
  private renewed(ownership: Ownership, sentAt: number, driftBefore: number): void {
    this.read(ownership, driftBefore);
    this.watchdog.renewed(this, sentAt, ownership.state === 'held');
  }

  /** Takes over the answer of a renewal. */
  private read(ownership: Ownership, driftBefore: number): void {
    this.unread--;
    if (this.isHeld) this.confirm(ownership, driftBefore);
  }

  private confirm(ownership: Ownership, driftBefore: number): void {
    if (ownership.state === 'held') {
      // After a suspension the old deadline is worth nothing. Else it stands, since no script shortens a key's ttl.
      const until = Math.floor(ownership.until);
      this.until = this.isSuspectAt(driftBefore) ? until : Math.max(this.until, until);
      this.drift = driftBefore;
      this.#hasFullTtl = true;
      this.onRenewed();
    } else if (ownership.state !== 'unknown') {
      this.lose(ownership.state);
    }
  }

  /** See `Lease.renew`; `limit` in ms. */
  async renew(ttl?: number, limit = Number.POSITIVE_INFINITY): Promise<void> {
    const atLeast = ttl === undefined ? this.ttl : Math.ceil(checkedTtl('ttl', ttl));
    this.loseIfDue();
    await this.reading;
    if (this.loss !== undefined) throw this.lossError();
    if (this.isUnlocked) throw leaseUnlocked(this.key);
    const timeout = Math.min(this.commandTimeout, this.until - clock.now(), limit);
    const driftBefore = drift();
    this.unread++;
    const ownership = await new Promise<Ownership>((resolve) => {
      this.protocol.renew(this.owner, atLeast, 'extend', timeout, resolve);
    });
    this.read(ownership, driftBefore);
    this.watchdog.moved(this);
    if (this.loss !== undefined) throw this.lossError();
    if (ownership.state === 'unknown') {
      throw new CannotAcquireLockError(`Lock "${this.key}" could not be renewed: Redis did not confirm it`, this.key, {
        cause: ownership.cause,
      });
    }
  }
}
