import { expect, it } from '@jest/globals';
import { RedisLockRegistry } from '../../lib';
import { Availability, type Question } from '../../lib/core/availability';
import { FakeClock } from '../support/fake-clock';
import { granted, lateReply, mockRedis, sharedGranted, sharedRefused, silence } from '../support/mock-redis';

const time = FakeClock.install();

const askedAt = (...times: number[]) => {
  const availability = new Availability();
  return { availability, questions: times.map((at) => availability.ask(at)) };
};

it('While a question is unanswered, an answer to one that was sent long before it does not end the silence', () => {
  const { availability } = askedAt(0, 2_000);
  availability.answered(0);
  availability.refused(2_000, 30_000);
  expect(availability.isSilent(2_200)).toBe(false);
  expect(availability.isSilent(2_300)).toBe(true);
  expect(availability.silence(0, 2_300)).toBe(300);
});

it.each<[string, asked: number, end: (one: Availability, last: Question) => void]>([
  ['its answer does, whatever is answered later', 2_000, (one) => one.answered(2_000)],
  ['so does the end of its caller', 2_000, (one, last) => one.withdraw(last)],
  ['so does an answer to one that was sent a moment before', 100, () => undefined],
])('A silence is ended by an answer: %s', (_, asked, end) => {
  const { availability, questions } = askedAt(0, asked);
  end(availability, questions[1] as Question);
  availability.answered(0);
  expect(availability.silence(0, 5_000)).toBe(0);
});

it('While a question is unanswered, an answer that comes after its caller has left ends the silence, but for questions that were asked since, and does not say that the lock is free', () => {
  const { availability, questions } = askedAt(0);
  availability.answeredLate(questions[0] as Question);
  expect(availability.silence(0, 5_000)).toBe(0);
  const first = availability.ask(5_000);
  availability.ask(6_000);
  availability.refused(5_500, 60_000, 'web-7');
  availability.answeredLate(first);
  expect(availability.silence(0, 7_000)).toBe(1_000);
  expect([availability.isRefused(7_000), availability.holderSaid(7_000)?.owner]).toEqual([true, 'web-7']);
});

it('While a question is unanswered, an answer to one that was sent 250 ms before it does not end the silence, nor does the end of another one', () => {
  const { availability, questions } = askedAt(0, 250);
  const [first, last] = questions as [Question, Question];
  availability.answered(0);
  for (const end of [() => availability.withdraw(first), () => availability.answeredLate(first)]) {
    end();
    expect(availability.silence(0, 1_000)).toBe(750);
  }
  availability.withdraw(last);
  expect(availability.silence(0, 1_000)).toBe(0);
});

it.each([10, 0])(
  'While a question is unanswered, the end of the caller of one that was sent %i ms before or after it does not end the silence',
  (at) => {
    const { availability, questions } = askedAt(0, at);
    const [first, last] = questions as [Question, Question];
    const other = askedAt(0, at);
    availability.withdraw(first);
    other.availability.withdraw(other.questions[1] as Question);
    expect([availability.silence(0, 1_000), availability.isSilent(1_000)]).toEqual([1_000 - at, true]);
    expect(other.availability.silence(0, 1_000)).toBe(1_000);
    availability.withdraw(last);
    expect([availability.silence(0, 1_000), availability.isSilent(1_000)]).toEqual([0, false]);
  },
);

it('While a question is unanswered, a refusal counts for 250 ms or for as long as the lock is held, and silence does not replace an error', () => {
  const { availability } = askedAt(0);
  const contended = (...times: number[]) => times.map((now) => !availability.isSilent(now));
  expect([availability.isRefused(0), availability.holderSaid(0)]).toEqual([false, undefined]);
  availability.refused(0, 10, 'web-7');
  expect([availability.holderSaid(4)?.remaining, availability.holderSaid(20)?.remaining]).toEqual([6, 0]);
  expect([availability.isRefused(249), availability.isRefused(250)]).toEqual([true, false]);
  availability.refused(0, 1_000);
  expect([availability.isRefused(999), availability.isRefused(1_000)]).toEqual([true, false]);
  expect(availability.holderSaid(4)?.owner).toBe('web-7');
  expect(contended(249, 250)).toEqual([true, false]);
  const [refused, busy, silent] = [new Error('NOPERM no'), new Error('BUSY'), new Error('silent')];
  for (const error of [silent, refused, silent]) availability.failed(error);
  expect([availability.failure, ...contended(249)]).toEqual([refused, false]);
  availability.failed(busy);
  expect(availability.failure).toBe(refused);
});

it('A late answer is no silence for a caller of several locks that asks about this one seconds later', async () => {
  const redis = mockRedis();
  const registry = new RedisLockRegistry(redis, { registryKey: 'late', unavailableAfter: 2_000 });
  const first = await registry.obtain('a').lock();
  const both = registry.multi(['a', 'b']).lock();
  await time.advance(10);
  const answer = lateReply();
  redis.evalSha.mockImplementation(() => answer.promise);
  const left = await time.settled(registry.obtain('b').lock({ waitTime: 1 }));
  expect(left).toMatchObject({ error: { name: 'CannotAcquireLockError' } });
  answer.resolve(granted);
  redis.evalSha.mockImplementation(async () => granted);
  await time.advance(5_000);
  const acquired = expect(both).resolves.toMatchObject({ leases: [{ key: 'a' }, { key: 'b' }] });
  const unlocked = first.unlock();
  await time.advance(1_000);
  await Promise.all([unlocked, acquired]);
});

it('A late answer is not waited for longer than a caller may that takes over the attempt of the one before it (P1)', async () => {
  const redis = mockRedis();
  const semaphore = new RedisLockRegistry(redis, { registryKey: 'left' }).semaphore('key', { permits: 1 });
  redis.evalSha.mockImplementation(async () => sharedGranted);
  const first = await semaphore.lock();
  redis.evalSha.mockImplementation(silence);
  const second = semaphore.lock();
  const third = time.settled(semaphore.lock({ waitTime: 300 }));
  await time.advance(1);
  // The second caller has the permit now, and the third one its attempt.
  await Promise.all([first.unlock(), second]);
  const end = await third;
  expect(end).toMatchObject({ error: { name: 'CannotAcquireLockError' } });
  expect(end?.after).toBeLessThanOrEqual(400);
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
