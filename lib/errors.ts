import type { LockLostReason } from './distributed-lock';

/** The codes of the errors. */
export type LockErrorCode =
  | 'ERR_CANNOT_ACQUIRE_LOCK'
  | 'ERR_LOCK_TIMEOUT'
  | 'ERR_LOCK_LOST'
  | 'ERR_LOCK_RELEASE'
  | 'ERR_NOT_LOCK_OWNER'
  | 'ERR_REGISTRY_CLOSED';

/**
 * The base of all errors of this library: a stable `code`, and the `key` as the application knows it.
 *
 * Each class sets `name`, which logs show, as a literal on its prototype: a minifier changes the names of classes.
 * A subclass of the application's inherits it, unless it sets its own.
 */
export abstract class LockError extends Error {
  static {
    LockError.prototype.name = 'LockError';
  }

  abstract readonly code: LockErrorCode;
  /** What the application locks; `undefined` where the error is not about one key. */
  readonly key: string | undefined;

  constructor(message: string, key: string | undefined, options?: ErrorOptions) {
    super(message, options);
    this.key = key;
  }
}

/** The lock could not be acquired because of a failure: Redis failed or was silent (`cause`), or the cache is full of locks in use. */
export class CannotAcquireLockError extends LockError {
  static {
    CannotAcquireLockError.prototype.name = 'CannotAcquireLockError';
  }

  readonly code = 'ERR_CANNOT_ACQUIRE_LOCK';
}

/** `waitTime` is over, and another holder still has the lock. Contention, not a failure. */
export class LockTimeoutError extends LockError {
  static {
    LockTimeoutError.prototype.name = 'LockTimeoutError';
  }

  readonly code = 'ERR_LOCK_TIMEOUT';
  /** ms */
  readonly waitTime: number;

  constructor(key: string, waitTime: number) {
    super(`Lock "${key}" was not free within ${waitTime} ms`, key);
    this.waitTime = waitTime;
  }
}

const EXPLANATIONS: Record<LockLostReason, string> = {
  expired: 'its time to live ended, or its key was deleted',
  stolen: 'another owner has its key',
  unconfirmed: 'Redis did not confirm it in time',
  closed: 'its registry was closed',
};

/** The lease ended before `unlock()`: what it protected may already be in use by another holder. */
export class LockLostError extends LockError {
  static {
    LockLostError.prototype.name = 'LockLostError';
  }

  readonly code = 'ERR_LOCK_LOST';
  readonly reason: LockLostReason;
  /** From `run`: what the task had returned. The work is done, but it was not protected to its end. */
  readonly result: unknown;

  constructor(key: string, reason: LockLostReason, result?: unknown) {
    super(`Lock "${key}" was lost (${reason}): ${EXPLANATIONS[reason]}`, key);
    this.reason = reason;
    this.result = result;
  }
}

/** Redis did not confirm the release. It is repeated in the background; the key ends with its ttl at the latest. */
export class LockReleaseError extends LockError {
  static {
    LockReleaseError.prototype.name = 'LockReleaseError';
  }

  readonly code = 'ERR_LOCK_RELEASE';
}

/** The caller does not hold this lock (any more). Nothing was changed. */
export class NotLockOwnerError extends LockError {
  static {
    NotLockOwnerError.prototype.name = 'NotLockOwnerError';
  }

  readonly code = 'ERR_NOT_LOCK_OWNER';
}

/** The error of a lease that was unlocked. */
export function leaseUnlocked(key: string): NotLockOwnerError {
  return new NotLockOwnerError(`Lock "${key}" is not held by this lease any more: it was unlocked`, key);
}

/** `close()` was called on the registry. */
export class RegistryClosedError extends LockError {
  static {
    RegistryClosedError.prototype.name = 'RegistryClosedError';
  }

  readonly code = 'ERR_REGISTRY_CLOSED';
}
