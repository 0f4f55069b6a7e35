/* What each entry point of one lock type exports beside its registry: the same classes as the main entry point does. */

export type { DistributedLock, Lease, LockOptions, TryRunResult } from '../distributed-lock';
export {
  CannotAcquireLockError,
  LeaseEvalError,
  LockError,
  LockInspectionError,
  LockLostError,
  LockReleaseError,
  LockTimeoutError,
  NotLockOwnerError,
  NotReplicatedError,
  RegistryClosedError,
} from '../errors';
export { LockRegistry } from '../lock-registry';
export type { RedisClient } from '../redis/client';
export type { OneTypeOptions } from './one-type-lock-registry';
