import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from '@jest/globals';
import { RedisLockRegistry } from '../../lib';
import { LoopRound } from '../../lib/core/loop-round';
import { wasSuspended } from '../../lib/internal/clock';
import { BOUNDS, constants } from '../../support/bounds';
import { FakeClock } from '../support/fake-clock';
import { mockRedis, silence } from '../support/mock-redis';

/** Bounds of `lib` that no other test is about: see `support/bounds.ts`. */

const time = FakeClock.install();

it('Every number that the inner rooms of lib have a name for is in the list of bounds, with a test that is there', () => {
  expect(Object.keys(BOUNDS)).toEqual(
    constants()
      .map(({ id }) => id)
      .sort(),
  );
  const held = Object.values(BOUNDS).flatMap((bound) => (typeof bound === 'object' ? Object.values(bound) : [bound]));
  const tests = held.filter((one = '') => !one.startsWith('because '));
  expect(tests.filter((test) => !existsSync(join(__dirname, '..', `${test}.test.ts`)))).toEqual([]);
});

it('The event loop makes a round when holds were passed on for 5 ms', () => {
  const round = new LoopRound();
  expect([0, 4, 5].map((now) => round.isDue(now))).toEqual([false, false, true]);
});

it('A call that waits rejects after 10 s in which Redis says nothing, where no option says otherwise', async () => {
  const redis = mockRedis();
  redis.evalSha.mockImplementation(silence);
  const lock = new RedisLockRegistry(redis, { registryKey: 'bounds', onWarning: () => undefined }).obtain('key');
  const end = await time.settled(lock.lock());
  expect(end).toMatchObject({ error: { name: 'CannotAcquireLockError' } });
  expect(Math.floor((end?.after ?? 0) / 1_000)).toBe(10);
});

it('A clock that jumps by more than 100 ms against the other one shows that the machine was suspended', () => {
  expect([wasSuspended(0, 100), wasSuspended(0, 101)]).toEqual([false, true]);
});

it('What an attempt left is removed 50 ms after its caller gave up, and then once a second while that fails', async () => {
  const redis = mockRedis();
  redis.evalSha.mockRejectedValue(new Error('Socket closed unexpectedly')).mockImplementationOnce(silence);
  const lock = new RedisLockRegistry(redis, { registryKey: 'bounds', commandTimeout: 300 }).obtain('key');
  await time.settled(lock.tryLock());
  await time.advance(35);
  expect(redis.sent).toBe(1);
  await time.advance(30);
  expect(redis.sent).toBe(2);
  await time.advance(10_000);
  const { sent } = redis;
  await time.advance(10_000);
  expect(redis.sent - sent).toBe(10);
});
