import { inspect } from 'node:util';
import { acquireChannel, holdChannel, isTraced, lockMessage, traceAcquire, traceHold } from '../api/diagnostics';
import type { DistributedLock, Lease, LockOptions, LockState, TryRunResult } from '../api/distributed-lock';
import { LockTimeoutError, NotLockOwnerError, notHeld } from '../api/errors';
import type { LockMessage } from '../api/messages';
import { callback, inOneLine, string } from '../internal/validation';
import { LockNames } from '../redis/names';
import { Call } from './acquire';
import { noAnswer } from './availability';
import { hintAfter } from './deadlocks';
import type { Inbox } from './inbox';
import type { Inspection } from './inspection';
import type { InternalLease } from './internal-lease';
import type { RedisLease } from './lease';
import type { LockCache } from './lock-cache';
import { Passing, type PassingServices } from './passing';
import { type LockRequest, lockRequest } from './request';
import { runUnder, Scope } from './scope';
import { UnlockOrder } from './unlock-order';
import { Wait } from './wait';
import type { Watchdog } from './watchdog';

/** @internal What the locks of a registry share. */
export interface LockServices extends PassingServices {
  readonly inspection: Inspection;
  readonly inbox: Inbox;
  /** Takes the lock from its holder: see `Replacements`. */
  replace(lock: RedisLock, request: LockRequest, wait: Wait): Promise<InternalLease | null>;
  readonly cache: LockCache<RedisLock>;
  readonly watchdog: Watchdog;
}

/**
 * The lock of one key. A caller first takes the local turn, so that only one caller of this process contends, and then
 * the lock in Redis. Made by `RedisLockRegistry.obtain`, one for each key.
 */
export class RedisLock implements DistributedLock {
  readonly key: string;
  /** @internal */
  readonly services: LockServices;
  /** Its callers in this process; `undefined`: there are none, and nothing was learnt that the next one is to know. */
  #passing: Passing<LockServices> | undefined;
  /** @internal As Linked, among the cached locks, in the order in which they were used. */
  previous: RedisLock | undefined;
  /** @internal */
  next: RedisLock | undefined;
  /** @internal When it was cached or last called, on the monotonic clock: whole ms, which cost no memory. */
  usedAt = 0;
  /** @internal The registry has removed this lock from its cache. Its callers use the one that is cached. */
  evicted = false;
  /** @internal Runs under it, also those that lost their lease, and calls that enter again or adopt. */
  runs = 0;

  /** @internal Throws `RangeError` if the keys that belong to the lock could not share its hash slot. */
  constructor(key: string, services: LockServices) {
    this.key = key;
    this.services = services;
    // For the error. What is not called yet is as small as what is not called any more.
    services.openProtocol(LockNames.checked(services.settings.registryKey, key));
  }

  /** @internal */
  get names(): LockNames {
    return new LockNames(this.services.settings.registryKey, this.key);
  }

  /** @internal Its callers in this process: for a call, or an adopted lease. */
  get passing(): Passing<LockServices> {
    this.#passing ??= this.newPassing();
    return this.#passing;
  }

  /** @internal */
  protected newPassing(): Passing<LockServices> {
    return new Passing<LockServices>(this);
  }

  /** @internal See `Passing.leases`. */
  get leases(): readonly RedisLease[] {
    return this.#passing?.leases ?? [];
  }

  /** @internal A call or a lease has ended. */
  mayRest(): void {
    this.#passing?.mayRest();
  }

  /** @internal As PassedLock. */
  dropPassing(passing: object): void {
    if (this.#passing === passing) this.retire();
  }

  get isAcquiredInThisProcess(): boolean {
    return this.cached().leases.some((lease) => lease.remaining > 0);
  }

  lock(options?: LockOptions): Promise<Lease> {
    return this.acquireFor(options, Number.POSITIVE_INFINITY, false) as Promise<Lease>;
  }

  tryLock(options?: LockOptions): Promise<Lease | null> {
    return this.acquireFor(options, 0, true);
  }

  /** No async function: each caller that waits would have a suspended one more, and its memory. */
  private acquireFor(options: LockOptions | undefined, waitTime: number, isTry: boolean): Promise<Lease | null> {
    try {
      const request = lockRequest(options, this, waitTime);
      return this.enter(request, false).then((lease) => {
        if (lease !== null) return this.noted(lease);
        return isTry ? null : this.timedOut(request);
      });
    } catch (error) {
      return Promise.reject(error);
    }
  }

  async run<T>(task: (lease: Lease) => T | PromiseLike<T>, options?: LockOptions): Promise<T> {
    callback('task', task);
    return this.runWithin(undefined, task, lockRequest(options, this, Number.POSITIVE_INFINITY));
  }

  async tryRun<T>(task: (lease: Lease) => T | PromiseLike<T>, options?: LockOptions): Promise<TryRunResult<T>> {
    callback('task', task);
    return this.tryRunWithin(undefined, task, lockRequest(options, this, 0));
  }

  async unlock(): Promise<void> {
    const lock = this.cached();
    const own = this.orderOfCaller;
    // An evicted lock may still have unreported losses.
    const order = own?.isUnlocked === false ? own : lock.orderOfCaller;
    if (lock.leases.length > 1 && order?.isAmbiguous) {
      throw new NotLockOwnerError(`Lock "${this.key}" has several leases here: unlock each by itself`, this.key);
    }
    if (!(await order?.unlockNext())) throw notHeld(this.key, 'here through lock() or tryLock()');
  }

  /** The leases that an `unlock` of the caller may end. */
  private get orderOfCaller(): UnlockOrder | undefined {
    const order = Scope.unlockOrderFor(this);
    const taken = this.#passing?.taken;
    return order ?? (taken && UnlockOrder.of(taken));
  }

  inspect(): Promise<LockState> {
    return this.services.inspection.inspect(this.key, this.names);
  }

  async ask(why = ''): Promise<boolean> {
    const text = string('why', why);
    const { inbox, inspection } = this.services;
    return inspection.withOwners(this.key, this.names, (owners) => inbox.ask(owners, text, this.names));
  }

  async forceUnlock(): Promise<LockState> {
    const state = await this.services.inspection.forceUnlock(this.key, this.names);
    for (const { hold } of this.cached().leases) hold.confirmNow();
    return state;
  }

  // For the registry

  /** @internal Held, waited for, or the lock of a `run` that has not ended. */
  get isInUse(): boolean {
    return this.runs > 0 || this.#passing?.isInUse === true;
  }

  /** @internal What was learnt of it is forgotten. Leases that were lost stay, until `unlock` has said so. */
  retire(): void {
    this.#passing?.retireProtocol();
    if (this.#passing?.taken === undefined) this.#passing = undefined;
  }

  /** @internal Makes the lease that is held last at least `ttl` ms from now. */
  async renew(ttl?: number): Promise<void> {
    const lease = this.#passing?.held;
    if (lease === undefined) throw notHeld(this.key, 'in this process');
    await lease.renew(ttl);
  }

  /** @internal As WaitedLock. */
  get heldFor(): number | undefined {
    return this.#passing?.held?.heldFor;
  }

  /** @internal As WaitedLock. */
  get lastHolder(): { readonly owner: string; readonly remaining: number } | undefined {
    return this.cached().#passing?.lastHolder;
  }

  /** @internal Redis does not answer about it: see `Availability`. */
  get isSilent(): boolean {
    return this.cached().#passing?.isSilent === true;
  }

  /**
   * @internal The error of one who has waited for what a caller of this lock does: too few replicas had its grants, or
   * (`isSilent`) Redis does not answer. `undefined`: others have the lock.
   */
  failureFor(wait: Wait, isSilent: boolean): Error | undefined {
    const failure = this.cached().#passing?.failureFor(wait, isSilent);
    return failure ?? (isSilent ? noAnswer(this.key, this.services.connection) : undefined);
  }

  // For a lock of several keys

  /** @internal Another caller of this process has it, or asks for it. */
  get isBusyHere(): boolean {
    const passing = this.cached().#passing;
    return passing !== undefined && !this.isHeldInScope && (passing.isHeldHere || passing.isTaken);
  }

  /** @internal The caller stands in a scope of it, and enters again. */
  get isHeldInScope(): boolean {
    return Scope.holding(this.cached()) !== undefined;
  }

  /** @internal Rejects with the error of a wait that is over. */
  async timedOut({ waitTime }: Pick<LockRequest, 'waitTime'>): Promise<never> {
    throw new LockTimeoutError(
      this.key,
      waitTime,
      this.lastHolder,
      await hintAfter(this, waitTime, this.cached().#passing?.isAnswered !== false),
    );
  }

  /** @internal As QueuedLock. */
  isAwaitedBy(id: string, timeout: number): Promise<boolean> {
    return this.services.inspection.isAwaitedBy(id, this.names, timeout);
  }

  /** @internal As ScopedLock: this one, but for a reader inside its own write scope. */
  get scopeLock(): object {
    return this;
  }

  // One call

  /** @internal How many permits a caller may take: those of a semaphore. */
  get mostPermits(): number {
    return 1;
  }

  /**
   * @internal One call: a re-entry where the caller stands in a scope of this lock, else an acquisition. `null`: another
   * holder had it until the wait was over. `around`: the wait of the call that this one is a part of.
   */
  enter(request: LockRequest, isRun: boolean, around?: Wait): Promise<InternalLease | null> {
    if (request.signal?.aborted) throw request.signal.reason;
    const cached = this.readmitted();
    if (cached !== this) return cached.enter(request, isRun, around);
    const innermost = Scope.current();
    const scope = innermost && Scope.holding(this.scopeLock);
    if (innermost !== undefined && scope === undefined) this.assertMayEnter();
    const wait = new Wait(this.key, request.waitTime, request.signal, around);
    this.usedAt = Math.floor(wait.startedAt);
    wait.lock = this;
    wait.scope = innermost;
    if (wait.trace !== undefined || !isTraced(acquireChannel)) return this.acquire(request, wait, isRun, scope);
    // A subscriber of its start may evict what is not in use.
    this.runs++;
    try {
      return traceAcquire(this.labels, wait, request.waitTime, scope !== undefined, () =>
        this.acquire(request, wait, isRun, scope),
      );
    } finally {
      this.runs--;
    }
  }

  /** @internal Throws for a caller that would wait for itself. */
  protected assertMayEnter(): void {}

  private async reenter(
    around: Scope,
    request: LockRequest,
    wait: Wait,
    isRun: boolean,
  ): Promise<InternalLease | null> {
    const { settings, waits } = this.services;
    waits.beginReentry(wait);
    // The run around it may end first. If the lock was evicted then, `close` would not find the lease.
    this.runs++;
    try {
      for (let scope: Scope | undefined = around; scope !== undefined; scope = Scope.holding(this.scopeLock)) {
        const entered = await scope.reenter(request, wait, isRun, settings.unavailableAfter);
        if (entered !== 'scope ended') return entered;
      }
      waits.endReentry(wait);
      return await this.acquire(request, wait, isRun);
    } finally {
      this.runs--;
      waits.endReentry(wait);
      wait.end();
    }
  }

  /** `scope`: the caller stands in it, and enters again. */
  private acquire(request: LockRequest, wait: Wait, isRun: boolean, scope?: Scope): Promise<InternalLease | null> {
    if (scope !== undefined) return this.reenter(scope, request, wait, isRun);
    if (request.grace !== undefined) return this.services.replace(this, request, wait);
    const { passing } = this;
    passing.begin();
    return new Call(passing, passing.openProtocol(), request, wait).run();
  }

  /** @internal As `run`. `around`: see `enter`. */
  async runWithin<T>(
    around: Wait | undefined,
    task: (lease: Lease) => T | PromiseLike<T>,
    request: LockRequest,
  ): Promise<T> {
    const lease = await this.enter(request, true, around);
    if (lease === null) return this.timedOut(request);
    return this.runHere(lease, task);
  }

  /** @internal As `tryRun`. `around`: see `enter`. */
  async tryRunWithin<T>(
    around: Wait | undefined,
    task: (lease: Lease) => T | PromiseLike<T>,
    request: LockRequest,
  ): Promise<TryRunResult<T>> {
    const lease = await this.enter(request, true, around);
    return lease === null ? { ran: false } : { ran: true, value: await this.runHere(lease, task) };
  }

  // Its leases

  private runHere<T>(lease: InternalLease, task: (lease: Lease) => T | PromiseLike<T>): Promise<T> {
    return runUnder(lease, [{ lock: this.cached(), lease }], task, isTraced(holdChannel) ? this.labels : undefined);
  }

  /** For `lock` and `tryLock`: `unlock` will find the lease, in the caller's scope, or here outside all scopes. */
  private noted(lease: InternalLease): InternalLease {
    // A lease that was lost on the way to its caller has no section: nothing would end it.
    if (isTraced(holdChannel) && !lease.isReentry && !lease.checkLost()) traceHold(this.labels, lease);
    const lock = this.cached();
    const scope = Scope.current();
    if (scope !== undefined) scope.unlockOrderOf(lock).add(lease);
    else lock.passing.taken = UnlockOrder.with(lease, lock.passing.taken);
    return lease;
  }

  /** @internal As `cached`. This one is cached again where there is none: throws if there is no room for it. */
  readmitted(): RedisLock {
    return this.evicted ? this.services.cache.readmit(this) : this;
  }

  /** @internal The lock that is cached for the key now; another one than this when this one was evicted. */
  cached(): RedisLock {
    return this.evicted ? (this.services.cache.get(this.key) ?? this) : this;
  }

  /** What `console.log(lock)` prints. The state is that of its hold: see `Hold`. */
  [inspect.custom](): string {
    const lock = this.cached();
    const state = lock.leases[0]?.hold.state ?? (lock.#passing?.callers ? 'asked' : 'free here');
    return lockText('Lock', this, `, lockType: '${this.services.settings.lockType}', state: '${state}'`);
  }

  /** What messages say of this lock. */
  private get labels(): LockMessage {
    return lockMessage(this.services.settings, this.key);
  }
}

/** @internal What `console.log(lock)` prints. */
export function lockText(type: string, lock: DistributedLock, more = ''): string {
  const { isAcquiredInThisProcess: isHere } = lock;
  return inOneLine(`${type} { key: ${inspect(lock.key)}${more}, isAcquiredInThisProcess: ${isHere} }`);
}
