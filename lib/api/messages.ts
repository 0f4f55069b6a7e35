import type { Lease, LockLostReason } from './distributed-lock';
import type { LockType, SharedKind } from './lock-types';
import type { LockWarning } from './warnings';

/** What every message about a lock says. */
export interface LockMessage {
  readonly registryKey: string;
  /** What the application locks. */
  readonly key: string;
  /**
   * `semaphore`, `read` and `write` for semaphores and read/write locks: they do not depend on the registry's lock
   * type.
   */
  readonly lockType: LockType | SharedKind;
}

/** What `redis-lock-registry:acquire` publishes: from a call to its lease. One object for each call; it is filled in on the way. */
export interface AcquireMessage extends LockMessage {
  /** ms that the caller is ready to wait. */
  readonly waitTime: number;
  /** The call is made inside a `run` that holds the lock: it enters again, unless that ends while it waits. */
  readonly isReentry: boolean;
  /** Whom it waited for: nobody, callers of this process, or another process (perhaps after local callers). */
  contention: 'none' | 'local' | 'remote';
  /** ms from the call until it was known that it had to wait; `undefined`: it did not. */
  contendedAfter: number | undefined;
  /** Scripts that tried to acquire it. 0: it came by a hand-over, or the caller entered again. */
  attempts: number;
  /** The holder before passed the lock on, without releasing it in between. */
  isHandedOver: boolean;
  /** ms; known at the end, as the rest. */
  waited: number | undefined;
  /** `aborted`: by the caller's signal, or `close`. `failed`: by another error, as of a Redis that is silent. */
  outcome: 'acquired' | 'timed out' | 'aborted' | 'failed' | undefined;
  fencingToken: number | undefined;
  /** The lease, or null when it was not free in time. */
  result?: Lease | null;
  /** With `aborted` and `failed`; also a `LockQueueFullError`, with `timed out`. */
  error?: unknown;
}

/**
 * What `redis-lock-registry:hold` publishes: the section, from the lease to `unlock`, to its loss, or to the end of the task of
 * `run`.
 */
export interface HoldMessage extends LockMessage {
  readonly isReentry: boolean;
  /** The owner value in Redis. A re-entry has that of the lease that it enters; several keys have that of the first one. */
  readonly owner: string;
  /** The leases that were acquired for it, and not lost before: of several keys one each. What is published of them names them. */
  readonly leases: readonly Lease[];
  readonly fencingToken: number | undefined;
  /** ms; known at the end. */
  held: number | undefined;
  outcome: 'ended' | 'lost' | undefined;
  /**
   * A subscriber of `start` may set it: the task of `run` runs inside it, such as in an async context. It calls the
   * function that it gets, once, and returns its result. Without effect on `lock` and `tryLock`.
   */
  around?: (<T>(task: () => T) => T) | undefined;
  /** What the task of `run` threw; else the `LockLostError` of a lease that was lost. */
  error?: unknown;
}

/** What `redis-lock-registry:release` publishes: from `unlock` or `detach` until Redis has answered. */
export interface ReleaseMessage extends LockMessage {
  readonly lease: Lease;
  readonly owner: string;
  readonly fencingToken: number | undefined;
  /** The lock went to the next caller of this process. */
  isHandedOver: boolean;
  /** `lost`: it was not ours any more. `failed`: Redis did not confirm it. */
  outcome: 'released' | 'detached' | 'lost' | 'failed' | undefined;
  error?: unknown;
}

/** What `redis-lock-registry:lost` publishes. */
export interface LostMessage extends LockMessage {
  /** Others may have the same owner: readers of a process do. */
  readonly lease: Lease;
  readonly owner: string;
  readonly fencingToken: number | undefined;
  readonly reason: LockLostReason;
  /** ms since its acquisition was sent. */
  readonly heldFor: number;
}

/** What `redis-lock-registry:renewed` publishes. */
export interface RenewedMessage extends LockMessage {
  readonly lease: Lease;
  readonly owner: string;
  readonly fencingToken: number | undefined;
  /** ms for which it is held now. */
  readonly remaining: number;
}

/** What `redis-lock-registry:warning` publishes: what `onWarning` gets too. */
export interface WarningMessage {
  readonly registryKey: string;
  readonly lockType: LockType;
  readonly warning: LockWarning;
}
