/* The errors that every entry point with a registry exports. */

export {
  CannotAcquireLockError,
  LeaseEvalError,
  LockError,
  type LockErrorCode,
  LockInspectionError,
  LockLostError,
  LockReleaseError,
  LockTimeoutError,
  NotLockOwnerError,
  NotReplicatedError,
  RegistryClosedError,
} from './errors';
