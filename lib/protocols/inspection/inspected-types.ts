import type { Redis } from '../../redis/redis';
import type { ProtocolSettings } from '../protocol';
import { CHANNEL, isShardedFor, type RedissonFormat, TOKEN } from '../redisson/redisson-format';
import { QUEUE } from '../redisson/redisson-queue-format';
import type { SpringFormat } from '../spring/spring-format';
import { FAIR, REDISSON, REDISSON_FAIR, SPRING } from './inspection-scripts';
import { Inspector } from './inspector';

/** For `spin` and `pub-sub`. `areListening`: their waiters listen for releases. */
export function springInspector(
  redis: Redis,
  settings: ProtocolSettings,
  format: SpringFormat,
  areListening: boolean,
): Inspector {
  const listeners = { listeners: (names: { channel: string }) => ['NUMSUB', names.channel] as const };
  return new Inspector(redis, {
    scripts: SPRING,
    companions: (names) => (settings.fencing ? [names.companion('fence')] : []),
    ...(areListening && format.countsListeners ? listeners : {}),
    notification: (names) => format.channels(names),
    get deleteCommand() {
      return format.deleteCommand;
    },
  });
}

export function fairInspector(redis: Redis, settings: ProtocolSettings, format: SpringFormat): Inspector {
  const publish = redis.isCluster ? 'SPUBLISH' : 'PUBLISH';
  return new Inspector(redis, {
    scripts: FAIR,
    companions: (names) => [names.companion('queue'), ...(settings.fencing ? [names.companion('fence')] : [])],
    notification: (names) => [publish, names.companion('grants'), ...format.channels(names)],
    get deleteCommand() {
      return format.deleteCommand;
    },
  });
}

/** For `redisson` and `redisson-fair`. `hasQueue`: waiters queue in Redis. */
export function redissonInspector(
  redis: Redis,
  settings: ProtocolSettings,
  format: RedissonFormat,
  hasQueue: boolean,
): Inspector {
  const isSharded = isShardedFor(redis, settings);
  const count = isSharded ? 'SHARDNUMSUB' : 'NUMSUB';
  const listeners = {
    listeners: (names: { redisson(prefix: string): string }) => [count, names.redisson(CHANNEL)] as const,
  };
  return new Inspector(redis, {
    scripts: hasQueue ? REDISSON_FAIR : REDISSON,
    companions: (names) => [
      ...(hasQueue ? [names.redissonKey(QUEUE, redis.isCluster)] : []),
      ...(settings.fencing ? [names.redissonKey(TOKEN, redis.isCluster)] : []),
    ],
    ...(!hasQueue && format.countsListeners ? listeners : {}),
    notification: (names) => [isSharded ? 'SPUBLISH' : 'PUBLISH', names.redisson(CHANNEL)],
    get deleteCommand() {
      return format.deleteCommand;
    },
  });
}
