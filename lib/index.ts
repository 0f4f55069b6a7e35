export type {
  DistributedLock,
  Leadership,
  Lease,
  LeaseEvalOptions,
  ListedLock,
  LockLostReason,
  LockOptions,
  LockState,
  MultiLease,
  ReadWriteLock,
  TryRunResult,
} from './api/distributed-lock';
export {
  CannotAcquireLockError,
  LeaseEvalError,
  LockAskedError,
  LockError,
  type LockErrorCode,
  LockInspectionError,
  LockLostError,
  LockQueueFullError,
  LockReleaseError,
  LockTimeoutError,
  NotLockOwnerError,
  NotReplicatedError,
  RegistryClosedError,
} from './api/errors';
export type { LockType, ShardedSubscriptionMode } from './api/lock-types';
export type {
  AcquireMessage,
  HoldMessage,
  LockMessage,
  LostMessage,
  ReleaseMessage,
  RenewedMessage,
  WarningMessage,
} from './api/messages';
export type {
  AdoptOptions,
  CloseOptions,
  LeadOptions,
  ListOptions,
  OnceOptions,
  RedisLockRegistryOptions,
  RedisSubscriber,
  SegmentedLockOptions,
  SemaphoreOptions,
} from './api/options';
export type { LockHolder, LockWarning, LockWarningCode, SilenceOfRedis, WarningListener } from './api/warnings';
export type { RedisLock } from './core/lock';
export type { MultiLock } from './multi/multi-lock';
export type { EvalOptions, RedisClient, RedisCommands } from './redis/client';
export { LockRegistry } from './registry/lock-registry';
export { RedisLockRegistry } from './registry/redis-lock-registry';
export type {
  AcrossResult,
  AcrossTask,
  Exhausted,
  Part,
  Segment,
  SegmentedResult,
  Share,
} from './segmented/segmented-lock';
export { SegmentedLock, split } from './segmented/segmented-lock';
