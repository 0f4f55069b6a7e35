import { BackedLockRegistry } from './backed-lock-registry';
import { publishingWarnings } from './diagnostics/publishing-warnings';
import type { RedisLockRegistryOptions, SegmentedLockOptions } from './options';
import { describeWrongClient, isRedisClient, type RedisClientOrFromIoredis } from './redis/client';
import { hashTag } from './redis/names';
import { RedisBackend } from './redis-backend';
import { redisSettings } from './redis-settings';
import type { SegmentedLock } from './segmented/segmented-lock';
import { warn } from './warnings';

/**
 * A registry of distributed locks on Redis: hands out one `RedisLock` for each key.
 *
 * Make one for each process and `registryKey`, and inject it. The client stays the caller's: it is neither closed
 * nor changed, and it must be connected, or be about to be, when locks are taken.
 * @example
 * const registry = new RedisLockRegistry(client, { registryKey: 'orders', lockType: 'pub-sub' });
 * await registry.run('order:42', () => ship(order));
 */
export class RedisLockRegistry extends BackedLockRegistry {
  /**
   * @throws TypeError when an option is unknown or has a wrong type, or the client has no `eval` and `evalSha`, or no
   *   `duplicate` for `minReplicas`.
   * @throws RangeError when an option is out of range.
   */
  constructor(client: RedisClientOrFromIoredis, options: RedisLockRegistryOptions) {
    if (!isRedisClient(client)) throw new TypeError(describeWrongClient(client));
    const settings = publishingWarnings(redisSettings(options));
    super(settings, new RedisBackend(client, settings));
  }

  override segmented(key: string, options: SegmentedLockOptions): SegmentedLock {
    const { registryKey, onWarning } = this.settings;
    if (hashTag(registryKey) !== undefined) {
      const message = `The hash tag in registryKey "${registryKey}" puts all segments of "${key}" into one slot of a cluster`;
      warn(onWarning, { code: 'SEGMENTS_SHARE_SLOT', message, key });
    }
    return super.segmented(key, options);
  }
}
