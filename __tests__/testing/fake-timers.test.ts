import { afterEach, describe, expect, it, jest } from '@jest/globals';
import { clock } from '../../lib/internal/clock';
import { InMemoryLockRegistry, InMemoryLocks } from '../../lib/testing';
import { type Framework, fakeTimers } from './fake-timers';

const framework: Framework = {
  describe,
  it,
  afterEach,
  useFakeTimers: (real) => jest.useFakeTimers({ doNotFake: [...real] }),
  useRealTimers: () => jest.useRealTimers(),
  setSystemTime: (date) => jest.setSystemTime(date),
  advance: (ms) => jest.advanceTimersByTimeAsync(ms),
  advanceAtOnce: (ms) => jest.advanceTimersByTime(ms),
};

afterEach(() => {
  jest.restoreAllMocks();
  jest.useRealTimers();
});

fakeTimers(framework);

describe('Marked as those of Bun,', () => {
  const useFakeTimers = () => {
    jest.useFakeTimers();
    // Bun has no marks on the other functions.
    Object.assign(setTimeout, { clock: true });
    Object.assign(clearTimeout, { clock: undefined });
  };
  fakeTimers({ ...framework, useFakeTimers }, [[]]);
});

it('Fake timers that a test spies on are followed all the same', async () => {
  jest.useFakeTimers();
  jest.spyOn(globalThis, 'setTimeout');
  const registry = new InMemoryLockRegistry();
  const lease = await registry.obtain('key').lock({ ttl: 60_000 });
  await jest.advanceTimersByTimeAsync(50_000);
  expect(Math.round(lease.remaining / 1_000)).toBe(10);
  await registry.close({ timeout: 0 });
});

it('Fake timers that begin with a spy, or are set back, are followed all the same', () => {
  new InMemoryLocks();
  jest.useFakeTimers({ doNotFake: ['performance'] });
  const fake = (globalThis.setTimeout as unknown as { readonly clock: { readonly now: number } }).clock;
  // A spy has no mark.
  jest.spyOn(globalThis, 'setTimeout');
  const before = clock.now();
  jest.advanceTimersByTime(60_000);
  expect(clock.now() - before).toBe(60_000);
  Object.defineProperty(fake, 'performance', { value: { now: () => 0 } });
  expect(clock.now() - before).toBe(60_000);
});

it('Fake timers take over a timer as it is, and no real one fires beside them', async () => {
  new InMemoryLocks();
  const alive = () => process.getActiveResourcesInfo().filter((kind) => kind === 'Timeout').length;
  const [fired, others] = [jest.fn(), alive()];
  const timer = clock.setTimeout(fired, 20);
  timer.unref();
  const { setTimeout: real } = globalThis;
  jest.useFakeTimers();
  clock.now();
  await new Promise((resolve) => real(resolve, 40));
  expect(fired).not.toHaveBeenCalled();
  jest.useRealTimers();
  clock.now();
  // One of a test before may have ended meanwhile.
  expect(alive()).toBeLessThanOrEqual(others);
  clock.clearTimeout(timer);
});

it('Fake timers do not start a timer anew that was cancelled before', () => {
  new InMemoryLocks();
  const fired = jest.fn();
  clock.clearTimeout(clock.setTimeout(fired, 50));
  jest.useFakeTimers();
  clock.now();
  jest.advanceTimersByTime(100);
  expect(fired).not.toHaveBeenCalled();
});

it('The legacy fake timers of jest are refused', () => {
  jest.useFakeTimers({ legacyFakeTimers: true });
  expect(() => new InMemoryLocks()).toThrow('Locks in memory cannot follow the legacy fake timers of jest');
  jest.useRealTimers();
  new InMemoryLocks();
});
