import type { RedisSubscriber } from '../api/options';
import { describeForAdapter, type RedisClient } from '../redis/client';
import { BunClient, type BunRedis, isBunRedis } from './client';

export type { BunRedis } from './client';

/** One for each client, so that registries share the connection for messages. */
const clients = new WeakMap<BunRedis, RedisClient & RedisSubscriber>();

/**
 * Makes the client that `RedisLockRegistry` needs of a `RedisClient` of Bun. Messages come over a connection of its
 * own, made with `duplicate()`. The client stays the caller's: it is neither changed nor closed.
 *
 * It has no `minReplicas`, no sharded channels and no cluster, since Bun's client has none of them. A reconnect of the
 * client is not noticed: a lease that a restarted server forgot is found lost at its next renewal. A reconnect of the
 * connection for messages, which is open while a waiter listens, is noticed: then Redis is asked about all leases.
 * @throws TypeError when it is no such client.
 * @example
 * const registry = new RedisLockRegistry(fromBun(Bun.redis), { registryKey: 'orders', lockType: 'pub-sub' });
 */
export function fromBun(redis: BunRedis): RedisClient & RedisSubscriber {
  const known = clients.get(redis);
  if (known !== undefined) return known;
  if (!isBunRedis(redis)) throw new TypeError(`Expected a RedisClient of Bun, got ${describeForAdapter(redis)}`);
  const made = new BunClient(redis);
  clients.set(redis, made);
  return made;
}
