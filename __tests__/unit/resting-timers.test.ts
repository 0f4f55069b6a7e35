import { afterEach, expect, it, jest } from '@jest/globals';
import { clock } from '../../lib/internal/clock';
import { WakeTimer } from '../../lib/internal/timers';
import { Subscription } from '../../lib/redis/subscriber';

afterEach(() => {
  jest.restoreAllMocks();
});

/** Timers that keep the process alive. */
const timers = () => process.getActiveResourcesInfo().filter((kind) => kind === 'Timeout').length;

it('a timer that rests does not keep the process alive, and is the same one afterwards', () => {
  const timer = new WakeTimer(() => undefined, true);
  const others = timers();
  const set = jest.spyOn(clock, 'setTimeout');
  const at = clock.now() + 60_000;
  timer.by(at);
  expect(timers()).toBe(others + 1);
  timer.rest();
  expect(timers()).toBe(others);
  timer.by(at + 1_000);
  expect(timers()).toBe(others + 1);
  expect(set).toHaveBeenCalledTimes(1);
  timer.cancel();
  expect(timers()).toBe(others);
});

it('a subscription whose listeners come and go has one timer, and ends a second after the last one left', () => {
  let now = 0;
  jest.spyOn(clock, 'now').mockImplementation(() => now);
  const set = jest.spyOn(clock, 'setTimeout').mockImplementation(() => ({ unref: () => undefined }) as never);
  const fire = () => set.mock.calls.at(-1)?.[0]();
  const end = jest.fn();
  const subscription = new Subscription(['channel'], () => undefined, end);
  for (; now < 900; now += 9) {
    subscription.join();
    subscription.leave();
  }
  expect(set.mock.calls.map(([, ms]) => ms)).toEqual([1_000]);
  subscription.join();
  now = 1_000;
  fire();
  expect(set).toHaveBeenCalledTimes(1);
  subscription.leave();
  now = 1_500;
  subscription.join();
  subscription.leave();
  now = 2_000;
  fire();
  expect(end).not.toHaveBeenCalled();
  expect(set.mock.calls.at(-1)?.[1]).toBe(500);
  now = 2_500;
  fire();
  expect(end).toHaveBeenCalledTimes(1);
});
