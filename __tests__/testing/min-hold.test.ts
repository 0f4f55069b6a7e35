import { afterEach, expect, it, jest } from '@jest/globals';
import { InMemoryLockRegistry, InMemoryLocks } from '../../lib/testing';

afterEach(() => void jest.useRealTimers());

it('A waiter gets a lock in memory when its minHold ends, and not when its ttl would have ended', async () => {
  jest.useFakeTimers();
  const locks = new InMemoryLocks();
  const [one, other] = [new InMemoryLockRegistry({ locks }), new InMemoryLockRegistry({ locks })];
  const lease = await one.obtain('key').lock({ ttl: 60_000, minHold: 200 });
  const granted = jest.fn();
  void other.obtain('key').lock().then(granted);
  await jest.advanceTimersByTimeAsync(20);
  await lease.unlock();
  await jest.advanceTimersByTimeAsync(170);
  expect(granted).not.toHaveBeenCalled();
  await jest.advanceTimersByTimeAsync(10);
  expect(granted).toHaveBeenCalled();
  await Promise.all([one.close(), other.close({ timeout: 0 })]);
});
