import type { Redis } from '../../redis/redis';
import type { ProtocolSettings } from '../protocol';
import { CHANNEL, isShardedFor, type RedissonFormat, TOKEN } from '../redisson/redisson-format';
import { redissonKey, redissonName } from '../redisson/redisson-names';
import { QUEUE } from '../redisson/redisson-queue-format';
import { publishRelease } from '../redisson/redisson-scripts';
import { OWNER_OF_HASH, scripts } from './inspection-scripts';
import { Inspector } from './inspector';

/** Notified by: PUBLISH or SPUBLISH, the channel of the lock. The first in the queue has a channel of its own. */
const SCRIPTS = scripts(
  'redisson-fair',
  OWNER_OF_HASH,
  'LLEN',
  `
local head = redis.call('LINDEX', KEYS[2], 0)
if head then
  ${publishRelease('ARGV[4]', "ARGV[5] .. ':' .. head")}
end`,
);

export function redissonFairInspector(redis: Redis, settings: ProtocolSettings, format: RedissonFormat): Inspector {
  const publish = isShardedFor(redis, settings) ? 'SPUBLISH' : 'PUBLISH';
  return new Inspector(redis, {
    scripts: SCRIPTS,
    companions: (names) => [
      redissonKey(names, QUEUE, redis.isCluster),
      ...(settings.fencing ? [redissonKey(names, TOKEN, redis.isCluster)] : []),
    ],
    notification: (names) => [publish, redissonName(names, CHANNEL)],
    get deleteCommand() {
      return format.deleteCommand;
    },
  });
}
