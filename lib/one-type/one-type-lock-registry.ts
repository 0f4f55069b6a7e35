import { BackedLockRegistry } from '../backed-lock-registry';
import { publishingWarnings } from '../diagnostics/publishing-warnings';
import type { RedisLockRegistryOptions } from '../options';
import type { LockTypeDefinition } from '../protocols/lock-type';
import { describeWrongClient, isRedisClient, type RedisClient } from '../redis/client';
import { RedisBackend } from '../redis-backend';
import { redisSettingsOf } from '../redis-settings';

/** Options of a registry of one lock type: those of `RedisLockRegistry` but `lockType`, with the same defaults. */
export type OneTypeOptions = Omit<RedisLockRegistryOptions, 'lockType'>;

/**
 * As `RedisLockRegistry`, with one lock type and without the locks that are made of others: a smaller library, for
 * bundles and for a fast start. It shares its locks with any `RedisLockRegistry` of this `lockType`.
 */
export abstract class OneTypeLockRegistry extends BackedLockRegistry {
  /** @internal */
  protected constructor(client: RedisClient, options: OneTypeOptions, lockType: LockTypeDefinition) {
    if (!isRedisClient(client)) throw new TypeError(describeWrongClient(client));
    const settings = publishingWarnings(redisSettingsOf(options, lockType.name));
    super(settings, new RedisBackend(client, settings, lockType));
  }
}
