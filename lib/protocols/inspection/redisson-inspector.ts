import type { LockNames } from '../../redis/names';
import type { Redis } from '../../redis/redis';
import type { ProtocolSettings } from '../protocol';
import { CHANNEL, isShardedFor, type RedissonFormat, TOKEN } from '../redisson/redisson-format';
import { redissonKey, redissonName } from '../redisson/redisson-names';
import { publishRelease } from '../redisson/redisson-scripts';
import { OWNER_OF_HASH, scripts } from './inspection-scripts';
import { Inspector } from './inspector';

/** Notified by: PUBLISH or SPUBLISH, the channel of the lock. */
const SCRIPTS = scripts('redisson', OWNER_OF_HASH, undefined, publishRelease('ARGV[4]', 'ARGV[5]'));

export function redissonInspector(redis: Redis, settings: ProtocolSettings, format: RedissonFormat): Inspector {
  const isSharded = isShardedFor(redis, settings);
  const count = isSharded ? 'SHARDNUMSUB' : 'NUMSUB';
  const listeners = {
    listeners: (names: LockNames) => [count, redissonName(names, CHANNEL)] as const,
  };
  return new Inspector(redis, {
    scripts: SCRIPTS,
    companions: (names) => (settings.fencing ? [redissonKey(names, TOKEN, redis.isCluster)] : []),
    ...(format.countsListeners ? listeners : {}),
    notification: (names) => [isSharded ? 'SPUBLISH' : 'PUBLISH', redissonName(names, CHANNEL)],
    get deleteCommand() {
      return format.deleteCommand;
    },
  });
}
