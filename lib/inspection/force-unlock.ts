import { emitProcessWarning, type WarningListener } from '../api/warnings';
import type { RedisClient } from '../redis/client';
import { RedisLockRegistry } from '../registry/redis-lock-registry';
import type { FoundLock } from './found-lock';

/** Takes a lock from its holder, and notifies the waiters. Resolves to whether somebody had it. */
export async function forceUnlock(
  client: RedisClient,
  lock: FoundLock,
  onWarning: WarningListener = emitProcessWarning,
): Promise<boolean> {
  const [registryKey, key] = splitOf(lock);
  const lockType = lock.type ?? (lock.format === 'redisson' || registryKey === '' ? 'redisson' : 'pub-sub');
  const registry = new RedisLockRegistry(client, { registryKey, lockType, onWarning });
  try {
    return (await registry.obtain(key).forceUnlock()).held;
  } finally {
    await registry.close({ timeout: 0 });
  }
}

/** The registryKey and the key of a lock. Where nobody listens for its release, every split is as good. */
function splitOf({ format, key, lock, registryKey }: FoundLock): [registryKey: string, key: string] {
  if (registryKey !== null && key !== null) return [registryKey, key];
  const colon = format === 'redisson' ? -1 : lock.indexOf(':');
  return [lock.slice(0, Math.max(0, colon)), lock.slice(colon + 1)];
}
