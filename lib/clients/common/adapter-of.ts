import { type AdaptedKind, missingMembers, notAdapted, type RedisClient } from '../../redis/client';

const adapters = new WeakMap<object, RedisClient>();

/**
 * The adapter of a client of this kind: one for each client, so that all registries on it share its connection for
 * messages, and listen to its events once. Throws for a value of another kind.
 */
export function adapterOf<Client extends object, Adapter extends RedisClient>(
  given: object,
  kind: AdaptedKind,
  make: (client: Client) => Adapter,
): Adapter {
  if (missingMembers(given, kind).length > 0) throw notAdapted(given, kind);
  const adapter = (adapters.get(given) as Adapter | undefined) ?? make(given as Client);
  adapters.set(given, adapter);
  return adapter;
}
