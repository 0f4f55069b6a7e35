import { isOfLibrary, REDISSONS } from '../../api/owner-name';
import { listOf, pairsOf, type QueueLook } from '../common/look';
import { redissonName } from '../redisson/keys';
import { lockOfRedissonQueue, QUEUE, TIMEOUTS } from './keys';

/** The queue beside a hash of Redisson's format. */
export const REDISSON_FAIR_LOOK: QueueLook = {
  type: 'redisson-fair',
  keyType: 'list',
  pattern: `^${QUEUE}:`,
  channels: [],
  othersName: 'Redisson, fair (Java)',
  lockOf: lockOfRedissonQueue,
  async read(names, { ask, now }) {
    const owners = listOf(await ask('LRANGE', redissonName(names, QUEUE), '0', '-1'));
    const known = owners.filter((owner) => isOfLibrary(owner) || REDISSONS.test(owner));
    const ends =
      known.length > 0 ? pairsOf(await ask('ZRANGE', redissonName(names, TIMEOUTS), '0', '-1', 'WITHSCORES')) : [];
    // The next attempt removes them from the queue.
    const past = new Set(ends.flatMap(([owner, end]) => (Number(end) <= now() ? [owner] : [])));
    return known.filter((owner) => !past.has(owner)).map((owner) => ({ owner }));
  },
};
