import { afterEach, describe, it, mock } from 'node:test';
import sinon from '@sinonjs/fake-timers';
import { fakeTimers, inSteps } from './fake-timers';

describe('The mock timers of node:test', () => {
  fakeTimers(
    {
      describe,
      it,
      afterEach,
      useFakeTimers: (real) => {
        const apis = (['setTimeout', 'setInterval', 'setImmediate', 'Date'] as const).filter(
          (name) => !(real as readonly string[]).includes(name),
        );
        mock.timers.enable({ apis });
      },
      useRealTimers: () => mock.timers.reset(),
      setSystemTime: undefined,
      advance: (ms) => inSteps(ms, (step) => mock.timers.tick(step)),
      advanceAtOnce: undefined,
    },
    [[], ['Date', 'setImmediate']],
  );
});

describe('The fake timers of sinon', () => {
  let clock: ReturnType<typeof sinon.install>;
  fakeTimers(
    {
      describe,
      it,
      afterEach,
      useFakeTimers: (real) => {
        clock = sinon.install({ toNotFake: [...real] });
      },
      useRealTimers: () => clock.uninstall(),
      setSystemTime: (date) => clock.setSystemTime(date),
      advance: (ms) => clock.tickAsync(ms),
      advanceAtOnce: (ms) => clock.tick(ms),
    },
    // node:test itself needs the two.
    [['nextTick', 'queueMicrotask']],
  );
});
