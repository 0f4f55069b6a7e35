import { describe, expect, it, jest } from '@jest/globals';
import { RedisLockRegistry } from '../../lib';
import { Availability } from '../../lib/core/availability';
import { FakeClock } from '../support/fake-clock';
import {
  granted,
  lateReply,
  mockRedis,
  refused,
  released,
  sharedGranted,
  sharedRefused,
  silence,
} from '../support/mock-redis';
import { until } from '../support/until';

const askedAt = (...times: number[]) => {
  const availability = new Availability();
  for (const time of times) availability.asked(time);
  return availability;
};

it('While a question is unanswered, an answer to one that was sent long before it does not end the silence', () => {
  const availability = askedAt(0, 2_000);
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
  const availability = askedAt(0, 2_000);
  end(availability);
  availability.answered(0);
  expect(availability.silence(0, 5_000)).toBe(0);
});

it('While a question is unanswered, an answer to one that was sent a moment before it is an answer', () => {
  const availability = askedAt(0, 100);
  availability.answered(0);
  expect(availability.silence(0, 5_000)).toBe(0);
});

it('While a question is unanswered, an answer that comes after its caller has left ends the silence, but for questions that were asked since', () => {
  const availability = askedAt(0);
  availability.answeredLate(0);
  expect(availability.silence(0, 5_000)).toBe(0);
  availability.asked(5_000);
  availability.asked(6_000);
  availability.answeredLate(5_000);
  expect(availability.silence(0, 7_000)).toBe(1_000);
});

it('While a question is unanswered, an answer to one that was sent 250 ms before it does not end the silence, nor does the end of another one', () => {
  const availability = askedAt(0, 250);
  availability.answered(0);
  availability.withdrawn(100);
  expect(availability.silence(0, 1_000)).toBe(750);
  availability.answeredLate(0);
  expect(availability.silence(0, 1_000)).toBe(750);
  availability.withdrawn(250);
  expect(availability.silence(0, 1_000)).toBe(0);
});

it('While a question is unanswered, a refusal counts for 250 ms or for as long as the lock is held, and silence does not replace an error', () => {
  const availability = askedAt(0);
  const contended = (...times: number[]) => times.map((now) => availability.isContended(now));
  expect([availability.isRefused(0), availability.holderSaid(0)]).toEqual([false, undefined]);
  availability.refused(0, 10, 'web-7');
  expect([availability.holderSaid(4)?.remaining, availability.holderSaid(20)?.remaining]).toEqual([6, 0]);
  expect([availability.isRefused(249), availability.isRefused(250)]).toEqual([true, false]);
  availability.refused(0, 1_000);
  expect([availability.isRefused(999), availability.isRefused(1_000)]).toEqual([true, false]);
  expect(contended(249, 250)).toEqual([true, false]);
  const [refused, busy, silent] = [new Error('NOPERM no'), new Error('BUSY'), new Error('silent')];
  for (const error of [silent, refused, silent]) availability.failed(error);
  expect([availability.failure, ...contended(249)]).toEqual([refused, false]);
  availability.failed(busy);
  expect(availability.failure).toBe(refused);
});

it('An attempt that its caller left is no silence of Redis to those who come right after', async () => {
  const answers: ((reply: unknown) => void)[] = [];
  const client = {
    eval: async () => 1,
    evalSha: () => new Promise<unknown>((resolve) => answers.push(resolve)),
  };
  const lock = new RedisLockRegistry(client, { registryKey: 'left' }).obtain('key');
  const controller = new AbortController();
  const left = lock.lock({ signal: controller.signal });
  const rejected = expect(left).rejects.toThrow('This operation was aborted');
  await until(() => answers.length === 1);
  controller.abort();
  // One after each of the next turns of the microtask queue, whichever it is in which the turn changes hands.
  const tries: Promise<unknown>[] = [];
  let turn = Promise.resolve();
  for (let i = 0; i < 20; i++) {
    tries.push(turn.then(() => lock.tryLock()));
    turn = turn.then(() => undefined);
  }
  await rejected;
  // Each try waits for an immediate at the most: on a busy machine 5 ms may be over before.
  for (let i = 0; i < 5; i++) await new Promise(setImmediate);
  for (const answer of answers) answer(refused(60_000));
  expect(await Promise.allSettled(tries)).toEqual(Array(20).fill({ status: 'fulfilled', value: null }));
});

describe('A late answer', () => {
  const time = FakeClock.install();

  it('A late answer is no silence for a caller of several locks that asks about this one seconds later', async () => {
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
  });

  describe('to a slow unlock: a caller that does not wait', () => {
    /** The unlock is answered after `ms`. By then one caller has tried, and another one waits: its attempt comes first. */
    async function slowUnlock(ms: number, commandTimeout: number) {
      const redis = mockRedis();
      const lock = new RedisLockRegistry(redis, { registryKey: 'quicker', commandTimeout }).obtain('key');
      const lease = await lock.lock();
      const [release, attempt] = [lateReply(), lateReply()];
      redis.evalSha.mockReturnValueOnce(release.promise).mockReturnValueOnce(attempt.promise);
      const unlocked = lease.unlock();
      await time.advance(300);
      const tried = lock.tryLock();
      const settled = jest.fn();
      tried.then(settled, settled);
      const waiting = lock.lock();
      await time.advance(ms - 300);
      release.resolve(released);
      await unlocked;
      await time.advance(1);
      expect(redis.sent).toBe(3);
      expect(settled).not.toHaveBeenCalled();
      return { tried, settled, waiting, attempt };
    }

    it('Behind a slow unlock, a caller that does not wait is told what Redis answers to the one that was quicker', async () => {
      const { tried, waiting, attempt } = await slowUnlock(301, 5_000);
      attempt.resolve(granted);
      expect(await tried).toBeNull();
      await (await waiting).unlock();
    });

    it('Behind a slow unlock, a caller that does not wait is told no later than its commandTimeout, though the one that was quicker is not answered (P1)', async () => {
      const { settled, waiting, attempt } = await slowUnlock(480, 500);
      await time.advance(330);
      expect(settled).toHaveBeenCalled();
      attempt.resolve(granted);
      await (await waiting).unlock();
    });
  });

  it('P1: is not waited for longer than a caller may that takes over the attempt of the one before it', async () => {
    const redis = mockRedis();
    const semaphore = new RedisLockRegistry(redis, { registryKey: 'left' }).semaphore('key', { permits: 1 });
    redis.evalSha.mockImplementation(async () => sharedGranted);
    const first = await semaphore.lock();
    redis.evalSha.mockImplementation(silence);
    const second = semaphore.lock();
    const rejected = expect(semaphore.lock({ waitTime: 300 })).rejects.toMatchObject({
      name: 'CannotAcquireLockError',
    });
    await time.advance(1);
    // The second caller has the permit now, and the third one its attempt.
    await Promise.all([first.unlock(), second]);
    let isSettled = false;
    void rejected.finally(() => (isSettled = true));
    await time.advance(400);
    expect(isSettled).toBe(true);
    await rejected;
  });

  it('A late answer is no silence for a caller that takes it over from one that was refused, though little time was left to that', async () => {
    const redis = mockRedis();
    const settings = { registryKey: 'left', idleBetweenTries: 30 };
    const semaphore = new RedisLockRegistry(redis, settings).semaphore('key', { permits: 2 });
    redis.evalSha.mockImplementation(async () => sharedGranted);
    const first = await semaphore.lock();
    redis.evalSha.mockImplementation(async () => sharedRefused(20_000, 2));
    const second = semaphore.lock({ waitTime: 40 });
    const rejected = expect(semaphore.lock({ waitTime: 60 })).rejects.toMatchObject({ name: 'LockTimeoutError' });
    await time.advance(1);
    redis.evalSha.mockImplementation(silence);
    const { sent } = redis;
    await time.advance(35);
    expect(redis.sent).toBe(sent + 1);
    // The second caller has the permit now, and the third one its attempt, which ends at 40 ms.
    await Promise.all([first.unlock(), second]);
    await time.advance(30);
    await rejected;
  });
});
