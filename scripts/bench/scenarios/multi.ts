import { min, sum } from 'simple-statistics';
import { keyHistories, overlaps, quantile, waits } from '../acquisitions';
import type { Candidate } from '../candidates/candidate';
import { metric, type Scenario } from './scenario';
import { cycleFigures, cycleMetrics } from './uncontended';
import { ONE_CALLER, quickWarmUp, SLOW_LOCKS } from './warm-up';

const PROCESSES = 4;
const CALLERS = 10;
const KEYS = 20;
/** ms in the section */
const WORK = 5;

/** Libraries that lock several keys, all or nothing. */
const LIBRARIES = ['spin', 'pub-sub', 'fair', 'redlock', 'sesame-redlock', 'redlock-universal'];

const suits = (...others: string[]) => {
  const suited = [...LIBRARIES, ...others];
  return ({ id }: Candidate) => suited.includes(id);
};

function uncontended(id: string, together: number, isVariant: boolean): Scenario {
  return {
    id,
    isVariant,
    title: `${together} keys at a time, uncontended, one caller`,
    floor: 'floor-evalsha',
    metrics: [metric('requests', 'requests for each'), ...cycleMetrics],
    suits: suits('floor-evalsha'),
    plan: (isQuick) => ({
      loads: [{ load: 'cycles', settings: { callers: 1, together } }],
      warmUp: isQuick ? quickWarmUp(400) : ONE_CALLER,
      window: isQuick ? 50 : 100,
      slices: isQuick ? 6 : 12,
    }),
    figures: cycleFigures,
  };
}

function contended(id: string, together: number, isVariant: boolean): Scenario {
  return {
    id,
    isVariant,
    title: `${together} of ${KEYS} keys at a time, ${PROCESSES} processes with ${CALLERS} callers, ${WORK} ms of work`,
    floor: undefined,
    metrics: [
      metric('rate', 'acquisitions', '/s'),
      metric('requests', 'requests for each'),
      metric('p50', 'wait, p50', 'ms'),
      metric('p999', 'wait, p99.9', 'ms'),
      metric('longest', 'longest wait', 'ms'),
      metric('client', 'client CPU for each', 'µs'),
      metric('server', 'server CPU for each', 'µs'),
    ],
    suits: suits(),
    plan(isQuick) {
      const settings = { callers: CALLERS, keys: KEYS, together, work: WORK, workJitter: 0, pause: 0 };
      const loads = new Array(PROCESSES).fill({ load: 'callers', settings });
      return isQuick ? { loads, warmUp: quickWarmUp(200), window: 800 } : { loads, warmUp: SLOW_LOCKS, window: 3_500 };
    },
    figures({ observations, requests, serverCpu, seconds }) {
      const all = observations.flatMap(({ acquisitions }) => acquisitions);
      const count = all.filter(({ enteredAt }) => Number.isFinite(enteredAt)).length;
      const waited = waits(all, min(observations.map(({ end }) => end)));
      return {
        rate: count / seconds,
        requests: requests / count,
        p50: quantile(waited, 0.5),
        p999: quantile(waited, 0.999),
        longest: waited.at(-1) ?? Number.NaN,
        client: (sum(observations.map(({ cpu }) => cpu)) / count) * 1000,
        server: (serverCpu / count) * 1000,
        violations:
          sum(keyHistories(observations, CALLERS, KEYS).map(overlaps)) +
          sum(observations.map(({ violations }) => violations)),
      };
    },
  };
}

export const severalKeys: readonly Scenario[] = [
  uncontended('12a', 2, true),
  uncontended('12b', 5, false),
  contended('12c', 2, true),
  contended('12d', 5, true),
];
