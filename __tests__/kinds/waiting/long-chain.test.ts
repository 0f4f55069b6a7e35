import { expect, it } from '@jest/globals';
import { describePrivate, PrivateRedis } from '../../support/private-redis';
import { uniqueKey } from '../../support/redis';
import { startTaker, takeTurns } from './turn-takers';

/** Hand-overs between two measurements, one after another within one process. */
const TURNS = 8_000;
const ROUNDS = 3;

/** Bytes that a hand-over may leave on the heap: a trace of it would be hundreds. */
const BYTES = 50;

describePrivate(`Callers of one process that hand a lock over ${TURNS * ROUNDS} times`, () => {
  const redis = PrivateRedis.install();

  // The other types queue in Redis, and hand over by their release.
  it.each(['spin', 'pub-sub', 'redisson'] as const)(
    `Callers of one process that hand a lock over ${TURNS * ROUNDS} times leave no trace of it: a %s lock is released as at first, and the heap does not grow`,
    async (lockType) => {
      const taker = await startTaker();
      const { outcome, failures } = await takeTurns(taker, {
        redis: { socket: redis.address },
        registryKey: uniqueKey('chain'),
        lockType,
        handOver: 600_000, // ms; it never goes to another process in between
        callers: 10,
        turns: TURNS * ROUNDS,
        ms: 150_000, // a busy machine needs more than a minute
        measureEvery: TURNS,
      });
      expect(failures).toEqual([]);
      expect(outcome.turns).toBeGreaterThanOrEqual(TURNS * ROUNDS);
      expect(outcome.heaps.length).toBeGreaterThanOrEqual(ROUNDS);
      // Until the first measurement, code is compiled and caches fill.
      const [, second, third] = outcome.heaps as [number, number, number];
      expect(third - second).toBeLessThan(TURNS * BYTES);
    },
    180_000,
  );
});
