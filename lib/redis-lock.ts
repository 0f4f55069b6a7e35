import { Acquisition } from './acquire/acquisition';
import { Attempts } from './acquire/attempts';
import { LocalQueue } from './acquire/local-queue';
import { NoTurn, type Turn } from './acquire/turn';
import { Wait } from './acquire/wait';
import { LockTimeoutError, NotLockOwnerError } from './errors';
import { clock } from './internal/clock';
import { callback } from './internal/validation';
import { type LeaseKeeper, type LeaseServices, RedisLease } from './lease/redis-lease';
import type { HandOverResult } from './lease/release';
import { type HeldLease, UnlockOrder } from './lease/unlock-order';
import type { DistributedLock, Lease, LockOptions } from './lock-registry';
import { type LockRequest, lockRequest, type RegistrySettings } from './options';
import type { LockProtocol } from './protocols/protocol';
import { isServerAnswer } from './redis/failure';
import { LockNames } from './redis/names';
import { Scope } from './scope/scope';

/** What the locks of a registry share. */
export interface LockServices extends LeaseServices {
  readonly settings: RegistrySettings;
  /** A new ticket: an owner value that was never used before. */
  nextTicket(): string;
  /** The protocol of a lock: the one that is still active for its name, or a new one. */
  openProtocol(names: LockNames): LockProtocol;
  /** From now on `close` interrupts the wait. Throws when the registry is closed. */
  begin(wait: Wait): void;
  end(wait: Wait): void;
  /** The lock that is cached for the key, if there is one. */
  cached(key: string): RedisLock | undefined;
  /** Caches a lock again that was evicted, unless another one is cached for its key. Returns the cached one. */
  readmit(lock: RedisLock): RedisLock;
}

/**
 * The lock of one key. A caller first takes the local turn, so that only one caller of this process contends, and then
 * the lock in Redis. Made by `RedisLockRegistry.obtain`, one for each key.
 */
export class RedisLock implements DistributedLock, LeaseKeeper {
  readonly key: string;
  /** @internal As Linked, among the cached locks, in the order in which they were used. */
  previous: RedisLock | undefined;
  /** @internal */
  next: RedisLock | undefined;
  /** @internal When it was last obtained or used, on the monotonic clock. */
  usedAt = 0;
  /** @internal The registry has removed this lock from its cache. Its callers use the one that is cached. */
  evicted = false;

  readonly #services: LockServices;
  readonly #names: LockNames;
  readonly #queue = new LocalQueue();
  readonly #attempts: Attempts;
  #protocol: LockProtocol | undefined;
  /** Callers between their call and their lease. */
  #callers = 0;
  /** Runs under it, also those that lost their lease. */
  #runs = 0;
  /** The lease that is held, and the local turn that goes with it. */
  #held: { readonly lease: RedisLease; readonly turn: Turn } | undefined;
  /** What was taken with `lock` and `tryLock` outside all scopes; `undefined`: nothing. */
  #unlockOrder: UnlockOrder | undefined;
  #whenFree: (() => void)[] | undefined;

  /** @internal */
  constructor(key: string, services: LockServices) {
    this.key = key;
    this.#services = services;
    this.#names = new LockNames(services.settings.registryKey, key);
    this.#protocol = services.openProtocol(this.#names);
    this.#attempts = new Attempts(key, services.settings, services.redis.monitor);
  }

  get isAcquiredInThisProcess(): boolean {
    return (this.#cached().#held?.lease.remaining ?? 0) > 0;
  }

  async lock(options?: LockOptions): Promise<Lease> {
    const lease = await this.#acquire(options, Number.POSITIVE_INFINITY);
    if (lease === null) throw new LockTimeoutError(this.key, options?.waitTime ?? Number.POSITIVE_INFINITY);
    this.#cached().#unlockOrderHere().add(lease);
    return lease;
  }

  async tryLock(options?: LockOptions): Promise<Lease | null> {
    const lease = await this.#acquire(options, 0);
    if (lease !== null) this.#cached().#unlockOrderHere().add(lease);
    return lease;
  }

  async run<T>(task: (lease: Lease) => T | PromiseLike<T>, options?: LockOptions): Promise<T> {
    callback('task', task);
    const lease = await this.#acquire(options, Number.POSITIVE_INFINITY, true);
    if (lease === null) throw new LockTimeoutError(this.key, options?.waitTime ?? Number.POSITIVE_INFINITY);
    const lock = this.#cached();
    lock.#runs++;
    try {
      return await runUnder(lease, new Scope(lock, lease), task);
    } finally {
      lock.#runs--;
    }
  }

  async unlock(): Promise<void> {
    const lock = this.#cached();
    // An evicted lock may still have unreported losses.
    const own = this.evicted && !this.#unlockOrder?.isEmpty ? this.#unlockOrder : undefined;
    const order = own ?? Scope.unlockOrderFor(lock) ?? lock.#unlockOrder;
    if (!(await order?.unlockNext())) {
      throw new NotLockOwnerError(`Lock "${this.key}" is not held here through lock() or tryLock()`, this.key);
    }
  }

  /** @internal Makes the lease that is held last at least `ttl` ms from now. */
  async renew(ttl?: number): Promise<void> {
    if (this.#held === undefined) {
      throw new NotLockOwnerError(`Lock "${this.key}" is not held in this process`, this.key);
    }
    await this.#held.lease.renew(ttl);
  }

  /** @internal Held, or waited for. */
  get isInUse(): boolean {
    return this.#callers > 0 || this.#runs > 0 || this.#held !== undefined;
  }

  /** @internal The lock was evicted: its protocol, which lives on while it is active. */
  detachProtocol(): LockProtocol | undefined {
    const protocol = this.#protocol;
    this.#protocol = undefined;
    return protocol;
  }

  /** @internal */
  get names(): LockNames {
    return this.#names;
  }

  /** @internal Resolves when it is not held. */
  async free(): Promise<void> {
    if (this.#held === undefined) return;
    this.#whenFree ??= [];
    const listeners = this.#whenFree;
    await new Promise<void>((resolve) => listeners.push(resolve));
  }

  /** @internal Ends the lease that is held, and leaves its key to expire. */
  loseByClose(): void {
    this.#held?.lease.lose('closed');
  }

  /** @internal As LeaseKeeper. */
  handOver(lease: RedisLease, timeout: number): Promise<HandOverResult> | undefined {
    const next = this.#queue.next;
    if (next === undefined || this.#held?.lease !== lease || this.#services.settings.handOver === 0) return undefined;
    return this.#handOver(lease, this.#newAcquisition(next.ttl, true), this.#held.turn, timeout);
  }

  /** @internal As LeaseKeeper. */
  leaseOver(lease: RedisLease): void {
    if (this.#held?.lease === lease) {
      this.#held.turn.release();
      this.#held = undefined;
    }
    this.#unlockOrder?.forgetUnlocked();
    if (this.#unlockOrder?.isEmpty) this.#unlockOrder = undefined;
    for (const resolve of this.#whenFree ?? []) resolve();
    this.#whenFree = undefined;
  }

  /** The lock that is cached for the key now; another one than this when this one was evicted. */
  #cached(): RedisLock {
    return this.evicted ? (this.#services.cached(this.key) ?? this) : this;
  }

  /** Where `lock` and `tryLock` note their lease for `unlock`: in the caller's scope, or here outside all scopes. */
  #unlockOrderHere(): UnlockOrder {
    const scope = Scope.current();
    if (scope !== undefined) return scope.unlockOrderOf(this);
    this.#unlockOrder ??= new UnlockOrder();
    return this.#unlockOrder;
  }

  get #openProtocol(): LockProtocol {
    this.#protocol ??= this.#services.openProtocol(this.#names);
    return this.#protocol;
  }

  /** `null`: another holder had the lock until the wait was over. */
  #acquire(options: LockOptions | undefined, defaultWaitTime: number, isRun = false): Promise<HeldLease | null> {
    const request = lockRequest(options, this.#services.settings, defaultWaitTime);
    if (request.signal?.aborted) throw request.signal.reason;
    const lock = this.evicted ? this.#services.readmit(this) : this;
    const wait = new Wait(lock.key, request.waitTime, request.signal);
    const scope = Scope.holding(lock);
    return scope === undefined ? lock.#queueAndContend(request, wait) : lock.#reenter(scope, request, wait, isRun);
  }

  async #reenter(around: Scope, request: LockRequest, wait: Wait, isRun: boolean): Promise<HeldLease | null> {
    try {
      for (let scope: Scope | undefined = around; scope !== undefined; scope = Scope.holding(this)) {
        const entry = await scope.reenter(request, wait, isRun);
        if (entry.outcome === 'entered') return entry.lease;
        if (entry.outcome === 'timed out') return null;
      }
      return await this.#queueAndContend(request, wait);
    } finally {
      wait.end();
    }
  }

  /** Takes the local turn, and then the lock: it came with the turn, or the caller contends for it in Redis. */
  async #queueAndContend(request: LockRequest, wait: Wait): Promise<RedisLease | null> {
    this.#callers++;
    this.usedAt = wait.startedAt;
    try {
      this.#services.begin(wait);
      // Redis already granted it to this process; no command is needed.
      if (wait.isSingleAttempt && this.isAcquiredInThisProcess) return null;
      const protocol = this.#openProtocol;
      let turn = this.#tryEnter(protocol);
      if (turn === undefined && !wait.isSingleAttempt) turn = await this.#queue.enter(wait, request.ttl);
      if (turn !== undefined) return await this.#contend(protocol, turn, request, wait);
      await this.#attempts.assertAnswered(protocol, wait);
      return null;
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
      const result = isInherited ? inherited.grant : await this.#attempts.acquire(protocol, acquisition, wait);
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
    let result: Awaited<typeof handOver>;
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

/** The task, and then the unlock. An error of the task wins, and so does its result, unless the lease was lost under it. */
async function runUnder<T>(lease: HeldLease, scope: Scope, task: (lease: Lease) => T | PromiseLike<T>): Promise<T> {
  let result: T;
  try {
    result = await scope.run(() => task(lease));
  } finally {
    await lease[Symbol.asyncDispose]();
  }
  if (lease.wasLost) throw lease.lossError(result);
  return result;
}
