import { LOCK_TYPES, type LockType, traitsOf } from '../../lib/api/lock-types';

/** Every lock type, for tests of what all of them have to do; and those that pass leases on, also to other processes. */
export { LOCK_TYPES, TRAVELLING_TYPES } from '../../lib/api/lock-types';

/** Those whose waiters are notified. */
export const NOTIFIED_TYPES = LOCK_TYPES.filter((lockType) => !traitsOf(lockType).polls);

/**
 * One of each way to contend and to write a lock, for tests of what the library does for any of them: the contract tries
 * every type.
 */
export const DISTINCT_TYPES = ['pub-sub', 'fair', 'redisson-fair'] as const satisfies LockType[];
