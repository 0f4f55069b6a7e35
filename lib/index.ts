export type { RedisLock } from './core/lock';
export type { ShardedSubscriptionMode } from './core/protocol';
export type {
  AcquireMessage,
  HoldMessage,
  LockMessage,
  LostMessage,
  ReleaseMessage,
  RenewedMessage,
  WarningMessage,
} from './diagnostics/messages';
export type {
  DistributedLock,
  Lease,
  LeaseEvalOptions,
  LockLostReason,
  LockOptions,
  MultiLease,
  TryRunResult,
} from './distributed-lock';
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
export { LockRegistry } from './lock-registry';
export type { ListedLock, LockState } from './lock-state';
export type { MultiLock } from './multi/multi-lock';
export type {
  CloseOptions,
  ListOptions,
  RedisLockRegistryOptions,
  SegmentedLockOptions,
  SemaphoreOptions,
} from './options';
export type { LockType } from './protocols/lock-type-traits';
export type { EvalOptions, RedisClient, RedisCommands } from './redis/client';
export type { RedisSubscriber } from './redis/subscriber-connection';
export { RedisLockRegistry } from './redis-lock-registry';
export type { AcrossResult, AcrossTask, Exhausted, Part, Segment, SegmentedResult, Share } from './segmented/segment';
export { SegmentedLock } from './segmented/segmented-lock';
export { split } from './segmented/split';
export type { ReadWriteLock } from './semaphore-read-write/shared-lock';
export type { LockHolder, LockWarning, LockWarningCode, WarningListener } from './warnings';
