import type { Redis } from '../../redis/redis';
import { NOTIFY_FIRST } from '../redisson/redisson-fair-scripts';
import type { RedissonFormat } from '../redisson/redisson-format';
import { redissonKey } from '../redisson/redisson-names';
import { QUEUE } from '../redisson/redisson-queue-format';
import { OWNER_OF_HASH } from '../redisson/redisson-scripts';
import { scripts } from './inspection-scripts';
import { Inspector } from './inspector';

/** Notified by: PUBLISH or SPUBLISH, the channel of the lock. The first in the queue has a channel of its own. */
const SCRIPTS = scripts('redisson-fair', OWNER_OF_HASH, 'LLEN', NOTIFY_FIRST);

export function redissonFairInspector(redis: Redis, format: RedissonFormat): Inspector {
  return new Inspector(redis, {
    scripts: SCRIPTS,
    keys(names) {
      const [lock, ...token] = format.keys(names) as [string, ...string[]];
      return [lock, redissonKey(names, QUEUE, redis.isCluster), ...token];
    },
    notification: (names) => format.notification(names),
    format,
  });
}
