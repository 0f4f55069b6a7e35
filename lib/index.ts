export type { DistributedLock, Lease, LockLostReason, LockOptions } from './distributed-lock';
export {
  CannotAcquireLockError,
  LockError,
  type LockErrorCode,
  LockLostError,
  LockReleaseError,
  LockTimeoutError,
  NotLockOwnerError,
  RegistryClosedError,
} from './errors';
export { LockRegistry } from './lock-registry';
export type { RedisLockRegistryOptions, SegmentedLockOptions } from './options';
export type { LockType } from './protocols/lock-types';
export type { ShardedSubscriptionMode } from './protocols/protocol';
export type { EvalOptions, RedisClient, RedisCommands } from './redis/client';
export type { RedisSubscriber } from './redis/subscriber-connection';
export type { RedisLock } from './redis-lock';
export { RedisLockRegistry } from './redis-lock-registry';
export type { AcrossResult, AcrossTask, Exhausted, Part, Segment, SegmentedResult, Share } from './segmented/segment';
export { SegmentedLock } from './segmented/segmented-lock';
export { split } from './segmented/split';
export type { LockWarning, LockWarningCode, WarningListener } from './warnings';
