import { describe, expect, it } from '@jest/globals';
import { RedisLockRegistry } from '../../lib';
import { Availability } from '../../lib/core/availability';
import { FakeClock } from '../support/fake-clock';
import { granted, lateReply, mockRedis } from '../support/mock-redis';

describe('While a question is unanswered', () => {
  it('an answer to one that was sent long before it does not end the silence', () => {
    const availability = new Availability();
    availability.asked(0);
    availability.asked(2_000);
    availability.answered(0);
    availability.refused(2_000, 30_000);
    expect(availability.isContended(2_200)).toBe(true);
    expect(availability.isContended(2_300)).toBe(false);
    expect(availability.silence(0, 2_300)).toBe(300);
  });

  it.each([
    ['its answer does', (one: Availability) => one.answered(2_000)],
    ['so does the end of its caller', (one: Availability) => one.withdrawn(2_000)],
  ])('%s, whatever is answered later', (_name, end) => {
    const availability = new Availability();
    availability.asked(0);
    availability.asked(2_000);
    end(availability);
    availability.answered(0);
    expect(availability.silence(0, 5_000)).toBe(0);
  });

  it('an answer to one that was sent a moment before it is an answer', () => {
    const availability = new Availability();
    availability.asked(0);
    availability.asked(100);
    availability.answered(0);
    expect(availability.silence(0, 5_000)).toBe(0);
  });
});

describe('An answer that comes after its caller has left', () => {
  it('ends the silence, but for questions that were asked since', () => {
    const availability = new Availability();
    availability.asked(0);
    availability.answeredLate(0);
    expect(availability.silence(0, 5_000)).toBe(0);
    availability.asked(5_000);
    availability.asked(6_000);
    availability.answeredLate(5_000);
    expect(availability.silence(0, 7_000)).toBe(1_000);
  });

  it('is no silence for a caller of several locks that asks about this one seconds later', async () => {
    const time = new FakeClock();
    try {
      const redis = mockRedis();
      const registry = new RedisLockRegistry(redis, { registryKey: 'late', unavailableAfter: 2_000 });
      const first = await registry.obtain('a').lock();
      const both = registry.multi(['a', 'b']).lock();
      await time.advance(10);
      const answer = lateReply();
      redis.evalSha.mockImplementation(() => answer.promise);
      const rejected = expect(registry.obtain('b').lock({ waitTime: 1 })).rejects.toMatchObject({
        name: 'CannotAcquireLockError',
      });
      await time.advance(60);
      await rejected;
      answer.resolve(granted);
      redis.evalSha.mockImplementation(async () => granted);
      await time.advance(5_000);
      const acquired = expect(both).resolves.toMatchObject({ leases: [{ key: 'a' }, { key: 'b' }] });
      const unlocked = first.unlock();
      await time.advance(1_000);
      await Promise.all([unlocked, acquired]);
    } finally {
      time.restore();
    }
  });
});
