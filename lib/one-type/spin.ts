import { SPIN } from '../protocols/spring/spin-type';
import type { RedisClient } from '../redis/client';
import { OneTypeLockRegistry, type OneTypeOptions } from './one-type-lock-registry';

export * from './public-names';

/** A registry of locks of type `spin`: the locks of one key of a `RedisLockRegistry`, in a smaller library. */
export class SpinLockRegistry extends OneTypeLockRegistry {
  /** @throws TypeError or RangeError as `RedisLockRegistry`. */
  constructor(client: RedisClient, options: OneTypeOptions) {
    super(client, options, SPIN);
  }
}
