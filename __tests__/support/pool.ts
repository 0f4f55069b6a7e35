import { createClientPool, type RedisClientOptions } from 'redis';

/**
 * A pool whose cleanup timer ends soon. `destroy` of node-redis 6.3 leaves that timer running, 3 s by default, and it
 * would keep a worker of Jest alive.
 */
export function createPool(options: RedisClientOptions | undefined, size: { minimum: number; maximum?: number }) {
  return createClientPool(options, { ...size, cleanupDelay: 100 });
}
