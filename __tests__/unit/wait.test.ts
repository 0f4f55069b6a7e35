import { getEventListeners } from 'node:events';
import { expect, it, jest } from '@jest/globals';
import { RedisLockRegistry } from '../../lib';
import { Wait } from '../../lib/core/wait';
import { clock, MAX_DELAY, reliableUntil } from '../../lib/internal/clock';
import { FakeClock } from '../support/fake-clock';
import { granted, mockRedis, refused } from '../support/mock-redis';

const time = FakeClock.install();

it('A wait sleeps no longer than it has time', async () => {
  const wait = new Wait('key', 100, undefined);
  expect(await time.settled(wait.sleep(1_000))).toMatchObject({ after: 100 });
});

it('A wait leaves a free lock to others for no more than half of its time, and there is time for an attempt', async () => {
  const wait = new Wait('key', 100, undefined);
  expect(wait.standBack(0)).toBeUndefined();
  expect(await time.settled(wait.standBack(1_000) as Promise<void>)).toMatchObject({ after: 50 });
  expect(wait.remaining).toBe(50);
});

it('A wait without an end has no timer, which each caller that waits would have', async () => {
  const cleared = jest.spyOn(clock, 'clearTimeout');
  const wait = new Wait('key', Number.POSITIVE_INFINITY, undefined);
  const ended = wait.unlessOver(Promise.resolve('answer'));
  expect(await ended).toBe('answer');
  expect(cleared).not.toHaveBeenCalled();
  cleared.mockRestore();
});

it('A wait leaves no timer behind when it is interrupted, and nothing later can be waited for', async () => {
  const wait = new Wait('key', Number.POSITIVE_INFINITY, undefined);
  const rejected = expect(wait.sleep(1_000)).rejects.toBe('enough');
  wait.interrupt('enough');
  wait.interrupt('again'); // the first reason counts
  await rejected;
  expect(time.pending).toBe(0);
  await expect(wait.sleep(1_000)).rejects.toBe('enough');
  expect(() => wait.throwIfInterrupted()).toThrow('enough');
});

it('A signal that two waits share has one listener while one of them is open, and interrupts only those that are', async () => {
  const controller = new AbortController();
  const { signal } = controller;
  const [first, second, third] = [1, 2, 3].map(() => new Wait('key', 1_000, signal)) as [Wait, Wait, Wait];
  expect(getEventListeners(signal, 'abort')).toHaveLength(1);
  first.end();
  first.end();
  expect([first.isOver, second.isOver, getEventListeners(signal, 'abort').length]).toEqual([true, false, 1]);
  controller.abort('enough');
  expect([first, second, third].map(({ isInterrupted }) => isInterrupted)).toEqual([false, true, true]);
  second.end();
  third.end();
  new Wait('key', 1_000, undefined).end();
  expect(getEventListeners(signal, 'abort')).toHaveLength(0);
});

it('A wait that anything may end settles at once, or as the promise does; another one hands out the promise itself', async () => {
  const never = new Promise<never>(() => undefined);
  expect(new Wait('key', 1_000, undefined).unlessAborted(never)).toBe(never);
  const waits = [new Wait('key', 1_000, new AbortController().signal), new Wait('key', 0, undefined)];
  for (const wait of waits) {
    await expect(wait.unlessAborted(Promise.resolve('granted'))).resolves.toBe('granted');
    await expect(wait.unlessAborted(Promise.reject('refused'))).rejects.toBe('refused');
    const rejected = expect(wait.unlessAborted(never)).rejects.toBe('enough');
    expect(time.pending).toBe(0);
    wait.interrupt('enough');
    await rejected;
  }
});

it('A step of a wait is undone once, also when it ends before there is anything to undo', async () => {
  const wait = new Wait('key', Number.POSITIVE_INFINITY, undefined);
  const undo = jest.fn();
  const step = wait.suspend<string>(100, (resume) => {
    resume('at once');
    return undo;
  });
  expect([await step, undo.mock.calls.length, time.pending]).toEqual(['at once', 1, 0]);
  let wake: (value: string) => void = () => undefined;
  const next = wait.suspend<string>(100, (resume) => {
    wake = resume;
    return undo;
  });
  wake('first');
  wake('second');
  await wait.suspend(1, (resume) => void resume(undefined));
  expect([await next, undo.mock.calls.length, wait.remaining]).toEqual(['first', 2, Number.POSITIVE_INFINITY]);
});

it('A wait for one of several locks says that its caller holds others, if that is so', () => {
  const around = new Wait('a + b', 1_000, undefined);
  expect(new Wait('a', 1_000, undefined, around).holdsOthers).toBe(false);
  around.holdsOthers = true;
  expect(new Wait('b', 1_000, undefined, around).holdsOthers).toBe(true);
});

it.each([2 ** 31, 2 ** 40])('A caller waits for %d ms, in the local queue too (P1)', async (waitTime) => {
  const redis = mockRedis();
  const lock = new RedisLockRegistry(redis, { registryKey: 'long', renew: false, expireAfter: MAX_DELAY }).obtain('42');
  await lock.lock({ ttl: MAX_DELAY });
  let outcome = 'waiting';
  const waiting = lock.tryLock({ waitTime }).then((lease) => {
    outcome = lease === null ? 'refused' : 'granted';
  });
  redis.evalSha.mockResolvedValue(refused(MAX_DELAY));
  await time.advance(MAX_DELAY / 2);
  expect(outcome).toBe('waiting');
  expect(Math.max(...time.delays)).toBeLessThanOrEqual(MAX_DELAY);
  redis.evalSha.mockResolvedValue(granted);
  await time.advance(MAX_DELAY);
  expect(outcome).toBe('granted');
  await waiting;
});

it('A caller with a long waitTime sets no timer that Node would let fire at once, also with the longest warnAfter', async () => {
  const lock = new RedisLockRegistry(mockRedis(), { registryKey: 'long', warnAfter: MAX_DELAY }).obtain('key');
  await lock.lock({ ttl: 60_000 });
  expect(await time.settled(lock.lock({ waitTime: 1_000 }))).toMatchObject({ error: { name: 'LockTimeoutError' } });
  expect(Math.max(...time.delays)).toBeLessThanOrEqual(MAX_DELAY);
});

it('reliableUntil counts from before the request was sent, less 0.1 % and 1 ms (P3)', () => {
  expect(reliableUntil(5_000, 60_000)).toBe(64_939);
  expect(reliableUntil(0, 1)).toBeLessThan(0);
});
