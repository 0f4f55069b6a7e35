/*
 * What application code depends on. Nothing here knows Redis: unit tests may give a service another implementation.
 */

/** Options of one acquisition. Durations are in ms. */
export interface LockOptions {
  /**
   * ms, at least 5. Given: a fixed lease that is not renewed. Absent: the registry's `expireAfter`, renewed by the
   * watchdog.
   * @default the registry's `expireAfter`
   */
  ttl?: number | undefined;
  /**
   * Whether the watchdog renews this lease.
   * @default true without `ttl`, false with it
   */
  renew?: boolean | undefined;
  /**
   * ms that the caller is ready to wait, one budget for the local queue and Redis together. It has no influence on
   * renewal. 0 is exactly one attempt.
   * @default Infinity for `lock` and `run`, 0 for `tryLock`
   */
  waitTime?: number | undefined;
  /** Stops waiting: the call rejects at once with `signal.reason`. It has no influence on a lease that was obtained. */
  signal?: AbortSignal | undefined;
}

/**
 * Why a lease was lost. `expired`: the key is gone, or a lease that is not renewed came to its end. `stolen`: another
 * owner has the key. `unconfirmed`: a renewed lease ended because Redis was silent. `closed`: by `registry.close()`.
 */
export type LockLostReason = 'expired' | 'stolen' | 'unconfirmed' | 'closed';

/** One holder's right, from acquisition to unlock or loss. */
export interface Lease extends AsyncDisposable {
  readonly key: string;
  /**
   * Aborts with a `LockLostError` when the lease is lost: by a local timer, no answer of Redis is needed. Never by
   * `unlock()`. Its listeners run in the async context in which the signal was first read.
   */
  readonly signal: AbortSignal;
  /** ms that may still be relied on, computed when it is read. 0 when it is over, or must be confirmed by Redis first. */
  readonly remaining: number;
  /** A number that rises with every acquisition of the key. `undefined` without `fencing: true`. */
  readonly fencingToken: number | undefined;
  /**
   * Returns if the lease may be relied on now.
   * @throws LockLostError when it is over, or must be confirmed by Redis first.
   * @throws NotLockOwnerError after `unlock()`.
   */
  assertHeld(): void;
  /**
   * Makes the lease last at least `ttl` ms from now, and never less than before.
   * @param ttl default: the ttl that it was taken with
   * @throws LockLostError when it is over.
   * @throws NotLockOwnerError after `unlock()`.
   * @throws CannotAcquireLockError when Redis failed or was silent; then `remaining` is as it was.
   */
  renew(ttl?: number): Promise<void>;
  /**
   * Gives the lock back. The next local caller has its turn in any case. A second call does nothing.
   * @throws LockLostError when the lease had been lost.
   * @throws LockReleaseError when Redis did not confirm the release.
   */
  unlock(): Promise<void>;
  /** Unlocks and never throws, so that it cannot hide an error of the body. A loss shows on `signal`. */
  [Symbol.asyncDispose](): Promise<void>;
}

/** The lock of one key. */
export interface DistributedLock {
  readonly key: string;
  /**
   * Waits for the lock.
   * @throws LockTimeoutError when `waitTime` is over.
   * @throws CannotAcquireLockError when Redis failed or was silent.
   * @throws RegistryClosedError when the registry is closed.
   * @example
   * const lease = await registry.obtain('order:42').lock();
   * try {
   *   // one holder among all processes
   * } finally {
   *   await lease.unlock();
   * }
   */
  lock(options?: LockOptions): Promise<Lease>;
  /**
   * One attempt, or as many as fit in `waitTime`. `null` only when Redis answered that the lock is held.
   * @throws CannotAcquireLockError when Redis failed or was silent.
   * @throws RegistryClosedError when the registry is closed.
   */
  tryLock(options?: LockOptions): Promise<Lease | null>;
  /**
   * Locks, runs the task, unlocks. Opens a scope: a nested `run` of the same lock re-enters. An error of the task wins
   * over any error of the release.
   * @throws LockLostError when the lease was lost under a task that succeeded; the task's value is its `result`.
   * @throws LockTimeoutError when `waitTime` is over.
   * @throws CannotAcquireLockError when Redis failed or was silent.
   * @throws RegistryClosedError when the registry is closed.
   */
  run<T>(task: (lease: Lease) => T | PromiseLike<T>, options?: LockOptions): Promise<T>;
  /**
   * Ends the oldest lease of this lock that was taken with `lock` or `tryLock` and not unlocked: in the caller's scope,
   * or outside all scopes.
   * @throws NotLockOwnerError when there is none; then nothing changes.
   * @throws LockLostError when that lease had been lost.
   * @throws LockReleaseError when Redis did not confirm the release.
   */
  unlock(): Promise<void>;
  /** Whether this process holds the lock. Local knowledge: no command is sent. */
  readonly isAcquiredInThisProcess: boolean;
}

/** Hands out locks by key. */
export interface LockSource {
  obtain(key: string): DistributedLock;
}
