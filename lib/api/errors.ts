import { knownAcrossCopies } from '../internal/copies';
import { inOneLine } from '../internal/validation';
import type { LockLostReason } from './distributed-lock';
import { describeForm, holderOf, isDetached, isKept, isOwner } from './owner-name';

/** The codes of the errors. */
export type LockErrorCode =
  | 'ERR_CANNOT_ACQUIRE_LOCK'
  | 'ERR_LOCK_TIMEOUT'
  | 'ERR_LOCK_QUEUE_FULL'
  | 'ERR_LOCK_LOST'
  | 'ERR_LOCK_ASKED'
  | 'ERR_LOCK_RELEASE'
  | 'ERR_NOT_LOCK_OWNER'
  | 'ERR_NOT_REPLICATED'
  | 'ERR_LOCK_INSPECTION'
  | 'ERR_LEASE_EVAL'
  | 'ERR_REGISTRY_CLOSED';

/** The base of all errors of this library: a stable `code`, and the `key` as the application knows it. */
export abstract class LockError extends Error {
  abstract readonly code: LockErrorCode;
  /** What the application locks; `undefined` where the error is not about one key. */
  readonly key: string | undefined;

  constructor(message: string, key: string | undefined, options?: ErrorOptions) {
    super(inOneLine(message), options);
    this.key = key;
  }
}

/**
 * The lock could not be acquired because of a failure: Redis failed or was silent (`cause`), the cache is full of locks
 * in use, or the call would wait for itself.
 */
export class CannotAcquireLockError extends LockError {
  readonly code = 'ERR_CANNOT_ACQUIRE_LOCK';
}

/**
 * Fewer replicas than `minReplicas` acknowledged an acquisition within `replicaTimeout`. It was given back: a failover
 * could have forgotten it. It is the `cause` of a `CannotAcquireLockError`.
 */
export class NotReplicatedError extends LockError {
  readonly code = 'ERR_NOT_REPLICATED';
  /** How many replicas had to have it. */
  readonly wanted: number;
  /** How many had it in time. */
  readonly acknowledged: number;

  /** `timeout` in ms. */
  constructor(wanted: number, acknowledged: number, timeout: number, options?: ErrorOptions) {
    super(
      `${acknowledged} of ${wanted} replicas acknowledged the acquisition within ${timeout} ms`,
      undefined,
      options,
    );
    this.wanted = wanted;
    this.acknowledged = acknowledged;
  }
}

export function cannotAcquire(key: string, why: string, cause: unknown): CannotAcquireLockError {
  return new CannotAcquireLockError(`Lock "${key}" could not be acquired: ${why}`, key, { cause });
}

function described({ owner, remaining }: { readonly owner: string; readonly remaining: number }): string {
  if (!isOwner(owner)) return `: ${heldByOthers(owner)}, and ${keyEnd(remaining)}`;
  if (isKept(owner)) return `: ${holderOf(owner)} unlocked it, and its minHold ends in ${Math.round(remaining)} ms`;
  return `: ${holderOf(owner)} ${isDetached(owner) ? 'detached its lease' : 'holds it'}, and ${keyEnd(remaining)}`;
}

/** Says who has a key whose value is no owner value, without that value: it may be a secret. */
export function heldByOthers(value: string): string {
  return `another program holds it, ${describeForm(value)}`;
}

/** When the key of a holder expires, in ms. */
export function keyEnd(remaining: number): string {
  if (remaining === Number.POSITIVE_INFINITY) return 'its key has no expiry';
  return `its key expires in ${Math.round(remaining)} ms unless it is renewed`;
}

/** `waitTime` is over, and others have the lock, or come first. Contention, not a failure. */
export class LockTimeoutError extends LockError {
  readonly code = 'ERR_LOCK_TIMEOUT';
  /** ms */
  readonly waitTime: number;
  /**
   * The value in Redis that says who holds the lock, where the last answer said it. `kept@` before it: who unlocked it
   * before `minHold` ended; `detached@`: who detached its lease. `undefined` too where another program wrote the value: it may be a secret.
   */
  readonly owner: string | undefined;
  /** ms until the holder's key expires unless it is renewed, by that answer. */
  readonly remaining: number | undefined;

  /** `hint`: what is known of why it was not free. */
  constructor(
    key: string,
    waitTime: number,
    holder?: { readonly owner: string; readonly remaining: number },
    hint?: string,
  ) {
    const held = holder === undefined ? '' : described(holder);
    super(`Lock "${key}" was not free within ${waitTime} ms${held}${hint === undefined ? '' : `. ${hint}`}`, key);
    this.waitTime = waitTime;
    this.owner = holder && isOwner(holder.owner) ? holder.owner : undefined;
    this.remaining = holder && Math.round(holder.remaining);
  }
}

/** `maxWaiting` callers of this registry wait for the lock already, so this call did not. Contention, not a failure. */
export class LockQueueFullError extends LockError {
  readonly code = 'ERR_LOCK_QUEUE_FULL';
  readonly maxWaiting: number;

  constructor(key: string, maxWaiting: number) {
    super(`Lock "${key}" is not free, and as many callers wait for it as maxWaiting says: ${maxWaiting}`, key);
    this.maxWaiting = maxWaiting;
  }
}

const EXPLANATIONS: Record<LockLostReason, string> = {
  expired: 'its time to live ended, its key was deleted, as by a forced unlock, or Redis restarted without it',
  stolen: 'another owner has its key',
  unconfirmed: 'Redis did not confirm it in time',
  closed: 'its registry was closed',
};

function explained(reason: LockLostReason, by: string | undefined): string {
  if (by === undefined) return EXPLANATIONS[reason];
  return reason === 'stolen' ? `${by} has taken it` : `${by} has unlocked it by force`;
}

/**
 * The lease ended before `unlock()`: what it protected may already be in use by another holder. From `run` its `cause` is
 * what the task threw because of that: the signal's reason, or an `AbortError`.
 */
export class LockLostError extends LockError {
  readonly code = 'ERR_LOCK_LOST';
  readonly reason: LockLostReason;
  /** From `run`: what the task had returned. The work is done, but it was not protected to its end. */
  readonly result: unknown;
  /** Who took the lock by force or by `replace`: the name of that registry. `undefined`: this process was not told. */
  readonly by: string | undefined;

  /** `why`: what is known of it, in place of what the reason alone says. */
  constructor(
    key: string,
    reason: LockLostReason,
    result?: unknown,
    {
      by,
      why = explained(reason, by),
      ...options
    }: ErrorOptions & { readonly why?: string; readonly by?: string | undefined } = {},
  ) {
    super(`Lock "${key}" was lost (${reason}): ${why}`, key, options);
    this.reason = reason;
    this.result = result;
    this.by = by;
  }
}

/** The reason of `lease.asked`: somebody would like the task to end early. Nothing was taken from it. */
export class LockAskedError extends LockError {
  readonly code = 'ERR_LOCK_ASKED';
  /** The name of the registry that asks; `undefined`: it did not say. */
  readonly by: string | undefined;
  /** What was given to `ask`; it may be empty. */
  readonly why: string;

  constructor(key: string, by: string | undefined, why: string) {
    super(`Lock "${key}" is asked for${by === undefined ? '' : ` by ${by}`}${why === '' ? '' : `: ${why}`}`, key);
    this.by = by;
    this.why = why;
  }
}

/**
 * Redis did not confirm the release, or that a lease was detached. The release is repeated in the background; the key ends
 * with its ttl at the latest.
 */
export class LockReleaseError extends LockError {
  readonly code = 'ERR_LOCK_RELEASE';
}

/** The error of a release that failed, with its `reason` in words. */
export function notReleased(key: string, reason: string, cause: unknown): LockReleaseError {
  return new LockReleaseError(`The release of lock "${key}" was not confirmed: ${reason}`, key, { cause });
}

/** The error of a lease that could not be detached, with its `reason` in words. */
export function notDetached(key: string, reason: string, cause: unknown): LockReleaseError {
  const message = `The lease of lock "${key}" was not detached, and is given back in the background: ${reason}`;
  return new LockReleaseError(message, key, { cause });
}

/** The caller does not hold this lock (any more). Nothing was changed. */
export class NotLockOwnerError extends LockError {
  readonly code = 'ERR_NOT_LOCK_OWNER';
}

/** `how`: in what way the caller took it to be held. */
export function notHeld(key: string, how: string): NotLockOwnerError {
  return new NotLockOwnerError(`Lock "${key}" is not held ${how}`, key);
}

/** The error of a lease that was unlocked, or detached. */
export function leaseUnlocked(key: string): NotLockOwnerError {
  return notHeld(key, 'by this lease any more: it was unlocked, or detached');
}

/**
 * Redis failed or was silent (`cause`): nothing is known of the lock, nor whether it was unlocked by force. Without a `cause`,
 * it was not: another owner had it by then.
 */
export class LockInspectionError extends LockError {
  readonly code = 'ERR_LOCK_INSPECTION';
}

/** A forced unlock has done nothing: see `LockInspectionError`. */
export class LockKeptError extends LockInspectionError {
  constructor(key: string) {
    super(`Lock "${key}" was not unlocked by force: by now another owner has it`, key);
  }
}

/**
 * Redis did not answer `lease.eval` (`cause`): the script may have run once, or not. It can still run late, but only
 * while the lease is held, and not after a later script of the same lease.
 */
export class LeaseEvalError extends LockError {
  readonly code = 'ERR_LEASE_EVAL';
}

/** `close()` was called on the registry. */
export class RegistryClosedError extends LockError {
  readonly code = 'ERR_REGISTRY_CLOSED';
}

/** The error of a caller that comes, or waits, when the registry is closed. */
export function registryClosed(key: string): RegistryClosedError {
  return new RegistryClosedError(`Lock "${key}" cannot be acquired: its registry is closed`, key);
}

/**
 * What logs show, on the prototypes: a minifier changes the names of classes. A subclass of the application's inherits
 * it, unless it sets its own.
 */
const NAMED = {
  LockError,
  CannotAcquireLockError,
  NotReplicatedError,
  LockTimeoutError,
  LockQueueFullError,
  LockLostError,
  LockAskedError,
  LockReleaseError,
  NotLockOwnerError,
  LockInspectionError,
  LeaseEvalError,
  RegistryClosedError,
};
for (const [name, type] of Object.entries(NAMED)) type.prototype.name = name;
knownAcrossCopies(NAMED);
