import { max, min, sum } from 'simple-statistics';
import { acquisitionsPerCaller, handOvers, keyHistories, overlaps, overtaken, quantile, waits } from '../acquisitions';
import type { Measurement, RunPlan } from '../running-candidate';
import { type Figures, librariesAnd, metric, type Scenario } from './scenario';
import { FOUR_PROCESSES, ONE_PROCESS, quickWarmUp, type WarmUp } from './warm-up';

/** Callers that lock and unlock one key in a loop. */
interface CallerGroup {
  readonly processes: number;
  readonly callers: number;
  /** ms in the section */
  readonly work: number;
  /** ms from a release to the next request, and a random addition; 0 by default. */
  readonly pause?: number;
  readonly pauseJitter?: number;
}

const metrics = [
  metric('rate', 'acquisitions', '/s'),
  metric('requests', 'requests for each'),
  metric('handOver', 'hand-over', 'µs'),
  metric('p999', 'wait, p99.9', 'ms'),
  metric('longest', 'longest wait', 'ms'),
  metric('fewest', 'least-served caller', '', false),
  metric('most', 'most-served caller', '', false),
  metric('evenness', 'least / most served', '', false),
  metric('overtaken', 'overtaken, for each', '', false),
  metric('client', 'client CPU for each', 'µs'),
  metric('server', 'server CPU for each', 'µs'),
];

function plan(
  { processes, callers, work, pause = 0, pauseJitter = 0 }: CallerGroup,
  warmUp: WarmUp,
  window: number,
): RunPlan {
  const settings = { callers, keys: 1, work, workJitter: 0, pause, pauseJitter };
  return { loads: new Array(processes).fill({ load: 'callers', settings }), warmUp, window };
}

function figures(
  { processes, callers }: CallerGroup,
  { observations, requests, serverCpu, seconds }: Measurement,
): Figures {
  const [history = []] = keyHistories(observations, callers, 1);
  const waited = waits(history, min(observations.map(({ end }) => end)));
  const perCaller = acquisitionsPerCaller(history, processes * callers);
  const count = sum(perCaller);
  const latencies = handOvers(history).sort((a, b) => a - b);
  return {
    rate: count / seconds,
    requests: requests / count,
    handOver: quantile(latencies, 0.5) * 1000,
    p999: quantile(waited, 0.999),
    longest: waited.at(-1) ?? Number.NaN,
    fewest: min(perCaller),
    most: max(perCaller),
    evenness: min(perCaller) / max(perCaller),
    overtaken: overtaken(history) / count,
    client: (sum(observations.map(({ cpu }) => cpu)) / count) * 1000,
    server: (serverCpu / count) * 1000,
    violations: overlaps(history) + sum(observations.map(({ violations }) => violations)),
  };
}

/** ms; the longest slice of `spin` and the pause after it, so that each window has one pause. */
const ONE_SLICE = 1_710;

const hundredCallers: CallerGroup = { processes: 1, callers: 100, work: 0 };

export const oneProcess: Scenario = {
  id: '3',
  title: '100 callers on one key in one process, empty section',
  floor: 'floor-hand-over',
  metrics,
  suits: librariesAnd('floor-fifo', 'floor-hand-over', 'floor-fair'),
  plan: (isQuick) =>
    isQuick ? plan(hundredCallers, quickWarmUp(300), 300) : plan(hundredCallers, ONE_PROCESS, ONE_SLICE),
  figures: (measurement) => figures(hundredCallers, measurement),
};

/** Four processes with ten callers. `window`: ms in a full run. */
function fourProcesses(
  { id, title, floor, window }: { id: string; title: string; floor: string; window: number },
  load: Pick<CallerGroup, 'work' | 'pause' | 'pauseJitter'>,
): Scenario {
  const group = { processes: 4, callers: 10, ...load };
  return {
    id,
    isVariant: load.work === 0,
    title: `4 processes with 10 callers on one key, ${title}`,
    floor,
    metrics,
    suits: librariesAnd('floor-fifo', 'floor-token', 'floor-fair'),
    plan: (isQuick) => (isQuick ? plan(group, quickWarmUp(200), window / 5) : plan(group, FOUR_PROCESSES, window)),
    figures: (measurement) => figures(group, measurement),
  };
}

export const fourProcessesEmpty = fourProcesses(
  { id: '4a', title: 'empty section', floor: 'floor-fifo', window: 1_800 },
  { work: 0 },
);
export const fourProcessesWorking = fourProcesses(
  { id: '4b', title: '5 ms of work', floor: 'floor-fifo', window: 5_000 },
  { work: 5 },
);
/** The usual service: a releaser goes away and comes back later. */
export const fourProcessesThinking = fourProcesses(
  { id: '4t', title: '1 ms of work, 10 to 30 ms until the next request', floor: 'floor-token', window: 3_000 },
  { work: 1, pause: 10, pauseJitter: 20 },
);
