import { afterEach, describe, it, jest } from '@jest/globals';
import { fakeTimers } from './fake-timers';

fakeTimers({
  describe,
  it,
  afterEach,
  useFakeTimers: (real) => jest.useFakeTimers({ doNotFake: [...real] }),
  useRealTimers: () => jest.useRealTimers(),
  setSystemTime: (date) => jest.setSystemTime(date),
  advance: (ms) => jest.advanceTimersByTimeAsync(ms),
  advanceAtOnce: (ms) => jest.advanceTimersByTime(ms),
});
