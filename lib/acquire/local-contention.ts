import { noteContention } from '../diagnostics/channels';
import { clock } from '../internal/clock';
import { Deferred } from '../internal/deferred';
import { RedisLease } from '../lease/redis-lease';
import type { HandOverResult } from '../lease/release';
import type { Grant, HandOver, LockProtocol, NotGranted } from '../protocols/protocol';
import { LockNames } from '../redis/names';
import type { LockRequest } from '../settings';
import { type Acquisition, newAcquisition } from './acquisition';
import { AttemptSeries } from './attempt-series';
import type { ContentionServices } from './contention-services';
import { afterFailure, giveBack } from './failed-hand-over';
import { LocalQueue } from './local-queue';
import { NoTurn, type Turn } from './turn';
import type { Wait } from './wait';

/**
 * The callers of this process that contend for one lock. A caller first takes the local turn, so that only one of them
 * contends in Redis. The holder hands the lock over to the next local caller, where there is one.
 */
export abstract class LocalContention {
  readonly key: string;
  /** @internal */
  readonly names: LockNames;
  /** @internal */
  readonly services: ContentionServices;
  readonly #queue = new LocalQueue();
  #protocol: LockProtocol | undefined;
  /** Calls that are still acquiring. */
  #callers = 0;
  /** @internal The lease that is held, with the local turn. */
  protected lease: RedisLease | undefined;
  /** The turn of `lease`. */
  #turn: Turn | undefined;
  /** Resolved when a lease ends. */
  #end: Deferred | undefined;

  /** @internal Throws `RangeError` if the keys that belong to the lock could not share its hash slot. */
  constructor(key: string, services: ContentionServices) {
    this.key = key;
    this.names = new LockNames(services.settings.registryKey, key);
    this.services = services;
    this.#protocol = services.protocols.openProtocol(this.names);
  }

  /** @internal Called when a lease has ended. */
  protected abstract onLeaseOver(): void;

  /** @internal The leases that are held: at most one, but for a `SharedLock`. */
  protected get leases(): readonly RedisLease[] {
    return this.lease === undefined ? [] : [this.lease];
  }

  /** @internal As WaitedLock. */
  get heldFor(): number | undefined {
    return this.lease?.heldFor;
  }

  /** @internal Who holds the lock, as far as this process knows. */
  protected get holder(): { readonly owner: string; readonly remaining: number } | undefined {
    return this.lease ?? this.#protocol?.availability.holder(clock.now());
  }

  /** @internal Held, or waited for. */
  get isInUse(): boolean {
    return this.#callers > 0 || this.lease !== undefined;
  }

  /** @internal Takes the protocol from an evicted lock; it is kept while active. */
  detachProtocol(): LockProtocol | undefined {
    const protocol = this.#protocol;
    this.#protocol = undefined;
    return protocol;
  }

  /** @internal Resolves when the lock is not held. */
  async free(): Promise<void> {
    if (this.lease !== undefined) await this.nextLeaseOver();
  }

  /** @internal Resolves when the next lease has ended. */
  protected nextLeaseOver(): Promise<void> {
    this.#end ??= new Deferred();
    return this.#end.promise;
  }

  /** @internal As LeaseKeeper. */
  handOver(lease: RedisLease, mustKeep: boolean, timeout: number): Promise<HandOverResult> | undefined {
    const turn = this.lease === lease ? this.#turn : undefined;
    const { next } = this.#queue;
    if (mustKeep || next === undefined || turn === undefined) return undefined;
    return this.#handOver(lease, newAcquisition(this.services, next.ttl, true, next.since), turn, timeout);
  }

  /** @internal As LeaseKeeper. */
  leaseOver(lease: RedisLease): void {
    if (this.#protocol?.holder === lease) this.#protocol.holder = undefined;
    if (this.lease === lease) {
      this.#turn?.release();
      this.lease = this.#turn = undefined;
    }
    this.onLeaseOver();
    this.#end?.resolve();
    this.#end = undefined;
  }

  get #openProtocol(): LockProtocol {
    this.#protocol ??= this.services.protocols.openProtocol(this.names);
    return this.#protocol;
  }

  /** @internal Takes the local turn, and then the lock. `null`: another holder had it until the wait was over. */
  protected async acquire(request: LockRequest, wait: Wait): Promise<RedisLease | null> {
    const { sender } = this.services;
    this.#callers++;
    try {
      this.services.waits.begin(wait);
      // Redis already granted it to this process; no command is needed.
      if (wait.isSingleAttempt && (this.lease?.remaining ?? 0) > 0) return null;
      const protocol = this.#openProtocol;
      let turn = this.#tryEnter(protocol);
      if (turn === undefined) {
        noteContention(wait, 'local');
        turn = (await this.#queue.enter(wait, request.ttl)) ?? (await this.withoutTurn(protocol, wait));
      }
      if (turn === undefined) return null;
      const { inherited } = turn;
      turn.inherited = undefined;
      const answer = inherited?.answer;
      if (wait.trace !== undefined) wait.trace.isHandedOver = answer?.granted === true;
      const mayQueue = !wait.isSingleAttempt && turn.mayQueue;
      const acquisition =
        inherited?.acquisition ?? newAcquisition(this.services, request.ttl, mayQueue, wait.startedAt);
      acquisition.leastLife = request.minHold;
      // The turn goes to the lease, or back to the queue.
      let isGranted = answer?.granted === true;
      try {
        wait.throwIfInterrupted();
        const isInherited = answer?.granted && answer.until > clock.now();
        let result: Grant | NotGranted | undefined = isInherited ? answer : undefined;
        if (result === undefined) {
          const refusal = answer?.granted === false ? Promise.resolve(answer) : undefined;
          const pause = refusal === undefined ? sender.standBack(protocol, wait) : undefined;
          // Most locks are free: then this attempt is enough. With a signal the caller may leave before its answer.
          const first = refusal ?? ((pause ?? wait.signal) ? undefined : sender.send(protocol, acquisition, wait));
          try {
            if (first !== undefined) result = sender.grantIn(await first, protocol, acquisition);
          } catch {
            // AttemptSeries awaits the same promise, and handles the failure.
          }
          result ??= await new AttemptSeries(sender, protocol, acquisition, wait).run(pause, first);
        }
        isGranted ||= result.granted;
        wait.throwIfInterrupted();
        if (!result.granted) return this.#abandon(protocol, acquisition, turn, isGranted);
        if (request.minHold > 0) acquisition.holdAtLeast(request.minHold, 0);
        const lease = new RedisLease(acquisition, result, request.renew, protocol, this);
        this.recordLease(lease, turn, protocol);
        return lease;
      } catch (error) {
        this.#abandon(protocol, acquisition, turn, isGranted);
        throw error;
      }
    } finally {
      this.#callers--;
      this.services.waits.end(wait);
      wait.end();
    }
  }

  /** @internal The turn did not come in time; `undefined`: another holder has the lock. */
  protected async withoutTurn(protocol: LockProtocol, wait: Wait): Promise<Turn | undefined> {
    const { outcome } = this.services.sender;
    if (await outcome.wasAnswered(protocol, wait)) return undefined;
    // The attempt of the caller in front failed: a single attempt may still be made, if the turn is free now.
    await clock.immediate();
    const freed = wait.isSingleAttempt ? this.#tryEnter(protocol) : undefined;
    if (freed === undefined) throw outcome.error(protocol, wait);
    return freed;
  }

  /** @internal */
  protected recordLease(lease: RedisLease, turn: Turn, protocol: LockProtocol): void {
    this.lease = lease;
    this.#turn = turn;
    protocol.holder = lease;
  }

  /** The caller leaves without the lock: what it may have in Redis is removed, and the turn goes to the next caller. */
  #abandon(protocol: LockProtocol, acquisition: Acquisition, turn: Turn, isGranted: boolean): null {
    if (isGranted || acquisition.mayBeInRedis) this.services.orphans.follow(acquisition, protocol);
    turn.release();
    return null;
  }

  #tryEnter(protocol: LockProtocol): Turn | undefined {
    return protocol.queue === 'redis' ? new NoTurn() : this.#queue.tryEnter();
  }

  async #handOver(from: RedisLease, to: Acquisition, turn: Turn, timeout: number): Promise<HandOverResult> {
    const protocol = this.#openProtocol;
    to.stamp();
    const handingOver = protocol.handOver(from.owner, to, timeout);
    let result: HandOver;
    try {
      result = await handingOver;
    } catch (error) {
      return afterFailure(error, handingOver, protocol, to, timeout, this.services.orphans);
    }
    const { answer } = result;
    if (answer === undefined) return result.found;
    if (to.isLate() || !this.#queue.takes(to, answer.granted))
      return giveBack(protocol, to, timeout, this.services.orphans);
    this.lease = this.#turn = undefined;
    if (from.releaseTrace !== undefined) from.releaseTrace.isHandedOver = answer.granted;
    turn.inherited = { acquisition: to, answer };
    this.#queue.pass(turn);
    return 'released';
  }
}
