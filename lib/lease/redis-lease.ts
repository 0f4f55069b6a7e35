import { inspect } from 'node:util';
import type { Acquisition } from '../acquire/acquisition';
import { isTraced, lockMessage, lostChannel, publish, releaseChannel, renewedChannel } from '../diagnostics/channels';
import type { LockMessage, LostMessage, ReleaseMessage, RenewedMessage } from '../diagnostics/messages';
import type { LeaseEvalOptions } from '../distributed-lock';
import { LockLostError, leaseUnlocked, notReleased } from '../errors';
import { clock } from '../internal/clock';
import type { Grant, LockProtocol } from '../protocols/protocol';
import { LockNames } from '../redis/names';
import { type LockWarningCode, warn } from '../warnings';
import { evalCall, evalError } from './eval-call';
import type { LeaseServices } from './lease-services';
import { leaseText } from './lease-text';
import { type HandOverResult, release, releaseWithin } from './release';
import { RenewableLease } from './renewable-lease';
import type { EndOfHold, HeldLease } from './unlock-order';
import type { Watchdog } from './watchdog';

/** ms; a release has at least this long, however little is left of the ttl: its answer decides if it was a loss. */
const RELEASE_AT_LEAST = 250;

/** The lock that a lease belongs to. */
export interface LeaseKeeper {
  /** Hands the lock over to the next local caller; `undefined`: it is to be released, or kept if it must be. */
  handOver(lease: RedisLease, mustKeep: boolean, timeout: number): Promise<HandOverResult> | undefined;
  /** Called once, when the lease ended, by unlock or loss. */
  leaseOver(lease: RedisLease): void;
  readonly key: string;
  readonly services: LeaseServices;
}

/** The lease of one acquisition. */
export class RedisLease extends RenewableLease implements HeldLease {
  readonly #keeper: LeaseKeeper;
  #unlocking: Promise<void> | undefined;
  endHold: EndOfHold | undefined;
  /** What is published about its release, where somebody has subscribed. */
  releaseTrace: ReleaseMessage | undefined;

  constructor(
    acquisition: Acquisition,
    grant: Grant,
    renews: boolean,
    now: number,
    protocol: LockProtocol,
    keeper: LeaseKeeper,
  ) {
    super(acquisition, grant, renews ? keeper.services.settings.maxHold : 0, now, protocol);
    this.#keeper = keeper;
    this.watch(grant, now);
  }

  get key(): string {
    return this.#keeper.key;
  }

  protected get watchdog(): Watchdog {
    return this.#keeper.services.watchdog;
  }

  protected get commandTimeout(): number {
    return this.#keeper.services.settings.commandTimeout;
  }

  /** As Holder. */
  confirmNow(): void {
    if (this.isHeld) this.watchdog.askAbout(this);
  }

  get isReentry(): boolean {
    return false;
  }

  get isUnlocked(): boolean {
    return this.#unlocking !== undefined;
  }

  holdAtLeast(ms: number): void {
    this.acquisition.holdAtLeast(ms, this.heldFor);
  }

  async eval(script: string, options: LeaseEvalOptions = {}): Promise<unknown> {
    const call = evalCall(script, options);
    this.loseIfDue();
    if (this.reading !== undefined) await this.reading;
    if (this.loss !== undefined) throw this.lossError();
    if (this.isUnlocked) throw leaseUnlocked(this.key);
    const { heldScripts, settings } = this.#keeper.services;
    const names = new LockNames(settings.registryKey, this.key);
    heldScripts.assertPlaced(names, call);
    const running = heldScripts.run(names, this.owner, call, settings.commandTimeout);
    const result = await running.catch((error: unknown) => {
      throw evalError(this.key, error);
    });
    if (result.held) return result.reply;
    this.lose(result.state);
    throw this.loss === undefined ? leaseUnlocked(this.key) : this.lossError();
  }

  protected onLoss(): void {
    this.#keeper.leaseOver(this);
    this.protocol.leaseLost?.();
    this.publishLoss();
  }

  unlock(): Promise<void> {
    // The first call reports how it ended. A second call only waits for it.
    if (this.#unlocking !== undefined) return this.#unlocking.catch(() => undefined);
    const now = clock.now();
    this.loseIfDue(now);
    if (this.reading === undefined) return this.unlockNow(now);
    return this.reading.then(() => this.#unlocking?.catch(() => undefined) ?? this.unlockNow(clock.now()));
  }

  private unlockNow(now: number): Promise<void> {
    this.loseIfDue(now);
    if (this.loss !== undefined) {
      this.#unlocking = Promise.reject(this.lossError());
      // The key may still be there.
      this.#keeper.services.orphans.follow(this.acquisition, this.protocol);
    } else {
      // First of all: from now on it is not renewed, and the answer of a renewal in flight does not count.
      this.watchdog.remove(this);
      this.endHold?.();
      this.endHold = undefined;
      this.#unlocking = isTraced(releaseChannel) ? this.tracedRelease(now) : this.release(now);
    }
    return this.#unlocking;
  }

  protected override onRenewed(): void {
    if (!renewedChannel.hasSubscribers) return;
    const { owner, fencingToken, remaining } = this;
    publish<RenewedMessage>(renewedChannel, { ...this.labels, owner, fencingToken, remaining });
  }

  private publishLoss(): void {
    if (lostChannel.hasSubscribers) {
      const { owner, fencingToken, heldFor, loss: reason = 'unconfirmed' } = this;
      publish<LostMessage>(lostChannel, { ...this.labels, owner, fencingToken, reason, heldFor });
    }
    // After the message of the loss, which belongs to the section.
    this.endHold?.(this.lossError());
    this.endHold = undefined;
  }

  private get labels(): LockMessage {
    return lockMessage(this.#keeper.services.settings, this.key);
  }

  private tracedRelease(now: number): Promise<void> {
    const { owner, fencingToken } = this;
    const message: ReleaseMessage = { ...this.labels, owner, fencingToken, isHandedOver: false, outcome: undefined };
    this.releaseTrace = message;
    return releaseChannel.tracePromise(async () => {
      try {
        await this.release(now);
        message.outcome = 'released';
      } catch (error) {
        message.outcome = this.loss === undefined ? 'failed' : 'lost';
        throw error;
      }
    }, message);
  }

  /** Nearly always the first try is enough: then there is no async function between `unlock` and the answer. */
  private release(now: number): Promise<void> {
    const { connection, settings } = this.#keeper.services;
    const { disruptions } = connection;
    const limit = Math.min(settings.commandTimeout, Math.max(this.until - now, RELEASE_AT_LEAST));
    // Half of the time, so that there is some left for the release of a lock that could not be handed over.
    const handingOver = this.#keeper.handOver(this, this.keep !== undefined, limit / 2);
    const first = handingOver ?? release(this.protocol, this.owner, this, limit, now);
    return first.then(
      (found) => {
        if (found !== 'released' || !this.isCertain) return this.releaseAgain(now, limit, disruptions, first);
        this.#keeper.leaseOver(this);
        return undefined;
      },
      () => this.releaseAgain(now, limit, disruptions, first),
    );
  }

  /** The first try did not simply succeed. `sentAt`, `disruptions`: when it was sent, and those of the connection then. */
  private async releaseAgain(
    sentAt: number,
    limit: number,
    disruptions: number,
    first: Promise<HandOverResult>,
  ): Promise<void> {
    const { connection, orphans } = this.#keeper.services;
    const { owner, protocol } = this;
    const result = await releaseWithin(sentAt, sentAt + limit, protocol, owner, this, connection, disruptions, first);
    if (result.outcome === 'failed' || !this.isCertain) orphans.follow(this.acquisition, protocol);
    this.#keeper.leaseOver(this);
    if (result.outcome === 'released') return;
    if (result.outcome === 'failed') throw notReleased(this.key, result.reason, result.cause);
    if (result.isRepeated) {
      // An earlier try may have released it: that does not prove a loss.
      this.warn('RELEASE_UNCERTAIN', `Lock "${this.key}" was not ours any more when its release was repeated`);
      return;
    }
    this.loseAtRelease(result.outcome);
    this.publishLoss();
    throw this.lossError();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    try {
      await this.unlock();
    } catch (error) {
      // A loss shows on the signal. Nothing else would report a release that failed.
      if (!(error instanceof LockLostError)) this.warn('RELEASE_FAILED', String(error), error);
    }
  }

  private warn(code: LockWarningCode, message: string, cause?: unknown): void {
    warn(this.#keeper.services.settings.onWarning, { code, message, key: this.key, cause });
  }

  /** What `console.log(lease)` prints: no internals. */
  [inspect.custom](): string {
    const token = this.fencingToken === undefined ? '' : `, fencingToken: ${this.fencingToken}`;
    return leaseText('Lease', this, token);
  }
}
