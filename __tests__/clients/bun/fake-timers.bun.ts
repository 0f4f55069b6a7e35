import { afterEach, describe, it, jest } from '@jest/globals';
import { fakeTimers, inSteps } from '../../testing/fake-timers';

/* Runs under Bun: `npm run test:bun`. */

fakeTimers(
  {
    describe,
    it,
    afterEach,
    useFakeTimers: () => jest.useFakeTimers(),
    useRealTimers: () => jest.useRealTimers(),
    setSystemTime: (date) => jest.setSystemTime(date),
    advance: (ms) => inSteps(ms, (step) => jest.advanceTimersByTime(step)),
    advanceAtOnce: (ms) => jest.advanceTimersByTime(ms),
  },
  [[]],
);
