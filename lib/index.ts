export type { LockWarning } from './diagnostics';
export {
  CannotAcquireLockError,
  LockError,
  LockLostError,
  LockReleaseError,
  LockTimeoutError,
  NotLockOwnerError,
  RegistryClosedError,
} from './errors';
export { type DistributedLock, type Lease, type LockLostReason, type LockOptions, LockRegistry } from './lock-registry';
export type { RedisLockRegistryOptions, SegmentedLockOptions } from './options';
export type { EvalOptions, RedisClient, RedisCommands } from './redis/client';
export type { RedisLock } from './redis-lock';
export { RedisLockRegistry } from './redis-lock-registry';
export type { AcrossResult, AcrossTask, Exhausted, Part, Segment, SegmentedResult, Share } from './segment';
export { SegmentedLock } from './segmented-lock';
export { split } from './split';
export type { LockType } from './strategies';
