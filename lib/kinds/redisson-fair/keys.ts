/** Prefixes of names, as in redisson/keys: the queue of waiters, and the ends of their positions. */
export const QUEUE = 'redisson_lock_queue';
export const TIMEOUTS = 'redisson_lock_timeout';

/** The lock that a queue belongs to, by the name of its key; `undefined`: it is none. */
export function lockOfRedissonQueue(name: string): string | undefined {
  if (!name.startsWith(`${QUEUE}:`)) return undefined;
  const rest = name.slice(QUEUE.length + 1);
  return /^\{([^{}]+)\}$/.exec(rest)?.[1] ?? rest;
}
