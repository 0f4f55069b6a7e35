import type { Redis } from '../../redis/redis';
import type { Script } from '../../redis/script';

/**
 * As `Redis.run`; calls `failed` before it rejects. To await the promise for that would cost each acquisition another
 * one.
 */
export function runScript<T>(
  redis: Redis,
  script: Script,
  keys: string[],
  args: string[],
  timeout: number,
  read: (reply: unknown) => T | Promise<T>,
  failed: (error: unknown) => void,
  sentAt: number,
): Promise<T> {
  return new Promise((resolve, reject) => {
    const fail = (error: unknown): void => {
      failed(error);
      reject(error);
    };
    redis.send(script, keys, args, timeout, read, resolve, fail, sentAt);
  });
}
