import { expect, it, jest } from '@jest/globals';
import { RedisLockRegistry } from '../../lib';
import { FakeClock } from '../support/fake-clock';
import { granted, lateReply, mockRedis, released, silence } from '../support/mock-redis';

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
  await new Promise((resolve) => setTimeout(resolve, 20));
  controller.abort();
  // One after each of the next turns of the microtask queue, whichever it is in which the turn changes hands.
  const tries: Promise<unknown>[] = [];
  let turn = Promise.resolve();
  for (let i = 0; i < 20; i++) {
    tries.push(turn.then(() => lock.tryLock()));
    turn = turn.then(() => undefined);
  }
  await rejected;
  await new Promise((resolve) => setTimeout(resolve, 5));
  for (const answer of answers) answer([60_000]);
  expect(await Promise.allSettled(tries)).toEqual(Array(20).fill({ status: 'fulfilled', value: null }));
});

it('After a slow unlock, a caller that does not wait is told what Redis answers to the one that was quicker', async () => {
  const time = new FakeClock();
  try {
    const redis = mockRedis();
    const lock = new RedisLockRegistry(redis, { registryKey: 'quicker' }).obtain('key');
    const lease = await lock.lock();
    const [release, attempt] = [lateReply(), lateReply()];
    redis.evalSha.mockReturnValueOnce(release.promise).mockReturnValueOnce(attempt.promise);
    const unlocked = lease.unlock();
    await time.advance(300);
    const tried = lock.tryLock();
    const waiting = lock.lock();
    await time.advance(1);
    release.resolve(released);
    await unlocked;
    await time.advance(1);
    expect(redis.sent).toBe(3);
    attempt.resolve(granted);
    expect(await tried).toBeNull();
    await (await waiting).unlock();
  } finally {
    time.restore();
  }
});

it('P1: a caller that takes over the attempt of the one before it does not wait for it longer than it may', async () => {
  const time = new FakeClock();
  try {
    const redis = mockRedis();
    const semaphore = new RedisLockRegistry(redis, { registryKey: 'left' }).semaphore('key', { permits: 1 });
    redis.evalSha.mockImplementation(async () => [0, 0, 1]);
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
  } finally {
    time.restore();
  }
});

it('It is told no later than its commandTimeout, though the one that was quicker is not answered (P1)', async () => {
  const time = new FakeClock();
  try {
    const redis = mockRedis();
    const lock = new RedisLockRegistry(redis, { registryKey: 'quicker', commandTimeout: 500 }).obtain('key');
    const lease = await lock.lock();
    const [release, attempt] = [lateReply(), lateReply()];
    redis.evalSha.mockReturnValueOnce(release.promise).mockReturnValueOnce(attempt.promise);
    const unlocked = lease.unlock();
    await time.advance(300);
    const tried = jest.fn();
    lock.tryLock().then(tried, tried);
    const waiting = lock.lock();
    await time.advance(180);
    release.resolve(released);
    await unlocked;
    await time.advance(1);
    expect(redis.sent).toBe(3);
    expect(tried).not.toHaveBeenCalled();
    await time.advance(330);
    expect(tried).toHaveBeenCalled();
    attempt.resolve(granted);
    await (await waiting).unlock();
  } finally {
    time.restore();
  }
});
