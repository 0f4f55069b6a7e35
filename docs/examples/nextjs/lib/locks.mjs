import { createClient } from 'redis';
import { RedisLockRegistry } from 'redis-lock-registry';

function make() {
  const client = createClient({ url: process.env.REDIS_URL ?? 'redis://localhost:6379' }).on('error', console.error);
  const registry = new RedisLockRegistry(client, { registryKey: 'shop' });
  return { registry, connected: client.connect() };
}

/**
 * The registry of this server, connected on its first use: a build that loads this module opens no connection. On
 * `globalThis`, since a development server loads modules again after each change.
 */
export async function locks() {
  globalThis.locks ??= make();
  await globalThis.locks.connected;
  return globalThis.locks.registry;
}
