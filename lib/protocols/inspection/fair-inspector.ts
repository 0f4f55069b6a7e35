import type { Redis } from '../../redis/redis';
import type { SpringFormat } from '../spring/spring-format';
import { OWNER_OF_STRING, publishName, scripts } from './inspection-scripts';
import { Inspector } from './inspector';

/**
 * Notified by: PUBLISH or SPUBLISH and the channel of the grants without its process, for the first in the queue;
 * channels, for all that listen. Those that are notified poll.
 */
const SCRIPTS = scripts(
  'fair',
  OWNER_OF_STRING,
  'ZCARD',
  `
local first = redis.call('ZRANGE', KEYS[2], 0, 0)[1]
if first then redis.pcall(ARGV[4], ARGV[5] .. ':' .. string.match(first, '^(.*):'), KEYS[1]) end
${publishName(6)}`,
);

export function fairInspector(redis: Redis, format: SpringFormat): Inspector {
  const publish = redis.isCluster ? 'SPUBLISH' : 'PUBLISH';
  return new Inspector(redis, {
    scripts: SCRIPTS,
    keys(names) {
      const [lock, ...fence] = format.keys(names) as [string, ...string[]];
      return [lock, names.companion('queue'), ...fence];
    },
    notification: (names) => [publish, names.companion('grants'), ...format.channels(names)],
    format,
  });
}
