import { notified } from '../contended/notified';
import { redissonInspector } from '../inspection/redisson-inspector';
import type { LockTypeDefinition } from '../lock-type';
import { RedissonFormat } from './redisson-format';
import { HASH_HELD } from './redisson-held';

/** ms; the default of `handOver`. */
const SLICE = 50;

/** Contended on Redisson's format, with waiting by notification. */
export const REDISSON: LockTypeDefinition = {
  held: HASH_HELD,
  protocols(parts) {
    const { redis, settings } = parts;
    const format = new RedissonFormat(redis, settings);
    return notified(parts, format, redissonInspector(redis, format), SLICE);
  },
};
