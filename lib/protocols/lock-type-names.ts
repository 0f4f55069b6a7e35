/** How a lock is written in Redis, and how a waiter learns that it is free. `lock-types.ts` says what each is made of. */
export type LockType = 'spin' | 'pub-sub' | 'fair' | 'redisson' | 'redisson-fair';
