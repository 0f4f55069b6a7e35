import type { DistributedLock, LockOptions } from '../distributed-lock';
import type { LockTimeoutError } from '../errors';
import type { HeldLease } from '../lease/unlock-order';
import type { ScopedLock } from '../scope/run-under';
import type { LockRequest } from '../settings';

/** What a multi lock needs of the lock of one of its keys. */
export interface MultiPart extends DistributedLock {
  /**
   * Takes the lock for a multi lock: `unlock()` of the part does not end this lease. It is renewed until `endRenewal`.
   * `null`: another holder had the lock until the wait was over.
   */
  acquirePart(options: LockOptions | undefined, waitTime: number): Promise<HeldLease | null>;
  /** The options with their defaults. Throws when one is not valid. */
  requested(options: LockOptions | undefined, defaultWaitTime: number): LockRequest;
  /** The error of a wait that is over. */
  timeoutError(options: LockOptions | undefined): LockTimeoutError;
  /** What a task under a lease of this lock runs under. */
  scopedLock(): ScopedLock;
}
