import { describeForAdapter, type RedisClient } from '../redis/client';
import type { RedisSubscriber } from '../redis/subscriber';
import { ClusterGlide, type Glide, type GlideInternals, SingleGlide } from './client';

export type { Glide } from './client';

/** One for each client, so that registries share the connection for messages. */
const clients = new WeakMap<Glide, RedisClient & RedisSubscriber>();

/**
 * Makes the client that `RedisLockRegistry` needs of a `GlideClient` or `GlideClusterClient` of valkey-glide 2.
 * Messages come over a client of its own, with the configuration of the given one. That stays the caller's: it is
 * neither changed nor closed.
 *
 * It has no `minReplicas`, and of a cluster no `list()`. A reconnect is not noticed: a lease that a restarted server
 * forgot is found lost at its next renewal.
 * @throws TypeError when it is no such client.
 * @example
 * const registry = new RedisLockRegistry(fromGlide(client), { registryKey: 'orders', lockType: 'fair' });
 */
export function fromGlide(client: Glide): RedisClient & RedisSubscriber {
  const known = clients.get(client);
  if (known !== undefined) return known;
  if (!isGlide(client)) {
    throw new TypeError(
      `Expected a GlideClient or GlideClusterClient of valkey-glide, got ${describeForAdapter(client)}`,
    );
  }
  const made = client.invokeScriptWithRoute === undefined ? new SingleGlide(client) : new ClusterGlide(client);
  clients.set(client, made);
  return made;
}

function isGlide(value: unknown): value is GlideInternals {
  const { customCommand, invokeScript, close } = (value ?? {}) as Partial<GlideInternals>;
  return [customCommand, invokeScript, close].every((method) => typeof method === 'function');
}
