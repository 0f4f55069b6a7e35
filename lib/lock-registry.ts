/**
 * What application code depends on. Nothing here knows Redis: a service takes a `LockRegistry`, and its unit tests
 * may give it another implementation.
 */

export interface LockOptions {
  /** ms. Given: a fixed lease that is not renewed. Absent: the registry's `expireAfter`, renewed by the watchdog. */
  ttl?: number | undefined;
  /** Whether the watchdog renews this lease. Default: yes without `ttl`, no with it. */
  renew?: boolean | undefined;
  /**
   * ms that the caller is ready to wait, one budget for the local queue and Redis together; it has no influence on
   * renewal. Default: `Infinity` for `lock` and `run`, 0 (exactly one attempt) for `tryLock`.
   */
  waitTime?: number | undefined;
  /** Stops waiting: the call rejects at once with `signal.reason`. It has no influence on a lease that was obtained. */
  signal?: AbortSignal | undefined;
}

/**
 * Why a lease was lost: `expired`, the key is gone or a lease that is not renewed came to its end; `stolen`, another
 * owner has the key; `unconfirmed`, a renewed lease ended because Redis stayed silent; `closed`, by `registry.close()`.
 */
export type LockLostReason = 'expired' | 'stolen' | 'unconfirmed' | 'closed';

/** One holder's right, from acquisition to unlock or loss. */
export interface Lease extends AsyncDisposable {
  readonly key: string;
  /** Aborts with a `LockLostError` when the lease is lost: by a local timer, no answer of Redis is needed. Never by `unlock()`. */
  readonly signal: AbortSignal;
  /** ms that may still be relied on, computed when it is read; 0 when it is over. */
  readonly remaining: number;
  /** A number that rises with every acquisition of the key; with `fencing: true`, else `undefined`. */
  readonly fencingToken: number | undefined;
  /** Throws `LockLostError` when the lease is over, `NotLockOwnerError` after `unlock()`. */
  assertHeld(): void;
  /**
   * Makes the lease last at least `ttl` ms from now, and never less than it did. Default: the ttl it was taken with.
   * Rejects with `LockLostError` when it is over, `NotLockOwnerError` after `unlock()`, and `CannotAcquireLockError`
   * when Redis failed or stayed silent; then `remaining` is as it was.
   */
  renew(ttl?: number): Promise<void>;
  /**
   * Gives the lock back. Rejects with `LockLostError` when it had been lost, and with `LockReleaseError` when Redis
   * stayed silent; the local turn is free in any case. A second call does nothing.
   */
  unlock(): Promise<void>;
  /** Unlocks and never throws, so that it cannot hide an error of the body; a loss shows on `signal`. */
  [Symbol.asyncDispose](): Promise<void>;
}

/** The lock of one key. */
export interface DistributedLock {
  readonly key: string;
  /** Waits for the lock; rejects with `LockTimeoutError` when `waitTime` is over. */
  lock(options?: LockOptions): Promise<Lease>;
  /** One attempt, or as many as fit in `waitTime`. `null` only when Redis answered that the lock is held; silence is an error. */
  tryLock(options?: LockOptions): Promise<Lease | null>;
  /**
   * Locks, runs the task, unlocks. An error of the task wins over any error of the release; when the lease was lost
   * under a task that succeeded, rejects with a `LockLostError` that carries the task's value as `result`.
   */
  run<T>(task: (lease: Lease) => T | PromiseLike<T>, options?: LockOptions): Promise<T>;
  /** Gives back what was taken with `lock` or `tryLock`, where there is exactly one candidate; else `NotLockOwnerError`. */
  unlock(): Promise<void>;
  /** Whether this process holds the lock. Local knowledge: no command is sent. */
  readonly isAcquiredInThisProcess: boolean;
}

/** Hands out locks by key. An abstract class and not an interface, so that it can be a token for dependency injection. */
export abstract class LockRegistry {
  abstract obtain(key: string): DistributedLock;

  /** Shorthand for `obtain(key).run(task, options)`. */
  async run<T>(key: string, task: (lease: Lease) => T | PromiseLike<T>, options?: LockOptions): Promise<T> {
    return this.obtain(key).run(task, options);
  }
}
