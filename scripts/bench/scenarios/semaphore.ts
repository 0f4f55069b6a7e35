import { max, min, sum } from 'simple-statistics';
import { acquisitionsPerCaller, keyHistories, overfull, overtaken, quantile, waits } from '../acquisitions';
import { PERMITS } from '../candidates/candidate';
import { metric, type Scenario } from './scenario';
import { quickWarmUp, SLOW_LOCKS } from './warm-up';

const PROCESSES = 4;
const CALLERS = 10;
/** ms in the section */
const WORK = 5;

export const semaphore: Scenario = {
  id: '11',
  title: `A semaphore with ${PERMITS} permits: ${PROCESSES} processes with ${CALLERS} callers, ${WORK} ms of work`,
  floor: undefined,
  metrics: [
    metric('rate', 'acquisitions', '/s'),
    metric('requests', 'requests for each'),
    metric('p50', 'wait, p50', 'ms'),
    metric('p999', 'wait, p99.9', 'ms'),
    metric('fewest', 'least-served caller', '', false),
    metric('most', 'most-served caller', '', false),
    metric('overtaken', 'overtaken, for each', '', false),
    metric('client', 'client CPU for each', 'µs'),
    metric('server', 'server CPU for each', 'µs'),
  ],
  suits: ({ kind }) => kind === 'semaphore',
  plan(isQuick) {
    const settings = { callers: CALLERS, keys: 1, work: WORK, workJitter: 0, pause: 0, permits: PERMITS };
    const loads = new Array(PROCESSES).fill({ load: 'callers', settings });
    return isQuick ? { loads, warmUp: quickWarmUp(200), window: 800 } : { loads, warmUp: SLOW_LOCKS, window: 5_000 };
  },
  figures({ observations, requests, serverCpu, seconds }) {
    const [history = []] = keyHistories(observations, CALLERS, 1);
    const waited = waits(history, min(observations.map(({ end }) => end)));
    const perCaller = acquisitionsPerCaller(history, PROCESSES * CALLERS);
    const count = sum(perCaller);
    return {
      rate: count / seconds,
      requests: requests / count,
      p50: quantile(waited, 0.5),
      p999: quantile(waited, 0.999),
      fewest: min(perCaller),
      most: max(perCaller),
      overtaken: overtaken(history) / count,
      client: (sum(observations.map(({ cpu }) => cpu)) / count) * 1000,
      server: (serverCpu / count) * 1000,
      violations: overfull(history, PERMITS) + sum(observations.map(({ violations }) => violations)),
    };
  },
};
