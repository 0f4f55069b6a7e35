import { inspect } from 'node:util';
import { isTraced, lockMessage, lostChannel, publish, releaseChannel, renewedChannel } from '../api/diagnostics';
import type { LeaseEvalOptions, LockLostReason } from '../api/distributed-lock';
import { CannotAcquireLockError, LockLostError, leaseUnlocked, notDetached, notReleased } from '../api/errors';
import { type LockType, traitsOf } from '../api/lock-types';
import type { AcquireMessage, LockMessage, LostMessage, ReleaseMessage, RenewedMessage } from '../api/messages';
import { DETACHED } from '../api/owner-name';
import { type LockWarningCode, warn } from '../api/warnings';
import { clock, drift } from '../internal/clock';
import { States } from '../internal/states';
import { ttl as checkedTtl } from '../internal/validation';
import { causeOf, isErrorReply, reasonOf } from '../redis/failure';
import type { LockNames } from '../redis/names';
import { repeated } from './give-back';
import { endOfLease, type Hold } from './hold';
import { type EndOfSection, type InternalLease, leaseText } from './internal-lease';
import { evalCall, evalError } from './lease-eval';
import type { LeaseServices, PassedOn } from './lease-services';
import { type LossDetails, LossSignal, lossError } from './loss';
import { assertTravels, passportText } from './passport';
import type { Released } from './protocol';
import type { LockRequest } from './request';

/** What a lease needs of its lock. */
export interface LockOfLease {
  readonly key: string;
  readonly names: LockNames;
  readonly services: LeaseServices;
  /** Leases that are not over: also those that are given back while the next one is held, and adopted ones. */
  open: number;
  /**
   * The lease ends by `unlock`, within `timeout` ms. If a caller of this process waits, the hold goes to it: at once, or by
   * one script, which says what became of the hold. `undefined`: nobody waits here, or the hold must not go to anybody; it is
   * to be released.
   */
  passOn(ended: RedisLease, now: number, timeout: number): PassedOn | undefined;
  /** Its release was sent, and nobody waits for its turn. */
  releasing(lease: RedisLease): void;
  /** Called once for each lease, when it has ended. `unansweredSince`: its release was not answered, or by errors only. */
  leaseOver(lease: RedisLease, unansweredSince?: number): void;
}

/** ms; a release has at least this long, however little is left of the ttl: its answer decides if it was a loss. */
const RELEASE_AT_LEAST = 250;

const DONE = Promise.resolve();

/** The life of a lease: its states, what ends each of them, and what may follow. */
const STATES = new States('lease', {
  /**
   * Its caller may rely on it until its deadline. Until `unlock`, `detach`, or a loss: `loseIfDue` finds the deadline of its
   * hold passed, or that of its own ttl, or of `maxHold`; Redis says that the key is gone or another owner's (`replace` makes it
   * so); the registry is closed.
   */
  active: ['unlocked', 'lost'],
  /** `unlock` or `detach` was called: its hold goes to the next caller, or is given back. That may find that it was lost. */
  unlocked: ['lost and unlocked'],
  /** The hold was lost, or the lease's own ttl ended. Its caller has not called `unlock` yet. */
  lost: ['lost and unlocked'],
  /** The loss was reported by `unlock` too. */
  'lost and unlocked': [],
});
const { become } = STATES;

type LeaseState = keyof typeof STATES.following;

/** The end of a lease by its caller. */
interface Ending {
  /** Whole ms. */
  readonly at: number;
  /** What `unlock` returned. */
  unlocked: Promise<void>;
  /** What is published about it. */
  trace: ReleaseMessage | undefined;
}

/** One caller's right within a hold: from its acquisition to `unlock`, or to its loss. */
export class RedisLease implements InternalLease {
  /** ms; what its call asked for. */
  readonly ttl: number;
  readonly fencingToken: number | undefined;
  /** The lease ends then, though the hold may last longer: its own ttl is over. `undefined`: with its hold. */
  endsAt: number | undefined;
  publishEnd: EndOfSection | undefined;
  readonly #lock: LockOfLease;
  readonly #hold: Hold;
  /** Whole ms, on the monotonic clock. */
  readonly #since: number;
  /** Renewed until this time, in whole ms; `undefined`: as long as it is held. */
  renewUntil: number | undefined;
  #state: LeaseState = 'active';
  /** Why it was lost; and how, where this process knows that. */
  #loss: { readonly reason: LockLostReason; readonly details: LossDetails | undefined } | undefined;
  #lossSignal: LossSignal | undefined;
  /** `unlock` or `detach` was called. */
  #ending: Ending | undefined;

  /** `now`: when the clock was read last. `isPassedOn`: the hold was acquired for another lease, and may outlast this one. */
  constructor(lock: LockOfLease, hold: Hold, { ttl, renew, origin }: LockRequest, now: number, isPassedOn: boolean) {
    const { longHolds, settings } = lock.services;
    const { maxHold } = settings;
    this.#lock = lock;
    this.#hold = hold;
    hold.leases++;
    lock.open++;
    this.ttl = Math.ceil(ttl);
    this.fencingToken = hold.takeToken();
    const renewUntil = renew ? now + maxHold : now;
    this.#since = Math.floor(isPassedOn ? now : hold.sentAt);
    if (renewUntil !== Number.POSITIVE_INFINITY) {
      this.renewUntil = Math.floor(renewUntil);
      if (isPassedOn || renew) this.endsAt = endOfLease(renewUntil, this.ttl);
    }
    longHolds?.add(this, origin);
  }

  get key(): string {
    return this.#lock.key;
  }

  get isReentry(): boolean {
    return false;
  }

  get owner(): string {
    return this.#hold.owner;
  }

  get permits(): number {
    return this.#hold.permits;
  }

  /** @internal */
  get hold(): Hold {
    return this.#hold;
  }

  get isUnlocked(): boolean {
    return this.#state === 'unlocked' || this.#state === 'lost and unlocked';
  }

  /** ms for which its release has not been answered. */
  get releasingFor(): number {
    return this.#ending === undefined ? 0 : clock.now() - this.#ending.at;
  }

  /** ms since its acquisition was sent, or a little more. */
  get heldFor(): number {
    return clock.now() - this.#since;
  }

  // Made when it is first read: most leases are unlocked before anybody reads it.
  get signal(): AbortSignal {
    if (this.#lossSignal === undefined) {
      this.#lossSignal = new LossSignal();
      if (this.#loss !== undefined) this.#lossSignal.abort(this.lossError());
    }
    return this.#lossSignal.signal;
  }

  get asked(): AbortSignal {
    return this.#lock.services.inbox.signalOf(this);
  }

  get remaining(): number {
    // Computed from the clock at every read: after a pause of the process this runs before any timer does.
    if (this.#state !== 'active') return 0;
    if (this.#hold.isSuspectAt(drift())) {
      this.#hold.hurry();
      return 0;
    }
    return Math.max(0, this.until - clock.now());
  }

  assertHeld(): void {
    if (this.remaining > 0) return;
    this.#hold.loseIfDue();
    this.assertNotOver();
    throw this.errorOf({ how: this.#hold.isSuspectAt(drift()) ? 'suspended' : 'not confirmed' });
  }

  /** Whether it was lost. Ends it first if its deadline has come: then its listeners run now. */
  checkLost(): boolean {
    this.#hold.loseIfDue();
    return this.#loss !== undefined;
  }

  /** A fresh error that says how the lease was lost. */
  lossError(result?: unknown, options?: ErrorOptions): LockLostError {
    return this.errorOf(this.#loss?.details, result, options);
  }

  private errorOf(details: LossDetails | undefined, result?: unknown, options?: ErrorOptions): LockLostError {
    const { connection } = this.#lock.services;
    return lossError(this, this.#loss?.reason ?? 'unconfirmed', details, connection, result, options);
  }

  /** See `Lease.renew`; `limit` in ms. */
  async renew(ttl?: number, limit = Number.POSITIVE_INFINITY): Promise<void> {
    const atLeast = ttl === undefined ? this.ttl : Math.ceil(checkedTtl('ttl', ttl));
    this.#hold.loseIfDue();
    await this.#hold.reading;
    this.assertNotOver();
    const now = clock.now();
    const timeout = Math.min(this.#lock.services.settings.commandTimeout, this.until - now, limit);
    const ownership = await this.#hold.renew(atLeast, timeout, () => {
      if (this.endsAt !== undefined) this.endsAt = Math.max(this.endsAt, endOfLease(now, atLeast));
    });
    this.assertNotOver();
    if (ownership.state === 'unknown') {
      const cause = causeOf(ownership.cause, this.#lock.services.connection);
      const message = `Lock "${this.key}" could not be renewed: Redis did not confirm it (${reasonOf(cause)})`;
      throw new CannotAcquireLockError(message, this.key, { cause });
    }
  }

  async eval(script: string, options: LeaseEvalOptions = {}): Promise<unknown> {
    const call = evalCall(script, options);
    this.#hold.loseIfDue();
    // It goes out before what is called next, such as `unlock`.
    if (this.#hold.reading !== undefined) await this.#hold.reading;
    this.assertNotOver();
    const { names, services } = this.#lock;
    const { leaseScripts, settings } = services;
    leaseScripts.assertPlaced(names, call);
    // Until it is answered the hold goes to nobody else: it would run in the next caller's lease.
    this.#hold.evals++;
    const running = leaseScripts.run(names, this.owner, call, settings.commandTimeout);
    try {
      const result = await running;
      this.#hold.evals--;
      if (result.held) return result.reply;
      this.#hold.lose(result.state);
    } catch (error) {
      if (isErrorReply(error)) this.#hold.evals--;
      throw evalError(this.key, error, this.#lock.services.connection);
    }
    throw this.#loss === undefined ? leaseUnlocked(this.key) : this.lossError();
  }

  holdAtLeast(ms: number): void {
    this.#hold.holdAtLeast(ms, false);
  }

  endMinHold(): void {
    this.#hold.endMinHold();
  }

  endRenewal(): void {
    this.renewUntil = 0;
    // Its hold may have been acquired for another lease, and outlast this one.
    this.endsAt = endOfLease(clock.now(), this.ttl);
    this.#hold.endRenewal();
  }

  /** Redis confirmed its hold. */
  renewed(): void {
    if (!renewedChannel.hasSubscribers) return;
    const { owner, fencingToken, remaining } = this;
    publish<RenewedMessage>(renewedChannel, { ...this.labels, lease: this, owner, fencingToken, remaining });
  }

  /** Called by its hold, once: it is lost. */
  lost(reason: LockLostReason, details?: LossDetails): void {
    this.lose(reason, details);
    this.tellLoss(reason);
  }

  /** The lease is lost; `tellLoss` follows. Leases that are lost together all are before the first listener hears of it. */
  lose(reason: LockLostReason, details?: LossDetails): void {
    // A subscriber that hears of its end may find the loss.
    this.#state = become[this.isUnlocked ? 'lost and unlocked' : 'lost'](this.#state);
    this.#loss = { reason, details: this.isOver(reason) ? { how: 'ttl over' } : details };
  }

  tellLoss(reason: LockLostReason): void {
    const { givingBack, longHolds } = this.#lock.services;
    longHolds?.remove(this);
    // Its own ttl is over, and the key would outlive it. Others may rely on it still.
    const isBefore = this.endsAt !== undefined && this.endsAt < this.#hold.keyUntil;
    if (reason === 'expired' && isBefore && this.#hold.state === 'lost') givingBack.follow(this.#hold);
    this.#lock.leaseOver(this);
    this.#hold.protocol.leaseLost?.();
    this.publishLoss(reason);
    this.#lossSignal?.abort(this.lossError());
  }

  unlock(): Promise<void> {
    const now = clock.now();
    // A listener to a loss that is found now may unlock it too.
    this.#hold.loseIfDue(now);
    // The first call reports how it ended. A second call only waits for it.
    if (this.#ending !== undefined) return this.#ending.unlocked.catch(() => undefined);
    const { reading } = this.#hold;
    if (this.#loss !== undefined) return this.unlockLost();
    if (reading !== undefined) return reading.then(() => this.unlock());
    const ending = this.endNow(now);
    ending.unlocked = isTraced(releaseChannel)
      ? this.traced('released', ending, () => this.giveBack(clock.now()))
      : this.giveBack(now);
    return ending.unlocked;
  }

  async detach(): Promise<string> {
    this.#hold.loseIfDue();
    if (this.#hold.reading !== undefined) await this.#hold.reading;
    this.assertNotOver();
    const hold = this.#hold;
    const { names, services } = this.#lock;
    const { connection, givingBack, settings } = services;
    const travel = assertTravels(hold.protocol.travel, settings.lockType);
    const now = clock.now();
    const minHold = hold.keep?.left ?? 0;
    const ttl = Math.max(this.ttl, minHold);
    const owner = DETACHED + hold.owner;
    const renew = this.renewUntil === undefined || now < this.renewUntil;
    const ending = this.endNow(now);
    if (this.#loss !== undefined) await this.reportLoss();
    hold.unlocked();
    const endsAt = now + this.timeToGiveBack(now);
    const ask = () => travel.detach(hold.owner, owner, ttl, Math.max(1, endsAt - clock.now()));
    const detaching = async (): Promise<void> => {
      try {
        const found = await repeated(ask, () => endsAt);
        if (found !== 'released') throw this.foundLost(found);
        // An attempt that may be executed later is of the owner before: its release does not find this one.
        if (!hold.isCertain) givingBack.follow(hold);
      } catch (error) {
        if (error instanceof LockLostError) throw error;
        // The key may have either value.
        hold.owner = owner;
        givingBack.follow(hold);
        const cause = causeOf(error, connection);
        throw notDetached(this.key, reasonOf(cause), cause);
      } finally {
        this.#lock.leaseOver(this);
        hold.protocol.leaseLost?.();
      }
    };
    await (isTraced(releaseChannel) ? this.traced('detached', ending, detaching) : detaching());
    const { format } = traitsOf(settings.lockType as LockType);
    return passportText({ format, owner, ttl, renew, minHold, lock: names.lock });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    try {
      await this.unlock();
    } catch (error) {
      // A loss shows on the signal. Nothing else would report a release that failed.
      if (!(error instanceof LockLostError)) this.warnOf('RELEASE_FAILED', String(error), error);
    }
  }

  /** What `console.log(lease)` prints: no internals. */
  [inspect.custom](): string {
    const token = this.fencingToken === undefined ? '' : `, fencingToken: ${this.fencingToken}`;
    return leaseText('Lease', this, token);
  }

  /** Until when it may be relied on. */
  private get until(): number {
    return Math.min(this.#hold.keyUntil, this.endsAt ?? Number.POSITIVE_INFINITY);
  }

  /** It was not to be renewed, and its ttl was over when its key was gone. */
  private isOver(reason: LockLostReason): boolean {
    const now = clock.now();
    return reason === 'expired' && now >= this.until && now >= (this.renewUntil ?? Number.POSITIVE_INFINITY);
  }

  private assertNotOver(): void {
    if (this.#loss !== undefined) throw this.lossError();
    if (this.isUnlocked) throw leaseUnlocked(this.key);
  }

  /** The lease is over for its holder, whatever comes of the release. */
  private endNow(now: number): Ending {
    this.#lock.services.longHolds?.remove(this);
    this.#state = become.unlocked(this.#state);
    this.#hold.leases--;
    const ending: Ending = { at: Math.floor(now), unlocked: DONE, trace: undefined };
    this.#ending = ending;
    this.endSection();
    return ending;
  }

  /** A subscriber that hears of it may call `unlock`. */
  private endSection(loss?: LockLostError): void {
    const { publishEnd } = this;
    this.publishEnd = undefined;
    publishEnd?.(loss);
  }

  /** ms in which Redis has to confirm the end of the lease. */
  private timeToGiveBack(now: number): number {
    return Math.min(this.#lock.services.settings.commandTimeout, Math.max(this.#hold.keyUntil - now, RELEASE_AT_LEAST));
  }

  private unlockLost(): Promise<void> {
    this.#state = become['lost and unlocked'](this.#state);
    this.#hold.leases--;
    return this.reportLoss();
  }

  private reportLoss(): Promise<void> {
    const unlocked = Promise.reject(this.lossError());
    this.#ending = { at: Math.floor(clock.now()), unlocked, trace: this.#ending?.trace };
    this.#lock.services.inbox.ended(this, this.#lock.names);
    // The key may still be there. Others that had the hold too may still run: the last one sees to it.
    if (this.#hold.leases === 0 && this.#hold.state === 'lost') this.#lock.services.givingBack.follow(this.#hold);
    return unlocked;
  }

  private traced(outcome: 'released' | 'detached', ending: Ending, end: () => Promise<void>): Promise<void> {
    const { owner, fencingToken } = this;
    const about = { ...this.labels, lease: this, owner, fencingToken };
    const message: ReleaseMessage = { ...about, isHandedOver: false, outcome: undefined };
    ending.trace = message;
    return releaseChannel.tracePromise(async () => {
      try {
        await end();
        message.outcome = outcome;
      } catch (error) {
        message.outcome = this.#loss === undefined ? 'failed' : 'lost';
        throw error;
      }
    }, message);
  }

  /** Its hold, or the lock after it, goes to the next local caller. `to`: what is published about that caller. */
  handedOver(to?: AcquireMessage): void {
    if (this.#ending?.trace !== undefined) this.#ending.trace.isHandedOver = true;
    if (to !== undefined) to.isHandedOver = true;
  }

  /** The hold goes to the next local caller, or is released. */
  private giveBack(now: number): Promise<void> {
    if (this.#loss !== undefined) return this.reportLoss();
    const hold = this.#hold;
    const limit = this.timeToGiveBack(now);
    const { disruptions } = this.#lock.services.connection;
    const passing = this.#lock.passOn(this, now, limit);
    if (passing === 'passed on') return DONE;
    hold.unlocked();
    const first = passing ?? hold.release(limit, now);
    if (passing === undefined) this.#lock.releasing(this);
    const releaseAgain = () => this.releaseAgain(now, limit, first as Promise<Released>, disruptions);
    return first.then((found) => {
      // The lease stands for its hold until the next caller has that.
      if (found === 'passed on') return undefined;
      if (found !== 'released' || !hold.isCertain) return releaseAgain();
      this.#lock.leaseOver(this);
      return undefined;
    }, releaseAgain);
  }

  /** The first try, sent at `sentAt`, did not simply succeed. */
  private async releaseAgain(sentAt: number, limit: number, first: Promise<Released>, before: number): Promise<void> {
    const result = await this.#lock.services.givingBack.within(limit, this.#hold, sentAt, first, before);
    this.#lock.leaseOver(this, result.outcome === 'failed' ? sentAt : undefined);
    if (result.outcome === 'released') return;
    if (result.outcome === 'failed') throw notReleased(this.key, result.reason, result.cause);
    if (result.isRepeated) {
      // An earlier try may have released it: that does not prove a loss.
      this.warnOf('RELEASE_UNCERTAIN', `Lock "${this.key}" was not ours any more when its release was repeated`);
      return;
    }
    throw this.foundLost(result.outcome);
  }

  /** The script that was to end it found that the lock was lost before. */
  private foundLost(reason: LockLostReason): LockLostError {
    this.#state = become['lost and unlocked'](this.#state);
    this.#loss = { reason, details: this.isOver(reason) ? { how: 'ttl over' } : undefined };
    this.#lossSignal?.abort(this.lossError());
    this.publishLoss(reason);
    return this.lossError();
  }

  private publishLoss(reason: LockLostReason): void {
    this.#lock.services.inbox.lost(this, this.#lock.names);
    if (lostChannel.hasSubscribers) {
      const { owner, fencingToken, heldFor } = this;
      const about = { ...this.labels, lease: this, owner, fencingToken };
      publish<LostMessage>(lostChannel, { ...about, reason, heldFor });
    }
    // After the message of the loss, which belongs to the section.
    this.endSection(this.lossError());
  }

  private get labels(): LockMessage {
    return lockMessage(this.#lock.services.settings, this.key);
  }

  private warnOf(code: LockWarningCode, message: string, cause?: unknown): void {
    warn(this.#lock.services.settings.onWarning, { code, message, key: this.key, cause });
  }
}
