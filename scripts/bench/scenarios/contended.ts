import { max, min, sum } from 'simple-statistics';
import { handOvers, intrusions, inversions, quantile, sequences, turns, waits } from '../passages';
import type { Play, Seen } from '../performer';
import { everybodyAnd, type Figures, metric, type Scenario } from './scenario';

/** Callers of one key, who come back as soon as they have released it. */
interface Crowd {
  readonly processes: number;
  readonly callers: number;
  /** ms in the section */
  readonly work: number;
}

const metrics = [
  metric('rate', 'acquisitions', '/s'),
  metric('requests', 'requests for each'),
  metric('handOver', 'hand-over', 'µs'),
  metric('p999', 'wait, p99.9', 'ms'),
  metric('longest', 'longest wait', 'ms'),
  metric('unluckiest', 'turns of the unluckiest', '', false),
  metric('luckiest', 'turns of the luckiest', '', false),
  metric('evenness', 'unluckiest to luckiest', '', false),
  metric('inversions', 'overtaken, for each', '', false),
  metric('client', 'client CPU for each', 'µs'),
  metric('server', 'server CPU for each', 'µs'),
];

function play({ processes, callers, work }: Crowd, warmUp: number, window: number): Play {
  const settings = { callers, keys: 1, work, workJitter: 0, pause: 0 };
  return { orders: new Array(processes).fill({ load: 'callers', settings }), warmUp, window };
}

function figures({ processes, callers }: Crowd, { observations, requests, serverCpu, seconds }: Seen): Figures {
  const [sequence = []] = sequences(observations, callers, 1);
  const waited = waits(sequence, min(observations.map(({ end }) => end)));
  const turnsOfEach = turns(sequence, processes * callers);
  const entered = sum(turnsOfEach);
  const latencies = handOvers(sequence).sort((a, b) => a - b);
  return {
    rate: entered / seconds,
    requests: requests / entered,
    handOver: quantile(latencies, 0.5) * 1000,
    p999: quantile(waited, 0.999),
    longest: waited.at(-1) ?? Number.NaN,
    unluckiest: min(turnsOfEach),
    luckiest: max(turnsOfEach),
    evenness: min(turnsOfEach) / max(turnsOfEach),
    inversions: inversions(sequence) / entered,
    client: (sum(observations.map(({ cpu }) => cpu)) / entered) * 1000,
    server: (serverCpu / entered) * 1000,
    violations: intrusions(sequence) + sum(observations.map(({ violations }) => violations)),
  };
}

const hundred: Crowd = { processes: 1, callers: 100, work: 0 };

export const oneProcess: Scenario = {
  id: '3',
  number: 3,
  title: '100 callers on one key in one process, empty section',
  floor: 'floor-transfer',
  metrics,
  suits: everybodyAnd('floor-fifo', 'floor-transfer'),
  play: (isQuick) => (isQuick ? play(hundred, 800, 500) : play(hundred, 2_000, 1_500)),
  figures: (seen) => figures(hundred, seen),
};

function fourProcesses(id: string, title: string, work: number, window: number): Scenario {
  const crowd = { processes: 4, callers: 10, work };
  return {
    id,
    number: 4,
    isVariant: work === 0,
    title: `4 processes with 10 callers on one key, ${title}`,
    floor: 'floor-fifo',
    metrics,
    suits: everybodyAnd('floor-fifo'),
    play: (isQuick) => (isQuick ? play(crowd, 200, window / 4) : play(crowd, 1_000, window)),
    figures: (seen) => figures(crowd, seen),
  };
}

export const fourProcessesEmpty = fourProcesses('4a', 'empty section', 0, 1_800);
export const fourProcessesWorking = fourProcesses('4b', '5 ms of work', 5, 8_800);
