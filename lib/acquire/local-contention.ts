import { clock } from '../internal/clock';
import { type LeaseServices, RedisLease } from '../lease/redis-lease';
import type { HandOverResult } from '../lease/release';
import type { HandOver, LockProtocol } from '../protocols/protocol';
import { isServerAnswer } from '../redis/failure';
import { LockNames } from '../redis/names';
import type { LockRequest, RegistrySettings } from '../settings';
import { Acquisition } from './acquisition';
import type { Attempts } from './attempts';
import { LocalQueue } from './local-queue';
import { NoTurn, type Turn } from './turn';
import type { Wait } from './wait';

/** What the locks of a registry share for acquisitions. */
export interface ContentionServices extends LeaseServices {
  readonly settings: RegistrySettings;
  readonly attempts: Attempts;
  /** A new ticket: an owner value that was never used before. */
  nextTicket(): string;
  /** The protocol of a lock: the one that is still active for its name, or a new one. */
  openProtocol(names: LockNames): LockProtocol;
  /** From now on `close` interrupts the wait. Throws when the registry is closed. */
  begin(wait: Wait): void;
  end(wait: Wait): void;
}

/**
 * The callers of this process that contend for one lock. A caller first takes the local turn, so that only one of them
 * contends in Redis. The holder hands the lock over to the next local caller, where there is one.
 */
export abstract class LocalContention {
  readonly key: string;
  /** @internal */
  readonly names: LockNames;
  readonly #services: ContentionServices;
  readonly #queue = new LocalQueue();
  #protocol: LockProtocol | undefined;
  /** Callers between their call and their lease. */
  #callers = 0;
  /** The lease that is held, and the local turn that goes with it. */
  #held: { readonly lease: RedisLease; readonly turn: Turn } | undefined;
  #whenFree: (() => void)[] | undefined;

  /** @internal Throws `RangeError` when there is no way to name in Redis what belongs to the lock. */
  constructor(key: string, services: ContentionServices) {
    this.key = key;
    this.names = new LockNames(services.settings.registryKey, key);
    this.#services = services;
    this.#protocol = services.openProtocol(this.names);
  }

  /** Called when a lease has ended. */
  protected abstract onLeaseOver(): void;

  /** The lease that is held. */
  protected get lease(): RedisLease | undefined {
    return this.#held?.lease;
  }

  /** @internal Held, or waited for. */
  get isInUse(): boolean {
    return this.#callers > 0 || this.#held !== undefined;
  }

  /** @internal The lock was evicted: its protocol, which lives on while it is active. */
  detachProtocol(): LockProtocol | undefined {
    const protocol = this.#protocol;
    this.#protocol = undefined;
    return protocol;
  }

  /** @internal Resolves when the lock is not held. */
  async free(): Promise<void> {
    if (this.#held === undefined) return;
    this.#whenFree ??= [];
    const listeners = this.#whenFree;
    await new Promise<void>((resolve) => listeners.push(resolve));
  }

  /** @internal As LeaseKeeper. */
  handOver(lease: RedisLease, timeout: number): Promise<HandOverResult> | undefined {
    const { next } = this.#queue;
    const held = this.#held;
    if (next === undefined || held?.lease !== lease || this.#services.settings.handOver === 0) return undefined;
    return this.#handOver(lease, this.#newAcquisition(next.ttl, true), held.turn, timeout);
  }

  /** @internal As LeaseKeeper. */
  leaseOver(lease: RedisLease): void {
    if (this.#held?.lease === lease) {
      this.#held.turn.release();
      this.#held = undefined;
    }
    this.onLeaseOver();
    for (const resolve of this.#whenFree ?? []) resolve();
    this.#whenFree = undefined;
  }

  get #openProtocol(): LockProtocol {
    this.#protocol ??= this.#services.openProtocol(this.names);
    return this.#protocol;
  }

  /**
   * Takes the local turn, and then the lock: it came with the turn, or the caller contends for it in Redis. `null`:
   * another holder had the lock until the wait was over.
   */
  protected async acquire(request: LockRequest, wait: Wait): Promise<RedisLease | null> {
    this.#callers++;
    try {
      this.#services.begin(wait);
      // Redis already granted it to this process; no command is needed.
      if (wait.isSingleAttempt && (this.lease?.remaining ?? 0) > 0) return null;
      const protocol = this.#openProtocol;
      let turn = this.#tryEnter(protocol);
      if (turn === undefined && !wait.isSingleAttempt) turn = await this.#queue.enter(wait, request.ttl);
      if (turn === undefined) {
        const { attempts } = this.#services;
        if (await attempts.wasAnswered(protocol, wait)) return null;
        // The attempt of the caller in front failed: a single attempt may still be made, if the turn is free now.
        await clock.immediate();
        if (wait.isSingleAttempt) turn = this.#tryEnter(protocol);
        if (turn === undefined) throw attempts.unanswered(protocol, wait);
      }
      return await this.#contend(protocol, turn, request, wait);
    } finally {
      this.#callers--;
      this.#services.end(wait);
      wait.end();
    }
  }

  /** With the local turn: it goes on to the lease, or back to the queue. */
  async #contend(protocol: LockProtocol, turn: Turn, request: LockRequest, wait: Wait): Promise<RedisLease | null> {
    const inherited = turn.handedOver;
    turn.handedOver = undefined;
    const acquisition = inherited?.acquisition ?? this.#newAcquisition(request.ttl, !wait.isSingleAttempt);
    let isGranted = inherited !== undefined;
    try {
      wait.throwIfInterrupted();
      const isInherited = inherited !== undefined && inherited.grant.until > clock.now();
      const result = isInherited ? inherited.grant : await this.#services.attempts.acquire(protocol, acquisition, wait);
      isGranted ||= result.granted;
      wait.throwIfInterrupted();
      if (!result.granted) {
        this.#abandon(protocol, acquisition, turn, isGranted);
        return null;
      }
      const lease = new RedisLease(this.key, acquisition, result, request.renew, protocol, this.#services, this);
      this.#held = { lease, turn };
      return lease;
    } catch (error) {
      this.#abandon(protocol, acquisition, turn, isGranted);
      throw error;
    }
  }

  /** The caller leaves without the lock: what it may have in Redis is removed, and the turn goes to the next caller. */
  #abandon(protocol: LockProtocol, acquisition: Acquisition, turn: Turn, isGranted: boolean): void {
    if (isGranted || acquisition.mayHaveTrace) this.#services.orphans.follow(acquisition, protocol);
    turn.release();
  }

  #tryEnter(protocol: LockProtocol): Turn | undefined {
    return protocol.queue === 'redis' ? new NoTurn() : this.#queue.tryEnter();
  }

  async #handOver(from: RedisLease, to: Acquisition, turn: Turn, timeout: number): Promise<HandOverResult> {
    const { orphans } = this.#services;
    const protocol = this.#openProtocol;
    to.stamp();
    const handOver = protocol.handOver(from.owner, to, timeout);
    let result: HandOver;
    try {
      result = await handOver;
    } catch (error) {
      // It was not executed, and there is still a key to release.
      if (isServerAnswer(error)) return 'not tried';
      // Then the orphans of both owners are removed, and the next caller contends.
      to.doubt(handOver);
      orphans.follow(to, protocol);
      return 'unknown';
    }
    if (result.handedOver === undefined) return result.found;
    // The caller that it was meant for may have left meanwhile, and the next one may ask for another ttl.
    if (Math.ceil(this.#queue.next?.ttl ?? 0) === to.ttl) {
      this.#held = undefined;
      turn.handedOver = { acquisition: to, grant: result.handedOver };
      this.#queue.pass(turn);
    } else {
      // The lock is not free until this is done: `unlock` waits for it.
      await protocol.release(to.ticket, timeout).catch(() => orphans.follow(to, protocol));
    }
    return 'released';
  }

  #newAcquisition(ttl: number, waits: boolean): Acquisition {
    const { nextTicket, redis } = this.#services;
    return new Acquisition(nextTicket(), ttl, waits, redis.connectionEpoch);
  }
}
