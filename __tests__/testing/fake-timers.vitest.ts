import { afterEach, describe, it, vi } from 'vitest';
import { fakeTimers } from './fake-timers';

const ALL = [
  'setTimeout',
  'clearTimeout',
  'setInterval',
  'clearInterval',
  'setImmediate',
  'clearImmediate',
  'performance',
  'Date',
  'nextTick',
  'queueMicrotask',
] as const;

fakeTimers({
  describe,
  it,
  afterEach,
  useFakeTimers: (real) =>
    vi.useFakeTimers({ toFake: ALL.filter((name) => !(real as readonly string[]).includes(name)) }),
  useRealTimers: () => vi.useRealTimers(),
  setSystemTime: (date) => vi.setSystemTime(date),
  advance: (ms) => vi.advanceTimersByTimeAsync(ms),
  advanceAtOnce: (ms) => vi.advanceTimersByTime(ms),
});
