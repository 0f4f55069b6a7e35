import { expect, it } from '@jest/globals';
import { RedisLockRegistry } from '../../lib';
import { clock } from '../../lib/internal/clock';
import { REDISSON_SCRIPTS } from '../../lib/protocols/redisson/redisson';
import { SPRING_SCRIPTS } from '../../lib/protocols/spring';
import { FakeClock } from '../support/fake-clock';
import { lateReply, mockRedis, released } from '../support/mock-redis';

it('A hold that goes on after a turn of the event loop is given back before close resolves', async () => {
  const time = new FakeClock();
  const immediates: (() => void)[] = [];
  clock.immediate = () => new Promise((resolve) => immediates.push(resolve));
  try {
    const redis = mockRedis();
    const registry = new RedisLockRegistry(redis, { registryKey: 'passing' });
    const [one, other] = [registry.obtain('one'), registry.obtain('other')];
    // A turn of the event loop in which a hold is passed on, and which lasts for 60 ms.
    const before = await one.lock();
    const lease = await other.lock();
    const next = one.lock();
    await before.unlock();
    await (await next).unlock();
    await time.advance(60);
    const waiting = other.lock();
    await time.advance(0);
    // It was not confirmed for longer than 50 ms: Redis is asked, and says that it is held.
    const unlocked = lease.unlock();
    await time.advance(0);
    await unlocked;
    const rejected = expect(waiting).rejects.toThrow('closed');
    const answer = lateReply();
    redis.evalSha.mockReturnValueOnce(answer.promise);
    let isClosed = false;
    const closing = registry.close({ timeout: 100 }).then(() => (isClosed = true));
    await rejected;
    for (const resolve of immediates.splice(0)) resolve();
    await time.advance(10);
    expect(isClosed).toBe(false);
    answer.resolve(released);
    await closing;
  } finally {
    time.restore();
  }
});

it.each([
  ['pub-sub', SPRING_SCRIPTS],
  ['redisson', REDISSON_SCRIPTS],
] as const)('A busy %s lock is released after a slice where nobody can listen', async (lockType, { RELEASE }) => {
  const time = new FakeClock();
  try {
    const redis = mockRedis();
    const lock = new RedisLockRegistry(redis, { registryKey: 'passing', lockType }).obtain('key');
    const lease = await lock.lock();
    const waiting = lock.lock();
    await time.advance(500);
    await lease.unlock();
    expect(redis.evalSha.mock.lastCall?.[0]).toBe(RELEASE.sha1);
    // It is left to those that poll for longer than their interval.
    await time.advance(105);
    expect(redis.evalSha.mock.lastCall?.[0]).toBe(RELEASE.sha1);
    await time.advance(20);
    await (await waiting).unlock();
  } finally {
    time.restore();
  }
});
