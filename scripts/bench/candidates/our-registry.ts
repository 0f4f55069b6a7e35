import type { RedisLockRegistry, RedisLockRegistryOptions } from '../../../lib';
import type { OpenOptions } from './candidate';
import { nodeRedis } from './clients';

/** A registry of the built package, as a user would make it. */
export async function ourRegistry(
  { address, ttl, library: file }: OpenOptions,
  options: Partial<RedisLockRegistryOptions> = {},
): Promise<RedisLockRegistry> {
  const library = (await import(file)) as unknown as typeof import('../../../lib');
  const client = await nodeRedis(address);
  return new library.RedisLockRegistry(client, { registryKey: 'locks', expireAfter: ttl, ...options });
}
