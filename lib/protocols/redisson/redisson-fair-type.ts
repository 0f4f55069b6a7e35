import { redissonFairInspector } from '../inspection/redisson-fair-inspector';
import type { LockTypeDefinition } from '../lock-type';
import { USUAL_PACE_FOR } from '../pollers';
import { PastPositions } from './past-positions';
import { RedissonFairProtocol } from './redisson-fair-protocol';
import { RedissonFormat } from './redisson-format';
import { HASH_HELD } from './redisson-held';
import { redissonKey } from './redisson-names';
import { QUEUE, RedissonQueueFormat } from './redisson-queue-format';

/** Redisson's queue on Redisson's format. */
export const REDISSON_FAIR: LockTypeDefinition = {
  held: HASH_HELD,
  protocols(parts) {
    const { redis, settings } = parts;
    const hash = new RedissonFormat(redis, settings);
    const format = new RedissonQueueFormat(redis, settings, hash);
    const subscriber = parts.subscriber(hash.isSharded, true);
    const pastPositions = new PastPositions();
    const pollers = () => parts.pollers(USUAL_PACE_FOR);
    const stopMonitoring = redis.monitor.onReconnect(() => pastPositions.removeAgain());
    return {
      inspector: redissonFairInspector(redis, hash),
      open(names) {
        // Throws for a name whose queue would be in another hash slot.
        redissonKey(names, QUEUE, redis.isCluster);
        return new RedissonFairProtocol(names, { settings, format, subscriber, pastPositions, pollers });
      },
      close() {
        stopMonitoring();
        pastPositions.close();
      },
    };
  },
};
