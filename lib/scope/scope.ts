import { AsyncLocalStorage } from 'node:async_hooks';
import { LocalQueue } from '../acquire/local-queue';
import type { Turn } from '../acquire/turn';
import { LEAST_TIME_TO_ANSWER, type Wait } from '../acquire/wait';
import { type HeldLease, UnlockOrder } from '../lease/unlock-order';
import type { LockRequest } from '../settings';
import { ReentrantLease } from './reentrant-lease';

/** Made by the first scope: on Node 20 and 22 every await of the process costs more from then on. */
let storage: AsyncLocalStorage<Scope> | undefined;

/** How an attempt to enter again ended. `timed out`: a sibling was inside until the wait was over. */
type Reentry =
  | { readonly outcome: 'entered'; readonly lease: ReentrantLease }
  | { readonly outcome: 'timed out' | 'scope ended' };

/**
 * One logical task under a lock: what a thread is in Java. Node has no thread id, and a guess from the async context
 * would let `Promise.all` siblings into the section together. So only `run` opens a scope. Inside it there is a single
 * turn for the lock, which nested `run`, `lock` and `tryLock` all take.
 */
export class Scope {
  readonly #lock: object;
  readonly #lease: HeldLease;
  readonly #parent = storage?.getStore();
  readonly #turns = new LocalQueue();
  readonly #unlockOrders = new WeakMap<object, UnlockOrder>();
  #isOver = false;
  #nestedRun: Promise<void> | undefined;

  constructor(lock: object, lease: HeldLease) {
    this.#lock = lock;
    this.#lease = lease;
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
    while (scope !== undefined && !(scope.#lock === lock && scope.#isOpen)) scope = scope.#parent;
    return scope;
  }

  /** Whether this scope, or one around it, holds the lock of this name in Redis; also one of another registry. */
  isInside(lockName: string): boolean {
    for (let scope: Scope | undefined = this; scope !== undefined; scope = scope.#parent) {
      const { names } = scope.#lock as { readonly names?: { readonly lock: string } };
      if (scope.#isOpen && names?.lock === lockName) return true;
    }
    return false;
  }

  get #isOpen(): boolean {
    return !this.#isOver && !this.#lease.isUnlocked;
  }

  /** Runs a task in this scope, which ends with it. It waits for a nested `run` that the task did not wait for. */
  async run<T>(task: () => T | PromiseLike<T>): Promise<T> {
    storage ??= new AsyncLocalStorage();
    try {
      return await storage.run(this, task);
    } finally {
      this.#isOver = true;
      this.#turns.dismiss();
      await this.#nestedRun;
    }
  }

  /**
   * Enters again as soon as no sibling is inside. There is no command to Redis, unless the caller asks for a ttl that
   * is longer than what remains. Rejects with `LockLostError` when the lease is lost: it is never acquired again
   * silently.
   */
  async reenter(request: LockRequest, wait: Wait, isRun: boolean): Promise<Reentry> {
    this.#lease.assertHeld();
    const turn = this.#turns.tryEnter() ?? (await this.#turns.enter(wait, request.ttl));
    if (turn === undefined) return { outcome: 'timed out' };
    let lease: ReentrantLease;
    try {
      wait.throwIfInterrupted();
      if (!this.#isOpen) {
        turn.release();
        return { outcome: 'scope ended' };
      }
      this.#lease.assertHeld();
      // Before the extension: the scope of a nested `run` waits for that too.
      lease = this.#enter(turn, isRun);
    } catch (error) {
      turn.release();
      throw error;
    }
    try {
      // Also for a `minHold`, which a process that crashes leaves to the ttl.
      const needed = Math.max(request.explicitTtl ? request.ttl : 0, request.minHold);
      if (needed > lease.remaining) await this.#extend(lease, needed, wait);
      if (request.minHold > 0) lease.holdAtLeast(request.minHold);
    } catch (error) {
      await lease[Symbol.asyncDispose]();
      throw error;
    }
    if (isRun ? !this.#lease.isUnlocked : this.#isOpen) return { outcome: 'entered', lease };
    await lease.unlock();
    return { outcome: 'scope ended' };
  }

  async #extend(lease: ReentrantLease, ttl: number, wait: Wait): Promise<void> {
    const limit = wait.isSingleAttempt ? undefined : Math.max(wait.remaining, LEAST_TIME_TO_ANSWER);
    await wait.unlessAborted(lease.renew(ttl, limit));
  }

  #enter(turn: Turn, isRun: boolean): ReentrantLease {
    if (!isRun) return new ReentrantLease(this.#lease, () => turn.release());
    let over = (): void => undefined;
    this.#nestedRun = new Promise((resolve) => {
      over = resolve;
    });
    return new ReentrantLease(this.#lease, () => {
      turn.release();
      over();
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
      if (order !== undefined && !order.isEmpty) return order;
    }
    return scope?.unlockOrderOf(lock);
  }

  /** The leases that were taken in this scope with `lock` and `tryLock` of `lock`. */
  unlockOrderOf(lock: object): UnlockOrder {
    const order = this.#unlockOrders.get(lock) ?? new UnlockOrder();
    this.#unlockOrders.set(lock, order);
    return order;
  }
}
