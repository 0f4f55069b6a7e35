import { clock } from '../internal/clock';
import { Deferred } from '../internal/deferred';
import type { RedisLease } from '../lease/redis-lease';
import type { HandOverResult } from '../lease/release';
import type { LockProtocol } from '../protocols/protocol';
import { LockNames } from '../redis/names';
import type { LockRequest } from '../settings';
import { type Acquisition, newAcquisition } from './acquisition';
import { Contender, type Use } from './contender';
import type { ContentionServices } from './contention-services';
import { afterFailure, giveBack } from './failed-hand-over';
import { LocalQueue } from './local-queue';
import { NoTurn, type Turn } from './turn';
import type { Wait } from './wait';

/**
 * The callers of this process that contend for one lock. A caller first takes the local turn, so that only one of them
 * contends in Redis. The holder hands the lock over to the next local caller, where there is one.
 *
 * It is the ContendedLock of its callers. It does not say so with `implements`: the published types leave out what is
 * internal.
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
    return this.lease ?? this.#protocol?.availability.holderSaid(clock.now());
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
    return this.handOverTo(lease, newAcquisition(this.services, next.ttl, true, next.since), turn, timeout);
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

  private get openProtocol(): LockProtocol {
    this.#protocol ??= this.services.protocols.openProtocol(this.names);
    return this.#protocol;
  }

  /**
   * @internal Takes the local turn, and then the lock. `use` gets the lease, or `null`: another holder had the lock
   * until the wait was over. Throws when the registry is closed.
   */
  protected acquire<T>(request: LockRequest, wait: Wait, use: Use<T>): Promise<T> {
    this.#callers++;
    try {
      this.services.waits.begin(wait);
    } catch (error) {
      this.left(wait);
      throw error;
    }
    return new Contender(this, this.openProtocol, request, wait, use).run();
  }

  /** @internal As ContendedLock. */
  left(wait: Wait): void {
    this.#callers--;
    this.services.waits.end(wait);
    wait.end();
  }

  /** @internal As ContendedLock. */
  get isHeldHere(): boolean {
    return this.lease !== undefined && this.lease.remaining > 0;
  }

  /** @internal As ContendedLock. */
  tryEnter(protocol: LockProtocol): Turn | undefined {
    return protocol.queue === 'redis' ? new NoTurn() : this.#queue.tryEnter();
  }

  /** @internal As ContendedLock. */
  waitForTurn(wait: Wait, ttl: number): Promise<Turn | undefined> {
    return this.#queue.enter(wait, ttl);
  }

  /** @internal As ContendedLock. */
  async withoutTurn(protocol: LockProtocol, wait: Wait): Promise<Turn | undefined> {
    const { outcome } = this.services.sender;
    if (await outcome.wasAnswered(protocol, wait)) return undefined;
    // The attempt of the caller in front failed: a single attempt may still be made, if the turn is free now.
    await clock.immediate();
    const freed = wait.isSingleAttempt ? this.tryEnter(protocol) : undefined;
    if (freed === undefined) throw outcome.error(protocol, wait);
    return freed;
  }

  /** @internal As ContendedLock. */
  recordLease(lease: RedisLease, turn: Turn, protocol: LockProtocol): void {
    this.lease = lease;
    this.#turn = turn;
    protocol.holder = lease;
  }

  private handOverTo(from: RedisLease, to: Acquisition, turn: Turn, timeout: number): Promise<HandOverResult> {
    const protocol = this.openProtocol;
    const { orphans } = this.services;
    to.stamp();
    const handingOver = protocol.handOver(from.owner, to, timeout);
    return handingOver.then(
      (result): HandOverResult | Promise<HandOverResult> => {
        const { answer } = result;
        if (answer === undefined) return result.found;
        if (to.isLate() || !this.#queue.takes(to, answer.granted)) return giveBack(protocol, to, timeout, orphans);
        this.lease = this.#turn = undefined;
        if (from.releaseTrace !== undefined) from.releaseTrace.isHandedOver = answer.granted;
        turn.inherited = { acquisition: to, answer };
        this.#queue.pass(turn);
        return 'released';
      },
      (error: unknown) => afterFailure(error, handingOver, protocol, to, timeout, orphans),
    );
  }
}
