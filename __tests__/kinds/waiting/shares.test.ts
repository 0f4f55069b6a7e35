import { expect, it } from '@jest/globals';
import { describePrivate, PrivateRedis } from '../../support/private-redis';
import { uniqueKey } from '../../support/redis';
import { startTaker, takeTurns } from './turn-takers';

const PROCESSES = 4;
const WORK = 5;

/** `least`, `most`: of the turns; a quarter is the fair share. */
const CASES = [
  ...(['pub-sub', 'redisson'] as const).flatMap((lockType) =>
    [1, 10].map((callers) => ({ lockType, callers, ms: 2_500, least: 0.1, most: 0.4 })),
  ),
  { lockType: 'pub-sub', callers: 10, ms: 10_000, least: 0.15, most: 0.35 },
  { lockType: 'spin', callers: 10, ms: 20_000, least: 0.05, most: 1 },
] as const;

describePrivate(`${PROCESSES} processes that take a lock over and over`, () => {
  const redis = PrivateRedis.install();

  it.each(CASES)(
    `${PROCESSES} processes that take a lock over and over of type $lockType, with $callers callers in each, for $ms ms, have their share each`,
    async ({ lockType, callers, ms, least, most }) => {
      const takers = await Promise.all(Array.from({ length: PROCESSES }, () => startTaker()));
      const registryKey = uniqueKey('shares');
      const job = { redis: { socket: redis.address }, registryKey, lockType, callers, work: WORK, ms };
      const done = await Promise.all(takers.map((taker) => takeTurns(taker, job)));
      expect(done.flatMap(({ failures }) => failures)).toEqual([]);
      const turns = done.map(({ outcome }) => outcome.turns);
      const all = turns.reduce((sum, n) => sum + n, 0);
      expect(all).toBeGreaterThan(10 * PROCESSES); // there were enough turns to share, also on a busy machine
      expect(Math.min(...turns) / all).toBeGreaterThanOrEqual(least);
      expect(Math.max(...turns) / all).toBeLessThanOrEqual(most);
    },
  );
});
