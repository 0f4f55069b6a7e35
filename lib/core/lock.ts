import { inspect } from 'node:util';
import { acquireChannel, holdChannel, isTraced, lockMessage, traceAcquire, traceHold } from '../api/diagnostics';
import type { DistributedLock, Lease, LockOptions, LockState, TryRunResult } from '../api/distributed-lock';
import { LockTimeoutError, NotLockOwnerError, notHeld } from '../api/errors';
import type { LockMessage } from '../api/messages';
import { clock, drift } from '../internal/clock';
import { callback, inOneLine } from '../internal/validation';
import { isServerAnswer } from '../redis/failure';
import { LockNames } from '../redis/names';
import { SILENT } from '../redis/silence-times';
import { Call } from './acquire';
import { hintAfter } from './deadlocks';
import type { HeldLease } from './held-lease';
import { type Hold, type LeaseOfHold, ttlFor } from './hold';
import type { Inspection } from './inspection';
import { type LeaseServices, type PassedOn, RedisLease } from './lease';
import { LocalQueue, Turn } from './local-queue';
import type { LockCache } from './lock-cache';
import type { CallServices, Entry } from './lock-of-call';
import type { Confirmed, Grant, LockProtocol, Released } from './protocol';
import { type LockRequest, lockRequest } from './request';
import { runUnder, Scope, type ScopedLock } from './scope';
import { UnlockOrder } from './unlock-order';
import { Wait } from './wait';
import type { Watchdog } from './watchdog';

/** @internal What the locks of a registry share. */
export interface LockServices extends CallServices, LeaseServices {
  readonly watchdog: Watchdog;
  readonly loopTurn: LoopTurn;
  readonly inspection: Inspection;
  readonly cache: LockCache<RedisLock>;
  openProtocol(names: LockNames): LockProtocol;
  /** The lock of a lease of this key that this registry has adopted, and holds: see `Adoptions`. */
  adopted(key: string): RedisLock | undefined;
}

/** ms; while the callers of a process pass a hold on, the event loop gets a turn after this time. */
const LOOP_TURN = 5;

/** Since when the callers of a registry have passed holds on in this turn of the event loop. */
export class LoopTurn {
  #since: number | undefined;

  /** A hold is passed on now. Returns whether the event loop has to get a turn first. */
  isDue(now: number): boolean {
    if (this.#since === undefined) {
      this.#since = now;
      void clock.immediate().then(() => (this.#since = undefined));
    }
    return now - this.#since >= LOOP_TURN;
  }
}

/**
 * The lock of one key. A caller first takes the local turn, so that only one caller of this process contends, and then
 * the lock in Redis. Made by `RedisLockRegistry.obtain`, one for each key.
 */
export class RedisLock implements DistributedLock {
  readonly key: string;
  /** @internal */
  readonly names: LockNames;
  /** @internal */
  readonly services: LockServices;
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
  /** @internal As LockOfCall. */
  waiting = 0;
  /** @internal As LockOfLease. */
  open = 0;
  /** @internal The lease that is held, with the local turn. */
  protected lease: RedisLease | undefined;
  /** Calls that are still acquiring. */
  #callers = 0;
  /** @internal */
  protected readonly queue = new LocalQueue<Call, RedisLease>();
  #protocol: LockProtocol | undefined;
  /** The turn of `lease`, and after that lease until the next one. */
  #turn: Turn | undefined;
  /** Called once, when a lease ends. */
  #whenOver: (() => void)[] | undefined;
  /** What was taken with `lock` and `tryLock` outside all scopes; `undefined`: nothing is left of it. */
  #unlockOrder: UnlockOrder | undefined;

  /** @internal Throws `RangeError` if the keys that belong to the lock could not share its hash slot. */
  constructor(key: string, services: LockServices) {
    this.key = key;
    this.names = new LockNames(services.settings.registryKey, key);
    this.services = services;
    this.#protocol = services.openProtocol(this.names);
  }

  get isAcquiredInThisProcess(): boolean {
    return this.cached().leases.some((lease) => lease.remaining > 0);
  }

  lock(options?: LockOptions): Promise<Lease> {
    return this.#acquireFor(options, Number.POSITIVE_INFINITY, false) as Promise<Lease>;
  }

  tryLock(options?: LockOptions): Promise<Lease | null> {
    return this.#acquireFor(options, 0, true);
  }

  /** No async function: each caller that waits would have a suspended one more, and its memory. */
  #acquireFor(options: LockOptions | undefined, waitTime: number, isTry: boolean): Promise<Lease | null> {
    try {
      const request = lockRequest(options, this, waitTime);
      return this.enter(request, false).then((lease) => {
        if (lease !== null) return this.noted(lease);
        if (isTry) return null;
        throw this.timeoutError(request);
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
    const own = this.#orderOfCaller;
    // An evicted lock may still have unreported losses.
    const order = own?.isEmpty === false ? own : lock.#orderOfCaller;
    if (lock.leases.length > 1 && order?.isAmbiguous) {
      throw new NotLockOwnerError(`Lock "${this.key}" has several leases here: unlock each by itself`, this.key);
    }
    if (!(await order?.unlockNext())) throw notHeld(this.key, 'here through lock() or tryLock()');
  }

  /** The leases that an `unlock` of the caller may end. */
  get #orderOfCaller(): UnlockOrder | undefined {
    return Scope.unlockOrderFor(this) ?? this.#unlockOrder;
  }

  inspect(): Promise<LockState> {
    return this.services.inspection.inspect(this.key, this.names);
  }

  async forceUnlock(): Promise<LockState> {
    const state = await this.services.inspection.forceUnlock(this.key, this.names);
    for (const { hold } of this.cached().leases) hold.confirmNow();
    return state;
  }

  // For the registry

  /** @internal Held, waited for, or the lock of a `run` that has not ended. */
  get isInUse(): boolean {
    return this.runs > 0 || this.#callers > 0 || this.open > 0;
  }

  /** @internal Its protocol, for what is to share it. */
  openProtocol(): LockProtocol {
    this.#protocol ??= this.services.openProtocol(this.names);
    return this.#protocol;
  }

  /** @internal The lock was evicted: the next call makes another protocol. */
  retireProtocol(): void {
    this.#protocol?.retire?.();
    this.#protocol = undefined;
  }

  /** @internal Resolves when this process has no lease of it. */
  async free(): Promise<void> {
    while (this.open > 0) await this.nextLeaseOver();
  }

  /** @internal Ends the leases that are held, and leaves them to expire. Returns how many there were. */
  loseByClose(): number {
    const held = this.leases.filter(({ hold }) => hold.isHeld);
    for (const { hold } of held) hold.lose('closed');
    // A listener to one loss may have unlocked another one.
    return held.filter((lease) => lease.checkLost()).length;
  }

  /** @internal Makes the lease that is held last at least `ttl` ms from now. */
  async renew(ttl?: number): Promise<void> {
    const lease = this.#held;
    if (lease === undefined) throw notHeld(this.key, 'in this process');
    await lease.renew(ttl);
  }

  /** @internal As WaitedLock. */
  get heldFor(): number | undefined {
    return this.#held?.heldFor;
  }

  /** @internal As WaitedLock. */
  get lastHolder(): { readonly owner: string; readonly remaining: number } | undefined {
    const lock = this.cached();
    return lock.lease ?? lock.#protocol?.availability.holderSaid(clock.now());
  }

  /** @internal As LockOfCall. */
  get isSilent(): boolean {
    const lock = this.cached();
    return lock.releasingFor >= SILENT || lock.openProtocol().availability.isSilent(clock.now());
  }

  // For a lock of several keys

  /** @internal Another caller of this process has it, or asks for it. */
  get isBusyHere(): boolean {
    const lock = this.cached();
    return Scope.holding(lock) === undefined && (lock.isHeldHere || lock.queue.isTaken);
  }

  /** @internal The error of a wait that is over. */
  timeoutError({ waitTime }: Pick<LockRequest, 'waitTime'>): LockTimeoutError {
    return new LockTimeoutError(this.key, waitTime, this.lastHolder, hintAfter(this, waitTime));
  }

  /** @internal What a task under a lease of this lock runs under. */
  scopedLock(): ScopedLock {
    return this.cached();
  }

  /** @internal As ScopedLock: this one, but for a reader inside its own write scope. */
  get scopeLock(): object {
    return this;
  }

  // For a call on its way to its lease

  /** @internal How many permits a caller may take: those of a semaphore. */
  get mostPermits(): number {
    return 1;
  }

  /** @internal As LockOfCall. */
  get isShared(): boolean {
    return false;
  }

  /** @internal As LockOfCall. */
  get isWaiterRefused(): boolean {
    return false;
  }

  /** @internal As LockOfCall. */
  get isHeldHere(): boolean {
    return this.lease !== undefined && this.lease.remaining > 0;
  }

  /** @internal As LockOfCall. */
  get releasingFor(): number {
    return this.lease?.releasingFor ?? 0;
  }

  /** @internal As LockOfCall. */
  tryEnter(_call: Call, protocol: LockProtocol): Entry | undefined {
    return protocol.queuesItself ? new Turn() : this.queue.tryEnter();
  }

  /** @internal As LockOfCall. */
  waitForTurn(call: Call): Promise<Entry | undefined> {
    return this.queue.enter(call, call.wait);
  }

  /** @internal As LockOfCall. */
  sleeps(_call: Call, _mayBeWoken: boolean): void {}

  /** @internal As LockOfCall. */
  acquired(hold: Hold, grant: Grant, request: LockRequest, turn: Turn): RedisLease {
    const now = clock.now();
    if (request.minHold > 0) hold.holdAtLeast(request.minHold, true);
    hold.receive(grant);
    const lease = new RedisLease(this, hold, request, now, hold.ttl > Math.ceil(request.ttl));
    hold.granted(grant, this.reliesOn(hold, lease), this.services.watchdog, now);
    this.recordLease(lease, hold, turn);
    return lease;
  }

  /** @internal What is to rely on the hold, now that the lease does. */
  protected reliesOn(_hold: Hold, lease: RedisLease): LeaseOfHold {
    return lease;
  }

  /** @internal A caller has its lease: the turn is that of the lease from now on. */
  protected recordLease(lease: RedisLease, hold: Hold, turn: Turn): void {
    this.lease = lease;
    this.#turn = turn;
    hold.protocol.holder = hold;
  }

  /** @internal As LockOfCall. */
  left(wait: Wait): void {
    this.#callers--;
    // The error would keep what its stack refers to, for every lock that is cached.
    if (this.#callers === 0) this.openProtocol().availability.failure = undefined;
    this.services.waits.end(wait);
    wait.end();
  }

  // For a lease that ends

  /** @internal As LockOfLease. */
  passOn(ended: RedisLease, now: number, timeout: number): PassedOn | undefined {
    const next = this.nextAfter(ended);
    if (next === undefined) return undefined;
    const { hold } = ended;
    const { protocol, keep } = hold;
    // A script of the application's that is not answered would run in the lease of the next caller.
    const isUnused = hold.evals === 0;
    // Before its `minHold` ends, the lock is nobody else's.
    if (keep === undefined && isUnused && protocol.mayPassOn(now, hold) && hold.isFreshFor(next.request, now)) {
      return this.#pass(next, ended, timeout, now, hold.sentAt);
    }
    // What it has sent sees to it, after a release.
    if (next.isAttempting) return undefined;
    // Half of the time, so that there is some left for a release if this fails.
    const half = timeout / 2;
    if (protocol.exchange !== undefined) {
      const exchange = next.exchange(ended, half);
      this.give(next);
      return exchange.catch((error: unknown) => releaseAfter(error, hold, half));
    }
    if (!isUnused || keep !== undefined) return undefined;
    const driftBefore = drift(now);
    const asked = hold.confirmOrRelease(ttlFor(next.request), half, now, this.queue.length);
    return asked?.then(
      (answer: Confirmed | Released) => {
        if (typeof answer === 'string') return answer;
        hold.confirmed(answer.until, now, driftBefore);
        hold.receive(answer);
        // Its caller may have left since, and the next one may need more.
        const first = this.nextAfter(ended);
        const at = clock.now();
        const isEnough = first !== undefined && hold.isFreshFor(first.request, at, at);
        return isEnough ? this.#pass(first, ended, half, at, at) : hold.release(half);
      },
      (error: unknown) => releaseAfter(error, hold, half),
    );
  }

  /** @internal The caller that may get the hold next. The lease that ends was not lost, so it has the turn. */
  protected nextAfter(_ended: RedisLease): Call | undefined {
    return this.queue.next;
  }

  /** The next caller gets a lease of the hold: at once, or after a turn of the event loop where that is due. */
  #pass(next: Call, ended: RedisLease, timeout: number, now: number, since: number): PassedOn {
    const isLater = this.services.loopTurn.isDue(now);
    return isLater ? this.#passLater(ended, timeout, since) : this.#passNow(next, ended, now);
  }

  /** Until then the lease that ended stands for the hold: `close` waits for it. */
  async #passLater(ended: RedisLease, timeout: number, since: number): Promise<Released | 'passed on'> {
    await clock.immediate();
    const next = this.nextAfter(ended);
    const now = clock.now();
    if (next === undefined || !ended.hold.isFreshFor(next.request, now, since)) return ended.hold.release(timeout);
    return this.#passNow(next, ended, now);
  }

  #passNow(next: Call, ended: RedisLease, now: number): 'passed on' {
    ended.handedOver();
    this.give(next, this.leaseOf(ended.hold, next, now));
    this.leaseOver(ended);
    return 'passed on';
  }

  /** @internal The next caller gets the lease; without one, it gets its turn and makes an attempt. */
  protected give(_next: Call, lease?: RedisLease): void {
    this.lease = lease;
    this.queue.pass(this.#turn as Turn, lease);
  }

  /** @internal A lease of a hold that was acquired for another one. */
  protected leaseOf(hold: Hold, { request, wait }: Call, now: number): RedisLease {
    if (wait.trace !== undefined) wait.trace.isHandedOver = true;
    if (request.minHold > 0) hold.holdAtLeast(request.minHold, false);
    const lease = new RedisLease(this, hold, request, now, true);
    hold.passedOn(this.reliesOn(hold, lease), now);
    return lease;
  }

  /** @internal As LockOfLease. */
  leaseOver(lease: RedisLease): void {
    this.open--;
    if (this.lease === lease) {
      const { hold } = lease;
      // Else an adopted lease of the key has the lock since, or the next caller after one.
      if (hold.protocol.holder === hold) hold.protocol.holder = undefined;
      this.#turn?.release();
      this.lease = this.#turn = undefined;
    }
    if (this.#unlockOrder?.isEmpty) this.#unlockOrder = undefined;
    const whenOver = this.#whenOver;
    this.#whenOver = undefined;
    whenOver?.forEach((resolve) => void resolve());
  }

  /** @internal As LockOfCall. */
  nextLeaseOver(): Promise<void> {
    this.#whenOver ??= [];
    return new Promise((resolve) => void this.#whenOver?.push(resolve));
  }

  /**
   * @internal The leases that are held, as far as is known: at most one, but for a `SharedLock`. An adopted one may not
   * have heard yet that it was lost, and that a caller of this process has the lock.
   */
  get leases(): readonly RedisLease[] {
    return [this.lease, this.services.adopted(this.key)?.lease].filter((lease) => lease !== undefined);
  }

  /** The lease of the turn, or an adopted one, which is held without the turn. */
  get #held(): RedisLease | undefined {
    return this.lease ?? this.services.adopted(this.key)?.lease;
  }

  // One call

  /**
   * @internal One call: a re-entry where the caller stands in a scope of this lock, else an acquisition. `null`: another
   * holder had it until the wait was over. `around`: the wait of the call that this one is a part of.
   */
  enter(request: LockRequest, isRun: boolean, around?: Wait): Promise<HeldLease | null> {
    if (request.signal?.aborted) throw request.signal.reason;
    if (this.evicted) {
      const cached = this.services.cache.readmit(this);
      if (cached !== this) return cached.enter(request, isRun, around);
    }
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

  private async reenter(around: Scope, request: LockRequest, wait: Wait, isRun: boolean): Promise<HeldLease | null> {
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
  private acquire(request: LockRequest, wait: Wait, isRun: boolean, scope?: Scope): Promise<HeldLease | null> {
    if (scope !== undefined) return this.reenter(scope, request, wait, isRun);
    this.#callers++;
    return new Call(this, this.openProtocol(), request, wait).run();
  }

  /** @internal As `run`. `around`: see `enter`. */
  async runWithin<T>(
    around: Wait | undefined,
    task: (lease: Lease) => T | PromiseLike<T>,
    request: LockRequest,
  ): Promise<T> {
    const lease = await this.enter(request, true, around);
    if (lease === null) throw this.timeoutError(request);
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

  private runHere<T>(lease: HeldLease, task: (lease: Lease) => T | PromiseLike<T>): Promise<T> {
    return runUnder(lease, [{ lock: this.cached(), lease }], task, isTraced(holdChannel) ? this.labels : undefined);
  }

  /** For `lock` and `tryLock`: `unlock` will find the lease, in the caller's scope, or here outside all scopes. */
  private noted(lease: HeldLease): HeldLease {
    // A lease that was lost on the way to its caller has no section: nothing would end it.
    if (isTraced(holdChannel) && !lease.isReentry && !lease.checkLost()) traceHold(this.labels, lease);
    const lock = this.cached();
    const scope = Scope.current();
    const order = scope === undefined ? lock.#unlockOrder : scope.unlockOrderOf(lock);
    if (order === undefined) lock.#unlockOrder = new UnlockOrder(lease);
    else order.add(lease);
    return lease;
  }

  /** @internal The lock that is cached for the key now; another one than this when this one was evicted. */
  protected cached(): RedisLock {
    return this.evicted ? (this.services.cache.get(this.key) ?? this) : this;
  }

  /** What `console.log(lock)` prints. The state is that of its hold: see `Hold`. */
  [inspect.custom](): string {
    const lock = this.cached();
    const state = lock.leases[0]?.hold.state ?? (lock.#callers > 0 ? 'asked' : 'free here');
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

/** What was to pass a hold on failed. By an error of the server: the hold is to be released, if that was not done by half. */
function releaseAfter(error: unknown, hold: Hold, timeout: number): Promise<Released> {
  hold.attempts.giveBackFailed(error);
  if (!isServerAnswer(error)) throw error;
  return hold.release(timeout);
}
