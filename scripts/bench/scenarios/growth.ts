import { sum } from 'simple-statistics';
import { handOvers, keyHistories, overlaps, quantile } from '../acquisitions';
import type { Candidate } from '../candidates/candidate';
import type { Measurement, RunPlan } from '../running-candidate';
import { type Curve, type Figures, metric, type Scenario } from './scenario';
import { cycleFigures, cycleMetrics } from './uncontended';
import { FOUR_PROCESSES, ONE_CALLER, quickWarmUp } from './warm-up';

/** Ours, and the two peers in Node that are used most. */
const LIBRARIES = ['spin', 'pub-sub', 'fair', 'redlock', 'redis-semaphore'];

const POWERS_OF_TEN = [1, 10, 100, 1_000, 10_000];

const suits =
  (floor: string) =>
  ({ id }: Candidate) =>
    id === floor || LIBRARIES.includes(id);

/** One scenario for each size of a curve. */
function pointsOf(curve: Curve, of: (size: number) => Pick<Scenario, 'floor' | 'metrics' | 'plan' | 'figures'>) {
  return curve.sizes.map((size): Scenario => {
    const scenario = of(size);
    return {
      ...scenario,
      id: curve.id,
      isVariant: true,
      title: `${curve.title}: ${size.toLocaleString('en')} ${curve.unit}`,
      suits: suits(scenario.floor as string),
      point: { curve, size },
    };
  });
}

const inTurn: Curve = {
  id: '9a',
  name: 'keys',
  title: 'One caller that locks and unlocks many keys in turn',
  unit: 'keys',
  sizes: POWERS_OF_TEN,
};

const atATime: Curve = {
  id: '9b',
  name: 'callers',
  title: 'Callers that lock and unlock a key each, at the same time, in one process',
  unit: 'callers',
  sizes: POWERS_OF_TEN,
  explanation:
    'CPU for each falls while more callers share a write to the socket, and with ours also a command. One processor does all the work, so when it is busy all the time, the latency is the CPU for each times the number of callers.',
};

const waiting: Curve = {
  id: '9c',
  name: 'waiters',
  title: 'One key that is handed over, waiters in one process, empty section',
  unit: 'waiters',
  sizes: POWERS_OF_TEN,
  explanation:
    'The floor, `spin` and `pub-sub` have one queue in the process, and one caller of it asks Redis, so their cost does not depend on the number of waiters. Each waiter of the peers polls for itself, so the cost of an acquisition grows with their number. So has `fair`: only the first caller of a process has a position in Redis.',
};

const processes: Curve = {
  id: '9d',
  name: 'processes',
  title: 'One key that is handed over, processes with 10 callers each, 1 ms of work',
  unit: 'processes',
  sizes: [1, 2, 4, 8, 16],
  explanation:
    'The processes share the CPUs that the server leaves. They warm up for the same time, so the more there are, the less of the code of each is compiled. With more processes than CPUs, a process that is granted the lock waits for a CPU first, which shows in the p99 of all. Each caller of the peers polls for itself, so their CPU for each acquisition grows with the number of processes.',
};

const cyclesOf =
  (settings: { callers: number; keysEach?: number }) =>
  (isQuick: boolean): RunPlan => ({
    loads: [{ load: 'cycles', settings }],
    warmUp: isQuick ? quickWarmUp(400) : ONE_CALLER,
    window: isQuick ? 50 : 100,
    slices: isQuick ? 6 : 12,
  });

/** Shorter than for the other scenarios: there are many points, and what counts is how they compare. */
const WARM_UP_OF_HAND_OVER = { ...FOUR_PROCESSES, longest: 3_000 };

const handOverMetrics = [
  metric('p50', 'hand-over, p50', 'µs'),
  metric('p99', 'hand-over, p99', 'µs'),
  metric('client', 'client CPU for each', 'µs'),
  metric('server', 'server CPU for each', 'µs'),
];

function handOverFigures({ observations, serverCpu }: Measurement, callers: number): Figures {
  const [history = []] = keyHistories(observations, callers, 1);
  const latencies = handOvers(history).sort((a, b) => a - b);
  const count = history.filter(({ enteredAt }) => Number.isFinite(enteredAt)).length;
  return {
    p50: quantile(latencies, 0.5) * 1000,
    p99: quantile(latencies, 0.99) * 1000,
    client: (sum(observations.map(({ cpu }) => cpu)) / count) * 1000,
    server: (serverCpu / count) * 1000,
    violations: overlaps(history) + sum(observations.map(({ violations }) => violations)),
  };
}

/** Callers of one key, in `processes` processes. */
function handOver(processes: number, callers: number, work: number) {
  const settings = { callers, keys: 1, work, workJitter: 0, pause: 0 };
  const loads = new Array(processes).fill({ load: 'callers', settings });
  return {
    metrics: handOverMetrics,
    plan: (isQuick: boolean): RunPlan =>
      isQuick
        ? { loads, warmUp: quickWarmUp(300), window: 600 }
        : { loads, warmUp: WARM_UP_OF_HAND_OVER, window: 2_000 },
    figures: (measurement: Measurement) => handOverFigures(measurement, callers),
  };
}

export const growth: readonly Scenario[] = [
  ...pointsOf(inTurn, (keysEach) => ({
    floor: 'floor-evalsha',
    metrics: cycleMetrics,
    plan: cyclesOf({ callers: 1, keysEach }),
    figures: cycleFigures,
  })),
  ...pointsOf(atATime, (callers) => ({
    floor: 'floor-evalsha',
    metrics: cycleMetrics,
    plan: cyclesOf({ callers }),
    figures: cycleFigures,
  })),
  ...pointsOf(waiting, (waiters) => ({ floor: 'floor-hand-over', ...handOver(1, waiters + 1, 0) })),
  ...pointsOf(processes, (count) => ({ floor: 'floor-token', ...handOver(count, 10, 1) })),
];
