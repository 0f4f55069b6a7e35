import { clock } from './clock';
import { Contention } from './contention';
import { LockTimeoutError, NotLockOwnerError } from './errors';
import { type HeldLease, Holds } from './holds';
import { LocalQueue } from './local-queue';
import type { DistributedLock, Lease, LockOptions } from './lock-registry';
import { callback, type LockRequest, lockRequest } from './options';
import { doubt } from './orphans';
import { isServerAnswer } from './redis/failure';
import { LockNames } from './redis/names';
import { type LeaseServices, RedisLease } from './redis-lease';
import { Scope } from './scope';
import { Claim, type Grant, type Released, type Yielded } from './strategies/strategy';
import { InheritedTurn, NoTurn, type Turn } from './turn';
import { Wait } from './wait';

/** What the locks of a registry share. */
export interface LockServices extends LeaseServices {
  /** An owner value that was never used before. */
  nextOwner(): string;
  /** From now on `close` interrupts the wait; throws when the registry is closed already. */
  begin(wait: Wait): void;
  end(wait: Wait): void;
  /** The lock that is cached for the key, if there is one. */
  cached(key: string): RedisLock | undefined;
  /** Caches a lock again that was evicted, unless another has taken its place; returns the one that is cached. */
  readmit(lock: RedisLock): RedisLock;
}

/**
 * The lock of one key: first the local queue, so that only one caller of this process contends, then Redis.
 * Made by `RedisLockRegistry.obtain`, one for each key.
 */
export class RedisLock implements DistributedLock {
  readonly key: string;
  /** @internal As Linked, among the locks that are cached, in the order in which they were used. */
  previous: RedisLock | undefined;
  /** @internal */
  next: RedisLock | undefined;
  /** @internal When it was last obtained or used, on the monotonic clock. */
  usedAt = 0;
  /** @internal The registry has forgotten this lock to make room. Whoever still has it uses the one that is cached. */
  evicted = false;

  readonly #services: LockServices;
  readonly #names: LockNames;
  readonly #queue = new LocalQueue();
  readonly #contention: Contention;
  /** Callers between their call and their lease. */
  #callers = 0;
  /** Runs under it, also those that lost their lease. */
  #runs = 0;
  /** The lease that is held, and the local turn that goes with it. */
  #held: { readonly lease: RedisLease; readonly turn: Turn } | undefined;
  /** What was taken with `lock` and `tryLock` outside of any scope; `undefined`: nothing. */
  #holds: Holds | undefined;
  #whenFree: (() => void)[] | undefined;
  /** ms for which this process may pass the lock among its own callers, when that time is over, and what came of it. */
  readonly #handOver: number;
  #sliceEndsAt = 0;
  #lastYield: Yielded | undefined;

  /** @internal */
  constructor(key: string, services: LockServices) {
    this.key = key;
    this.#services = services;
    this.#names = new LockNames(services.settings.registryKey, key);
    services.strategy.assertNames(this.#names);
    this.#handOver = services.settings.handOver ?? services.strategy.handOver;
    this.#contention = new Contention(key, services.strategy, services.settings);
  }

  get isAcquiredInThisProcess(): boolean {
    return (this.#cached().#held?.lease.remaining ?? 0) > 0;
  }

  async lock(options?: LockOptions): Promise<Lease> {
    const lease = await this.#acquire(options, Number.POSITIVE_INFINITY);
    if (lease === null) throw new LockTimeoutError(this.key, options?.waitTime ?? Number.POSITIVE_INFINITY);
    this.#cached().#holdsHere().add(lease);
    return lease;
  }

  async tryLock(options?: LockOptions): Promise<Lease | null> {
    const lease = await this.#acquire(options, 0);
    if (lease !== null) this.#cached().#holdsHere().add(lease);
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
    // One that was evicted has its own losses to tell yet.
    const own = this.evicted && !this.#holds?.isEmpty ? this.#holds : undefined;
    const holds = own ?? Scope.holdsToUnlock(lock) ?? lock.#holds;
    if (!(await holds?.unlockNext())) {
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
  handOver(lease: RedisLease, timeout: number): Promise<Released | 'unknown' | undefined> | undefined {
    const next = this.#queue.next;
    if (next === undefined || this.#held?.lease !== lease || this.#handOver === 0) return undefined;
    return this.#handOverTo(this.#claim({ ttl: next.ttl, waits: true }), lease.claim, this.#held.turn, timeout);
  }

  /** @internal As LeaseKeeper. */
  leaseOver(lease: RedisLease): void {
    if (this.#held?.lease === lease) {
      this.#held.turn.release();
      this.#held = undefined;
    }
    this.#holds?.forgetUnlocked();
    if (this.#holds?.isEmpty) this.#holds = undefined;
    for (const resolve of this.#whenFree ?? []) resolve();
    this.#whenFree = undefined;
  }

  /** The lock that stands for the key now; another than this one when this one was evicted. */
  #cached(): RedisLock {
    return this.evicted ? (this.#services.cached(this.key) ?? this) : this;
  }

  /** What `lock` and `tryLock` note, and `unlock` looks for: the holds of the caller's scope, or those outside of any. */
  #holdsHere(): Holds {
    const scope = Scope.current();
    if (scope !== undefined) return scope.holdsOf(this);
    this.#holds ??= new Holds();
    return this.#holds;
  }

  /** `null`: somebody else held the lock until the wait was over. */
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
        const lease = await scope.reenter(request, wait, isRun);
        if (lease !== undefined) return lease;
      }
      return await this.#queueAndContend(request, wait);
    } finally {
      wait.end();
    }
  }

  /** Takes the local turn, and then the lock over where it came with the turn, or contends for it. */
  async #queueAndContend(request: LockRequest, wait: Wait): Promise<RedisLease | null> {
    let turn: Turn | undefined;
    let claim: Claim | undefined;
    let grant: Grant | undefined;
    this.#callers++;
    this.usedAt = wait.startedAt;
    try {
      this.#services.begin(wait);
      // Redis has said so to the holder.
      if (wait.isSingleAttempt && this.isAcquiredInThisProcess) return null;
      turn = this.#tryEnter() ?? (wait.isSingleAttempt ? undefined : await this.#queue.enter(wait, request.ttl));
      if (turn === undefined) {
        await this.#contention.assertAnswered(wait);
        return null;
      }
      if (turn instanceof InheritedTurn) ({ claim, grant } = turn);
      else claim = this.#claim({ ttl: request.ttl, waits: !wait.isSingleAttempt });
      wait.throwIfInterrupted();
      if (grant === undefined || grant.until <= clock.now()) {
        const standBack = this.#lastYield === undefined ? 0 : this.#lastYield.standBackUntil - clock.now();
        if (standBack > 0) await wait.sleep(Math.min(standBack, wait.remaining / 2));
        grant = await this.#contention.obtain(claim, wait);
        wait.throwIfInterrupted();
        this.#sliceEndsAt = claim.sentAt + this.#handOver;
      }
      if (grant === undefined) return null;
      const lease = new RedisLease(this.key, claim, grant, request, this.#services, this);
      this.#held = { lease, turn };
      return lease;
    } finally {
      if (turn !== undefined && this.#held?.turn !== turn) {
        const mayHaveTrace = grant !== undefined || claim?.settled !== undefined || claim?.place !== undefined;
        if (claim !== undefined && mayHaveTrace) this.#services.orphans.follow(claim);
        turn.release();
      }
      this.#callers--;
      this.#services.end(wait);
      wait.end();
    }
  }

  #tryEnter(): Turn | undefined {
    return this.#services.strategy.queue === 'redis' ? new NoTurn() : this.#queue.tryEnter();
  }

  async #handOverTo(to: Claim, from: Claim, turn: Turn, timeout: number): Promise<Released | 'unknown' | undefined> {
    const { orphans, strategy } = this.#services;
    to.stamp();
    const mayYield = to.sentAt >= this.#sliceEndsAt;
    const transfer = strategy.transfer(from, to, mayYield, timeout);
    let outcome: Grant | Yielded | Released;
    try {
      outcome = await transfer;
    } catch (error) {
      // It was not executed, and there is still something to release.
      if (isServerAnswer(error)) return undefined;
      // Then both claims are cleaned up, and the next caller contends.
      doubt(to, transfer);
      orphans.follow(to);
      return 'unknown';
    }
    if (typeof outcome === 'string') return outcome;
    if (!outcome.granted) {
      this.#lastYield = outcome;
      return 'released';
    }
    if (mayYield) this.#sliceEndsAt = to.sentAt + this.#handOver;
    // Whoever it was meant for may have left meanwhile: then the lock is for the one behind, who asks for as much of it.
    if (Math.ceil(this.#queue.next?.ttl ?? 0) === to.ttl) {
      this.#held = undefined;
      this.#queue.pass(new InheritedTurn(turn, to, outcome));
    } else {
      orphans.follow(to);
    }
    return 'released';
  }

  #claim(asked: { ttl: number; waits: boolean }): Claim {
    const { nextOwner, redis } = this.#services;
    return new Claim(this.#names, nextOwner(), asked, redis.connectionEpoch, this.#lastYield);
  }
}

/** The task, and then the unlock: an error of the task wins, and so does its result, unless the lease was lost under it. */
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
