import { REDISSON } from '../protocols/redisson/redisson-type';
import type { RedisClient } from '../redis/client';
import { OneTypeLockRegistry, type OneTypeOptions } from './one-type-lock-registry';

export * from './public-names';

/** A registry of locks of type `redisson`: the locks of one key of a `RedisLockRegistry`, in a smaller library. */
export class RedissonLockRegistry extends OneTypeLockRegistry {
  /** @throws TypeError or RangeError as `RedisLockRegistry`. */
  constructor(client: RedisClient, options: OneTypeOptions) {
    super(client, options, REDISSON);
  }
}
