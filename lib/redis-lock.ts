import type { Use } from './acquire/contender';
import type { ContentionServices } from './acquire/contention-services';
import { Wait } from './acquire/wait';
import { holdChannel, isTraced, traceHold } from './diagnostics/channels';
import type { DistributedLock, Lease, LockOptions, TryRunResult } from './distributed-lock';
import { LockTimeoutError, NotLockOwnerError, notHeld } from './errors';
import type { Inspection } from './inspection';
import { callback } from './internal/validation';
import {
  type HeldLease,
  type LeasesToUnlock,
  orderOf,
  type UnlockOrder,
  withLease,
  withoutUnlocked,
} from './lease/unlock-order';
import type { LockState } from './lock-state';
import { ReentrantContention } from './scope/reentrant-contention';
import { runUnder, type ScopedLock } from './scope/run-under';
import { Scope } from './scope/scope';
import { type LockRequest, lockRequest } from './settings';

/** @internal What the locks of a registry share. */
export interface LockServices extends ContentionServices {
  readonly inspection: Inspection;
  readonly cache: CachedLocks;
}

/** @internal The locks that are cached: see `LockCache`. */
export interface CachedLocks {
  /** The lock that is cached for the key, if there is one. */
  get(key: string): RedisLock | undefined;
  /** Caches a lock again that was evicted, unless another one is cached for its key. Returns the cached one. */
  readmit(lock: RedisLock): RedisLock;
}

/**
 * The lock of one key. A caller first takes the local turn, so that only one caller of this process contends, and then
 * the lock in Redis. Made by `RedisLockRegistry.obtain`, one for each key.
 */
export class RedisLock extends ReentrantContention implements DistributedLock {
  /** @internal As Linked, among the cached locks, in the order in which they were used. */
  previous: RedisLock | undefined;
  /** @internal */
  next: RedisLock | undefined;
  /** @internal When it was cached or last called, on the monotonic clock: whole ms, which cost no memory. */
  usedAt = 0;
  /** @internal The registry has removed this lock from its cache. Its callers use the one that is cached. */
  evicted = false;
  /** @internal */
  declare readonly services: LockServices;
  /** What was taken with `lock` and `tryLock` outside all scopes. */
  #toUnlock: LeasesToUnlock;

  /** @internal */
  constructor(key: string, services: LockServices) {
    super(key, services);
  }

  get isAcquiredInThisProcess(): boolean {
    return this.cached().leases.some((lease) => lease.remaining > 0);
  }

  lock(options?: LockOptions): Promise<Lease> {
    return this.acquireHere(options, Number.POSITIVE_INFINITY, false, (lease) => {
      if (lease === null) throw this.timeoutError(options);
      return this.noted(lease);
    });
  }

  tryLock(options?: LockOptions): Promise<Lease | null> {
    return this.acquireHere(options, 0, false, (lease) => (lease === null ? null : this.noted(lease)));
  }

  async run<T>(task: (lease: Lease) => T | PromiseLike<T>, options?: LockOptions): Promise<T> {
    callback('task', task);
    return this.acquireHere(options, Number.POSITIVE_INFINITY, true, (lease) => {
      if (lease === null) throw this.timeoutError(options);
      return this.runHere(lease, task);
    });
  }

  async tryRun<T>(task: (lease: Lease) => T | PromiseLike<T>, options?: LockOptions): Promise<TryRunResult<T>> {
    callback('task', task);
    return this.acquireHere(options, 0, true, async (lease): Promise<TryRunResult<T>> => {
      return lease === null ? { ran: false } : { ran: true, value: await this.runHere(lease, task) };
    });
  }

  private runHere<T>(lease: HeldLease, task: (lease: Lease) => T | PromiseLike<T>): Promise<T> {
    return runUnder(lease, [{ lock: this.cached(), lease }], task, isTraced(holdChannel) ? this.labels : undefined);
  }

  async unlock(): Promise<void> {
    const lock = this.cached();
    // An evicted lock may still have unreported losses.
    const own = this.evicted && !this.unlockOrder?.isEmpty ? this.unlockOrder : undefined;
    const order = own ?? Scope.unlockOrderFor(lock) ?? lock.unlockOrder;
    if (lock.leases.length > 1 && order?.isAmbiguous) {
      throw new NotLockOwnerError(`Lock "${this.key}" has several leases here: unlock each by itself`, this.key);
    }
    if (!(await order?.unlockNext())) {
      throw notHeld(this.key, 'here through lock() or tryLock()');
    }
  }

  inspect(): Promise<LockState> {
    return this.services.inspection.inspect(this.key, this.names);
  }

  async forceUnlock(): Promise<LockState> {
    const state = await this.services.inspection.forceUnlock(this.key, this.names);
    for (const lease of this.cached().leases) lease.confirmNow();
    return state;
  }

  /** @internal As MultiPart. */
  requested(options: LockOptions | undefined, defaultWaitTime: number): LockRequest {
    return lockRequest(options, this.services.settings, defaultWaitTime);
  }

  /** @internal As MultiPart. */
  async acquirePart(options: LockOptions | undefined, waitTime: number): Promise<HeldLease | null> {
    return this.acquireHere({ ...options, waitTime, renew: true }, waitTime, false, (lease) => {
      if (lease !== null) this.traceHold(lease);
      return lease;
    });
  }

  /** @internal As MultiPart. */
  timeoutError(options: LockOptions | undefined): LockTimeoutError {
    return new LockTimeoutError(this.key, options?.waitTime ?? Number.POSITIVE_INFINITY, this.cached().holder);
  }

  /** @internal As MultiPart. */
  scopedLock(): ScopedLock {
    return this.cached();
  }

  /** @internal Makes the lease that is held last at least `ttl` ms from now. */
  async renew(ttl?: number): Promise<void> {
    const { lease } = this;
    if (lease === undefined) throw notHeld(this.key, 'in this process');
    await lease.renew(ttl);
  }

  /** @internal Ends the leases that are held, and leaves them to expire. */
  loseByClose(): void {
    for (const lease of this.leases) lease.lose('closed');
  }

  /** @internal */
  protected onLeaseOver(): void {
    this.#toUnlock = withoutUnlocked(this.#toUnlock);
  }

  private traceHold(lease: HeldLease): void {
    if (isTraced(holdChannel) && !lease.isReentry) lease.endHold = traceHold(this.labels, lease);
  }

  /** The lock that is cached for the key now; another one than this when this one was evicted. */
  private cached(): RedisLock {
    return this.evicted ? (this.services.cache.get(this.key) ?? this) : this;
  }

  private get unlockOrder(): UnlockOrder | undefined {
    const order = orderOf(this.#toUnlock);
    this.#toUnlock = order;
    return order;
  }

  /** `lock` and `tryLock` note their lease for `unlock`: in the caller's scope, or here outside all scopes. */
  private noteForUnlock(lease: HeldLease): void {
    const scope = Scope.current();
    if (scope === undefined) this.#toUnlock = withLease(this.#toUnlock, lease);
    else scope.unlockOrderOf(this).add(lease);
  }

  /** For `lock` and `tryLock`: `unlock` will find the lease. */
  private noted(lease: HeldLease): HeldLease {
    this.traceHold(lease);
    this.cached().noteForUnlock(lease);
    return lease;
  }

  private acquireHere<T>(
    options: LockOptions | undefined,
    defaultWaitTime: number,
    isRun: boolean,
    use: Use<T | PromiseLike<T>>,
  ): Promise<T> {
    try {
      const request = this.requested(options, defaultWaitTime);
      if (request.signal?.aborted) throw request.signal.reason;
      const lock = this.evicted ? this.services.cache.readmit(this) : this;
      const wait = new Wait(lock.key, request.waitTime, request.signal);
      lock.usedAt = Math.floor(wait.startedAt);
      wait.lock = lock;
      return lock.enter(request, wait, isRun, use) as Promise<T>;
    } catch (error) {
      return Promise.reject(error);
    }
  }
}
