import { afterEach, beforeEach, expect, it } from '@jest/globals';
import { RedisLockRegistry } from '../../lib';
import { MAX_DELAY } from '../../lib/internal/clock';
import { FakeClock } from '../support/fake-clock';
import { mockRedis } from '../support/mock-redis';

let time: FakeClock;

beforeEach(() => {
  time = new FakeClock();
});

afterEach(() => time.restore());

it('sets no timer that Node would let fire at once, also with the longest warnAfter', async () => {
  const registry = new RedisLockRegistry(mockRedis(), { registryKey: 'long', warnAfter: MAX_DELAY });
  const lock = registry.obtain('key');
  await lock.lock({ ttl: 60_000 });
  const waiting = expect(lock.lock({ waitTime: 1_000 })).rejects.toMatchObject({ name: 'LockTimeoutError' });
  await time.advance(2_000);
  await waiting;
  expect(Math.max(...time.delays)).toBeLessThanOrEqual(MAX_DELAY);
});
