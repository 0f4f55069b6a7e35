/* What each entry point of one lock type exports beside its registry: the same classes as the main entry point does. */

export type { DistributedLock, Lease, LockOptions, TryRunResult } from '../distributed-lock';
export { LockRegistry } from '../lock-registry';
export * from '../public-errors';
export type { RedisClient } from '../redis/client';
export type { OneTypeOptions } from './one-type-lock-registry';
