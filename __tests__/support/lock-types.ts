import type { LockType } from '../../lib/kinds';

/** Every lock type, for tests of what all of them have to do. */
export { LOCK_TYPES } from '../../lib/kinds';

/**
 * One of each way to contend and to write a lock, for tests of what the library does for any of them: the contract tries
 * every type.
 */
export const DISTINCT_TYPES = ['pub-sub', 'fair', 'redisson-fair'] as const satisfies LockType[];
