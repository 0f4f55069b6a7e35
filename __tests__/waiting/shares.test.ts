import { expect, it } from '@jest/globals';
import { describePrivate, PrivateRedis } from '../support/private-redis';
import { uniqueKey } from '../support/redis';
import { TurnTaker } from './turn-takers';

const PROCESSES = 4;
const WORK = 5;
const OBSERVED = 2_500;

/** Of the turns; a quarter is the fair share. */
const LEAST = 0.1;
const MOST = 0.4;

describePrivate(`${PROCESSES} processes that take a lock over and over`, () => {
  const redis = PrivateRedis.install();

  const cases = (['pub-sub', 'redisson'] as const).flatMap((lockType) =>
    [1, 10].map((callers) => ({ lockType, callers })),
  );

  it.each(cases)('of type $lockType, with $callers callers in each, have their share each', async (of) => {
    const takers = await Promise.all(Array.from({ length: PROCESSES }, () => TurnTaker.start()));
    const registryKey = uniqueKey('shares');
    const done = await Promise.all(
      takers.map((taker) =>
        taker.take({
          ...of,
          redis: { socket: redis.address },
          registryKey,
          handOver: undefined,
          work: WORK,
          turns: Number.MAX_SAFE_INTEGER,
          ms: OBSERVED,
          measureEvery: 0,
        }),
      ),
    );
    expect(done.flatMap(({ failures }) => failures)).toEqual([]);
    const turns = done.map(({ outcome }) => outcome.turns);
    const all = turns.reduce((sum, n) => sum + n, 0);
    expect(all).toBeGreaterThan(OBSERVED / WORK / 5); // there were enough turns to share
    expect(Math.min(...turns) / all).toBeGreaterThanOrEqual(LEAST);
    expect(Math.max(...turns) / all).toBeLessThanOrEqual(MOST);
  });
});
