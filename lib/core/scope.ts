import { AsyncLocalStorage, AsyncResource } from 'node:async_hooks';
import { inspect } from 'node:util';
import { noteContention, traceRun } from '../api/diagnostics';
import type { LeaseEvalOptions } from '../api/distributed-lock';
import { CannotAcquireLockError, type LockLostError, leaseUnlocked, NotLockOwnerError } from '../api/errors';
import type { LockMessage } from '../api/messages';
import { MIN_TTL } from '../internal/clock';
import { type InternalLease, leaseText } from './internal-lease';
import { LocalQueue, type Turn } from './local-queue';
import { doesNotTravel } from './passport';
import type { LockRequest } from './request';
import { UnlockOrder } from './unlock-order';
import { LEAST_TIME_TO_ANSWER, listen, type QueuedLock, unlisten, type Wait } from './wait';

/** Made by the first scope: on Node 20 and 22 every await of the process costs more from then on. */
let storage: AsyncLocalStorage<Scope> | undefined;

/** A function that runs in the scope of its caller, by whatever it is called. */
export function inThisScope(work: () => void): () => void {
  return storage === undefined ? work : AsyncResource.bind(work);
}

/** How an attempt to enter again ended. `null`: a sibling was inside until the wait was over. */
type Reentry = ReentrantLease | 'scope ended' | null;

/**
 * One logical task under a lock: what a thread is in Java. Node has no thread id, and a guess from the async context
 * would let `Promise.all` siblings into the section together. So only `run` opens a scope. Inside it there is a single
 * turn for the lock, which nested `run`, `lock` and `tryLock` all take.
 */
export class Scope {
  readonly #lock: object;
  /** `undefined`: the scope is over. On Node 20 and 22 the promise of its unlock refers to the scope around it. */
  #lease: InternalLease | undefined;
  #parent = storage?.getStore();
  readonly #turns = new LocalQueue();
  readonly #unlockOrders = new WeakMap<object, UnlockOrder>();
  /** All of `#unlockOrders`. A lock that is gone has nothing to be unlocked, and its order is dropped with the next ones. */
  #orders: WeakRef<UnlockOrder>[] = [];
  #dropAt = 1;
  #nestedRun: Promise<void> | undefined;

  constructor(lock: object, lease: InternalLease) {
    this.#lock = lock;
    this.#lease = lease;
    // A worker may start each round inside the one before: scopes that are over are let go, not only skipped.
    for (let scope: Scope | undefined = this; scope !== undefined; scope = scope.#parent) {
      while (scope.#parent?.isForgotten) scope.#parent = scope.#parent.#parent;
    }
  }

  /** The scope is over, and no lease that was taken in it is left to be unlocked. */
  private get isForgotten(): boolean {
    return !this.#isOpen && this.#orders.every((order) => order.deref()?.isUnlocked ?? true);
  }

  /** The innermost scope around the caller that is still open: work may outlive the scope that it was started in. */
  static current(): Scope | undefined {
    let scope = storage?.getStore();
    while (scope !== undefined && !scope.#isOpen) scope = scope.#parent;
    return scope;
  }

  /** The innermost scope around the caller that holds `lock`. */
  static holding(lock: object): Scope | undefined {
    let scope = Scope.current();
    while (scope !== undefined && !(scope.#lock === lock && scope.holds)) scope = scope.#parent;
    return scope;
  }

  /** Whether it is one of these, or was opened inside one of them that has the same lock. */
  isWithin(some: ReadonlySet<Scope | undefined>): boolean {
    let scope: Scope | undefined = this;
    while (scope !== undefined && !(scope.#lock === this.#lock && some.has(scope))) scope = scope.#parent;
    return scope !== undefined;
  }

  /** Whether this scope, or one around it, holds the lock of this name in Redis; also one of another registry. */
  isInside(lockName: string): boolean {
    for (let scope: Scope | undefined = this; scope !== undefined; scope = scope.#parent) {
      const { names } = scope.#lock as { readonly names?: { readonly lock: string } };
      if (scope.holds && names?.lock === lockName) return true;
    }
    return false;
  }

  /** The keys of the locks that this scope, and those around it, hold: the innermost first. */
  get heldKeys(): string[] {
    const keys: string[] = [];
    for (let scope: Scope | undefined = this; scope !== undefined; scope = scope.#parent) {
      const { key } = scope.#lock as { readonly key?: string };
      if (scope.holds && key !== undefined && !keys.includes(key)) keys.push(key);
    }
    return keys;
  }

  /** The locks of `heldKeys`, without semaphores of which others may have permits: to wait for one is to wait for this task. */
  get heldAlone(): QueuedLock[] {
    const locks = new Set<QueuedLock>();
    for (let scope: Scope | undefined = this; scope !== undefined; scope = scope.#parent) {
      const lock = scope.#lock as QueuedLock;
      if (scope.holds && (scope.#lease?.permits ?? 1) >= lock.mostPermits) locks.add(lock);
    }
    return [...locks];
  }

  get #isOpen(): boolean {
    return this.#lease?.isUnlocked === false;
  }

  /** What takes its lock inside it enters again: neither its lease nor one around that was unlocked. */
  get holds(): boolean {
    return this.#isOpen && !this.#lease?.isOutlived;
  }

  /** Runs a task in this scope, which ends with it. It waits for a nested `run` that the task did not wait for. */
  async run<T>(task: () => T | PromiseLike<T>): Promise<T> {
    storage ??= new AsyncLocalStorage();
    try {
      // Inside it too: a thenable, such as a query that is built, begins its work when it is waited for.
      return await storage.run(this, () => Promise.resolve(task()));
    } finally {
      this.#lease = undefined;
      this.#turns.dismiss();
      await this.#nestedRun;
    }
  }

  /**
   * Enters again as soon as no sibling is inside. There is no command to Redis, unless the caller asks for a ttl, or a
   * `minHold`, that is longer than what remains. Rejects with `LockLostError` when the lease is lost: it is never acquired
   * again silently. Rejects at once when the caller asks for more permits than the scope has: no more would be taken.
   */
  async reenter(request: LockRequest, wait: Wait, isRun: boolean, unavailableAfter: number): Promise<Reentry> {
    const held = this.#lease as InternalLease;
    held.assertHeld();
    const { key, permits = 1 } = held;
    if (request.permits > permits) {
      const why = `a nested call takes no further permits. Take ${request.permits} with the outermost call`;
      throw new CannotAcquireLockError(
        `Lock "${key}" could not be acquired with ${request.permits} permits inside its own scope, which has ${permits}: ${why}`,
        key,
      );
    }
    if (this.#turns.isTaken) noteContention(wait, 'local');
    const turn = this.#turns.tryEnter() ?? (await this.#turnAfterSibling(held, wait));
    if (turn === undefined) return null;
    let lease: ReentrantLease;
    try {
      wait.throwIfInterrupted();
      if (!this.holds) {
        turn.release();
        return 'scope ended';
      }
      held.assertHeld();
      // Before the extension: the scope of a nested `run` waits for that too.
      lease = this.#enter(held, turn, request, isRun);
    } catch (error) {
      turn.release();
      throw error;
    }
    try {
      // Also for a `minHold`, which a process that crashes leaves to the ttl.
      const needed = Math.max(request.explicitTtl ? request.ttl : 0, request.minHold);
      if (needed > lease.remaining) await this.#extend(lease, Math.max(needed, MIN_TTL), wait, unavailableAfter);
    } catch (error) {
      await lease[Symbol.asyncDispose]();
      // The lease was unlocked meanwhile.
      if (error instanceof NotLockOwnerError) return 'scope ended';
      throw error;
    }
    // While the renewal was in flight, the lease may have ended, and the next caller got the hold.
    if (isRun ? held.isUnlocked : !this.#isOpen) {
      await lease.unlock();
      return 'scope ended';
    }
    if (request.minHold > 0) lease.holdAtLeast(request.minHold);
    return lease;
  }

  /** The sibling that is inside may wait for this call: a loss ends the wait. */
  async #turnAfterSibling({ signal }: InternalLease, wait: Wait): Promise<Turn | undefined> {
    listen(signal, wait);
    try {
      return await this.#turns.enter(undefined, wait);
    } finally {
      unlisten(signal, wait);
    }
  }

  async #extend(lease: ReentrantLease, ttl: number, wait: Wait, unavailableAfter: number): Promise<void> {
    const limit = wait.isSingleAttempt ? Number.POSITIVE_INFINITY : Math.max(wait.remaining, LEAST_TIME_TO_ANSWER);
    await wait.unlessAborted(lease.renew(ttl, Math.min(limit, unavailableAfter)));
  }

  #enter(held: InternalLease, turn: Turn, { explicitTtl, ttl }: LockRequest, isRun: boolean): ReentrantLease {
    let over: (() => void) | undefined;
    if (isRun) this.#nestedRun = new Promise((resolve) => (over = resolve));
    return new ReentrantLease(held, explicitTtl ? ttl : undefined, () => {
      turn.release();
      over?.();
    });
  }

  /**
   * The leases that an `unlock` of the caller may end: those left in a scope that it outlived, else those of its open
   * scope.
   */
  static unlockOrderFor(lock: object): UnlockOrder | undefined {
    let scope = storage?.getStore();
    for (; scope !== undefined && !scope.#isOpen; scope = scope.#parent) {
      const order = scope.#unlockOrders.get(lock);
      if (order !== undefined && !order.isUnlocked) return order;
    }
    return scope?.unlockOrderOf(lock);
  }

  /** The leases that were taken in this scope with `lock` and `tryLock` of `lock`. */
  unlockOrderOf(lock: object): UnlockOrder {
    const known = this.#unlockOrders.get(lock);
    if (known !== undefined) return known;
    const order = new UnlockOrder();
    this.#unlockOrders.set(lock, order);
    if (this.#orders.push(new WeakRef(order)) > this.#dropAt) {
      this.#orders = this.#orders.filter((one) => one.deref() !== undefined);
      this.#dropAt = 2 * this.#orders.length;
    }
    return order;
  }
}

/**
 * A re-entry inside a scope: the outer lease, and the scope's turn. Unlocking gives back the turn and sends no command.
 */
class ReentrantLease implements InternalLease {
  readonly #outer: InternalLease;
  /** ms; what its call asked for. `undefined`: nothing, so that of the outer lease counts. */
  readonly #ttl: number | undefined;
  readonly #giveBack: () => void;
  isUnlocked = false;
  readonly isReentry = true;

  constructor(outer: InternalLease, ttl: number | undefined, giveBack: () => void) {
    this.#outer = outer;
    this.#ttl = ttl;
    this.#giveBack = giveBack;
  }

  get isOutlived(): boolean {
    return this.#outer.isUnlocked || this.#outer.isOutlived === true;
  }

  get key(): string {
    return this.#outer.key;
  }

  get owner(): string {
    return this.#outer.owner;
  }

  get permits(): number {
    return this.#outer.permits ?? 1;
  }

  get signal(): AbortSignal {
    return this.#outer.signal;
  }

  get asked(): AbortSignal {
    return this.#outer.asked;
  }

  get remaining(): number {
    return this.isUnlocked ? 0 : this.#outer.remaining;
  }

  get fencingToken(): number | undefined {
    return this.#outer.fencingToken;
  }

  checkLost(): boolean {
    return this.#outer.checkLost();
  }

  lossError(result?: unknown, options?: ErrorOptions): LockLostError {
    return this.#outer.lossError(result, options);
  }

  holdAtLeast(ms: number): void {
    this.#outer.holdAtLeast(ms);
  }

  assertHeld(): void {
    if (this.isUnlocked) throw leaseUnlocked(this.key);
    this.#outer.assertHeld();
  }

  async renew(ttl?: number, timeout?: number): Promise<void> {
    if (this.isUnlocked) throw leaseUnlocked(this.key);
    await this.#outer.renew(ttl ?? this.#ttl, timeout);
    if (this.isUnlocked) throw leaseUnlocked(this.key);
  }

  async eval(script: string, options?: LeaseEvalOptions): Promise<unknown> {
    if (this.isUnlocked) throw leaseUnlocked(this.key);
    return this.#outer.eval(script, options);
  }

  async detach(): Promise<never> {
    throw doesNotTravel('a nested call', 'detach that of the outermost one');
  }

  async unlock(): Promise<void> {
    if (this.isUnlocked) return;
    this.isUnlocked = true;
    this.#giveBack();
    if (this.#outer.checkLost()) throw this.#outer.lossError();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.unlock().catch(() => undefined);
  }

  /** What `console.log(lease)` prints: no internals. */
  [inspect.custom](): string {
    return leaseText('Lease', this, ', reentrant: true');
  }
}

/** A lock under which tasks run. */
export interface ScopedLock {
  /** How many run now. */
  runs: number;
  /** The lock whose scope a task gets: what takes that lock inside the task enters again. */
  readonly scopeLock: object;
}

/** A lock, and the lease of it that a task runs under. */
interface Section {
  readonly lock: ScopedLock;
  readonly lease: InternalLease;
}

/**
 * Runs the task in a scope of each section, at least one, and then unlocks `lease`, which is that of all of them. An
 * error of the task is thrown, unless the loss of the lease caused it. Otherwise the result of the task is returned,
 * unless the lease was lost.
 */
export async function runUnder<L extends InternalLease, T>(
  lease: L,
  sections: readonly Section[],
  task: (lease: L) => T | PromiseLike<T>,
  traced: LockMessage | undefined,
): Promise<T> {
  const run = (): Promise<T> => runInScopes(sections, 0, () => task(lease));
  for (const { lock } of sections) lock.runs++;
  let result: T;
  try {
    try {
      result = await (traced === undefined ? run() : traceRun(traced, lease, run));
    } finally {
      await lease[Symbol.asyncDispose]();
      for (const { lock } of sections) lock.runs--;
    }
  } catch (cause) {
    throw isOfLoss(cause, lease) ? lease.lossError(undefined, { cause }) : cause;
  }
  if (lease.checkLost()) throw lease.lossError(result);
  return result;
}

/** Whether a task stopped since its lease was lost: what it called rejects with the signal's reason, or an `AbortError`. */
function isOfLoss(error: unknown, lease: InternalLease): boolean {
  if (!lease.checkLost()) return false;
  return error === lease.signal.reason || (error as Error | null | undefined)?.name === 'AbortError';
}

/** One scope inside the other, from the section with this index on: a scope is made in the one that is around it. */
function runInScopes<T>(sections: readonly Section[], index: number, task: () => T | PromiseLike<T>): Promise<T> {
  const { lock, lease } = sections[index] as Section;
  const isInnermost = index === sections.length - 1;
  return new Scope(lock.scopeLock, lease).run(isInnermost ? task : () => runInScopes(sections, index + 1, task));
}
