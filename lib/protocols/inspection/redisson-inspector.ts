import type { LockNames } from '../../redis/names';
import type { Redis } from '../../redis/redis';
import type { RedissonFormat } from '../redisson/redisson-format';
import { OWNER_OF_HASH, publishRelease } from '../redisson/redisson-scripts';
import { scripts } from './inspection-scripts';
import { Inspector } from './inspector';

/** Notified by: PUBLISH or SPUBLISH, the channel of the lock. */
const SCRIPTS = scripts('redisson', OWNER_OF_HASH, undefined, publishRelease('ARGV[4]', 'ARGV[5]'));

export function redissonInspector(redis: Redis, format: RedissonFormat): Inspector {
  const count = format.isSharded ? 'SHARDNUMSUB' : 'NUMSUB';
  const listeners = { listeners: (names: LockNames) => [count, format.channel(names)] as const };
  return new Inspector(redis, {
    scripts: SCRIPTS,
    keys: (names) => format.keys(names),
    ...(format.countsListeners ? listeners : {}),
    notification: (names) => format.notification(names),
    format,
  });
}
