import { AsyncLocalStorage } from 'node:async_hooks';
import { type HeldLease, Holds } from './holds';
import { LocalQueue } from './local-queue';
import type { LockRequest } from './options';
import { ReentrantLease } from './reentrant-lease';
import type { Turn } from './turn';
import type { Wait } from './wait';

/** Made by the first scope: on Node 20 and 22 every await of the process costs more from then on. */
let storage: AsyncLocalStorage<Scope> | undefined;

/**
 * One logical task under a lock: what a thread is in Java. Node has no thread id, and a guess from the async context
 * would let `Promise.all` siblings into the section together; so only `run` opens a scope, and inside of it there is a
 * single turn for the lock, which nested `run`, `lock` and `tryLock` take alike.
 */
export class Scope {
  readonly #lock: object;
  readonly #lease: HeldLease;
  readonly #parent = storage?.getStore();
  readonly #turns = new LocalQueue();
  readonly #holds = new WeakMap<object, Holds>();
  #isOver = false;
  #nestedRun: Promise<void> | undefined;

  constructor(lock: object, lease: HeldLease) {
    this.#lock = lock;
    this.#lease = lease;
  }

  /** The scope that the caller runs in. Work that outlives its scope is in the one around it, if that is still open. */
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

  get #isOpen(): boolean {
    return !this.#isOver && !this.#lease.isUnlocked;
  }

  /** Runs a task in this scope, which ends with it. A nested `run` that nobody waited for is still under the lock: it is waited for. */
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
   * Enters again, with no command to Redis, as soon as no sibling is inside. `null`: the wait is over before;
   * `undefined`: the scope is. Rejects with `LockLostError` when the lease is lost: it is never acquired silently anew.
   */
  async reenter(request: LockRequest, wait: Wait, isRun: boolean): Promise<ReentrantLease | null | undefined> {
    this.#lease.assertHeld();
    const turn =
      this.#turns.tryEnter() ?? (wait.isSingleAttempt ? undefined : await this.#turns.enter(wait, request.ttl));
    if (turn === undefined) return null;
    try {
      wait.throwIfInterrupted();
      if (!this.#isOpen) {
        turn.release();
        return undefined;
      }
      this.#lease.assertHeld();
    } catch (error) {
      turn.release();
      throw error;
    }
    // Before the extension, so that the scope waits for it.
    const lease = this.#enter(turn, isRun);
    try {
      if (request.explicitTtl && request.ttl > lease.remaining) {
        await wait.unlessAborted(
          lease.renew(request.ttl, wait.isSingleAttempt ? undefined : Math.max(wait.remaining, 50)),
        );
        if (isRun ? this.#lease.isUnlocked : !this.#isOpen) {
          await lease.unlock();
          return undefined;
        }
      }
      return lease;
    } catch (error) {
      await lease[Symbol.asyncDispose]();
      throw error;
    }
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

  /** The holds that an `unlock` of the caller is about: those of its scope, also of one that it outlived. */
  static holdsToUnlock(lock: object): Holds | undefined {
    let scope = storage?.getStore();
    for (; scope !== undefined && !scope.#isOpen; scope = scope.#parent) {
      const holds = scope.#holds.get(lock);
      if (holds !== undefined && !holds.isEmpty) return holds;
    }
    return scope?.holdsOf(lock);
  }

  /** What this scope took of `lock` with `lock` and `tryLock`. */
  holdsOf(lock: object): Holds {
    const holds = this.#holds.get(lock) ?? new Holds();
    this.#holds.set(lock, holds);
    return holds;
  }
}
