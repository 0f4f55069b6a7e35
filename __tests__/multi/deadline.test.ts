import { afterEach, beforeEach, expect, it, jest } from '@jest/globals';
import { type EvalOptions, RedisLockRegistry } from '../../lib';
import { FakeClock } from '../support/fake-clock';
import { granted, lateReply, mockRedis, released } from '../support/mock-redis';

let time: FakeClock;

beforeEach(() => {
  time = new FakeClock();
});

afterEach(() => time.restore());

it('P1: tryLock of several keys has its commandTimeout for all of its commands together', async () => {
  const redis = mockRedis();
  const registry = new RedisLockRegistry(redis, { registryKey: 'multi', commandTimeout: 1_000 });
  const [left, a, b] = [lateReply(), lateReply(), lateReply()];
  redis.evalSha.mockReturnValueOnce(left.promise).mockReturnValueOnce(a.promise);
  redis.evalSha.mockImplementation(async (_, options) => (options?.keys?.[0] === 'multi:b' ? b.promise : released));
  const isRelease = (call: EvalOptions | undefined) => call?.arguments?.includes('UNLINK');
  const asked = () => redis.calls.filter((call) => !isRelease(call)).map((call) => call?.keys?.[0]);
  const first = expect(registry.obtain('a').lock({ waitTime: 300 })).rejects.toMatchObject({
    name: 'CannotAcquireLockError',
  });
  await time.advance(1);
  const outcome = jest.fn();
  const trying = registry.multi(['a', 'b']).tryLock().catch(outcome);
  // It asks for "a" when the caller before it has left, and for "b" when it has "a".
  await time.advance(300);
  await first;
  await time.advance(400);
  a.resolve(granted);
  await time.advance(1);
  expect(asked()).toEqual(['multi:a', 'multi:a', 'multi:b']);
  await time.advance(290);
  expect(outcome).not.toHaveBeenCalled();
  // At the end it gives "a" back, and waits for that for a moment.
  await time.advance(10 + 50);
  expect(outcome).toHaveBeenCalledWith(expect.objectContaining({ name: 'CannotAcquireLockError' }));
  await trying;
  b.resolve(granted);
  await time.advance(1_000);
  const givenBack = redis.calls.filter(isRelease).map((call) => call?.keys?.[0]);
  expect(new Set(givenBack)).toEqual(new Set(['multi:a', 'multi:b']));
});
