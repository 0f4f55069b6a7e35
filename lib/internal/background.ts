import { AsyncResource } from 'node:async_hooks';

/** The async context in which the library was loaded: no context of a caller. */
const background = new AsyncResource('RedisLockRegistry', { requireManualDestroy: true });

/**
 * Runs `start` outside the async context of the caller. Timers and sockets keep the context in which they were made.
 * A timer or socket that many callers share must not keep the context of one: its callbacks would run in that caller's
 * scope.
 */
export function inBackground<T>(start: () => T): T {
  return background.runInAsyncScope(start);
}

/** Runs callbacks later in the async context in which this function was called. */
export function captureContext(): <T>(callback: () => T) => T {
  const resource = new AsyncResource('RedisLockRegistryListener', { requireManualDestroy: true });
  return (callback) => resource.runInAsyncScope(callback);
}
