import { figure } from './report/format';
import type { Row, ScenarioResult } from './results';

/** One target of the project and the figure measured for it. */
export interface TargetResult {
  readonly scenario: string;
  readonly candidate: string;
  readonly target: string;
  /** NaN: not measured, or nothing to compare with. */
  readonly value: number;
  readonly isMet: boolean | undefined;
  /** Why the target was missed, as far as the same figures explain it. */
  readonly explanation: string | undefined;
}

interface Target {
  readonly scenario: string;
  readonly candidates: readonly string[];
  readonly text: string;
  value(row: Row, all: readonly Row[]): number;
  isMet(value: number): boolean;
  explain?(row: Row, all: readonly Row[]): string;
}

const OURS = ['spin', 'pub-sub', 'fair'];

const atMost = (limit: number) => (value: number) => value <= limit;
const atLeast = (limit: number) => (value: number) => value >= limit;
const below = (limit: number) => (value: number) => value < limit;

const medianOf = (metric: string) => (row: Row) => row.values[metric]?.median ?? Number.NaN;
const toFloor = (metric: string) => (row: Row) => row.ratios[metric]?.median ?? Number.NaN;

/** The median as a ratio to that of the best peer in Node, which has the `least` or the `greatest` median. */
function toBestPeer(metric: string, best: 'least' | 'greatest', isCompared = (_row: Row) => true) {
  return (row: Row, all: readonly Row[]) => {
    const peers = all.filter(
      (peer) =>
        (peer.kind === 'polling' || peer.kind === 'notified') && peer.language === undefined && isCompared(peer),
    );
    const figures = peers.map(medianOf(metric)).filter(Number.isFinite);
    if (figures.length === 0) return Number.NaN;
    return medianOf(metric)(row) / (best === 'least' ? Math.min(...figures) : Math.max(...figures));
  };
}

/** CPU time of an uncontended cycle, of the candidate and of the floor. */
function cpuTimes(row: Row, all: readonly Row[]): string {
  const floor = all.find(({ id }) => id === 'floor-evalsha');
  const [client, server] = ['client', 'server'].map((metric) => (of: Row) => figure(medianOf(metric)(of))) as [
    (of: Row) => string,
    (of: Row) => string,
  ];
  if (floor === undefined) return '';
  return `a cycle takes ${client(row)} µs of client CPU and ${server(row)} µs of server CPU; the floor takes ${client(floor)} and ${server(floor)} µs`;
}

const isPolling = ({ kind }: Row) => kind === 'polling';
const losesNone = ({ values }: Row) => values.lost?.greatest === 0;

const targets: readonly Target[] = [
  { scenario: '1', candidates: OURS, text: 'p50 at most 1.04 × the floor', value: toFloor('p50'), isMet: atMost(1.04) },
  {
    scenario: '2',
    candidates: ['spin', 'pub-sub'],
    text: 'at least 1.5 × the cycles of the floor with two EVALSHA',
    value: toFloor('rate'),
    isMet: atLeast(1.5),
    explain: cpuTimes,
  },
  {
    scenario: '2',
    candidates: ['fair'],
    text: 'at least 1.1 × the cycles of the floor with two EVALSHA',
    value: toFloor('rate'),
    isMet: atLeast(1.1),
    explain: cpuTimes,
  },
  {
    scenario: '2',
    candidates: OURS,
    text: 'at least 2.2 × the cycles of the best peer',
    value: toBestPeer('rate', 'greatest'),
    isMet: atLeast(2.2),
    explain: (row, all) => {
      const floor = all.find(({ id }) => id === 'floor-evalsha');
      const reach = floor && toBestPeer('rate', 'greatest')(floor, all);
      return `the floor with two EVALSHA reaches ${figure(reach ?? Number.NaN)} × the cycles of the best peer; ${cpuTimes(row, all)}`;
    },
  },
  {
    scenario: '3',
    candidates: ['pub-sub'],
    text: 'at least 0.95 × the acquisitions of the hand-over floor',
    value: toFloor('rate'),
    isMet: atLeast(0.95),
  },
  {
    scenario: '3',
    candidates: ['spin', 'fair'],
    text: 'at least 0.9 × the acquisitions of the hand-over floor',
    value: toFloor('rate'),
    isMet: atLeast(0.9),
  },
  {
    scenario: '3',
    candidates: ['pub-sub'],
    text: 'at most 1.1 requests for each acquisition',
    value: medianOf('requests'),
    isMet: atMost(1.1),
  },
  {
    scenario: '3',
    candidates: ['pub-sub'],
    text: 'no caller overtaken',
    value: (row) => row.values.overtaken?.greatest ?? Number.NaN,
    isMet: atMost(0),
  },
  {
    scenario: '3',
    candidates: ['pub-sub'],
    text: 'longest wait at most 0.1 × that of the best polling peer',
    value: toBestPeer('longest', 'least', isPolling),
    isMet: atMost(0.1),
  },
  {
    scenario: '4a',
    candidates: ['fair'],
    text: 'at least 0.9 × the acquisitions of the FIFO floor',
    value: toFloor('rate'),
    isMet: atLeast(0.9),
  },
  {
    scenario: '4a',
    candidates: ['fair'],
    text: 'at most 2.1 requests for each acquisition',
    value: medianOf('requests'),
    isMet: atMost(2.1),
  },
  {
    scenario: '4a',
    candidates: ['pub-sub'],
    text: 'least-served caller at least 0.85 × the most-served one',
    value: medianOf('evenness'),
    isMet: atLeast(0.85),
  },
  {
    scenario: '4b',
    candidates: ['fair'],
    text: 'least-served caller at least 0.9 × the most-served one',
    value: medianOf('evenness'),
    isMet: atLeast(0.9),
  },
  {
    scenario: '4b',
    candidates: ['fair'],
    text: 'p99.9 of the wait at most 0.1 × that of the best peer',
    value: toBestPeer('p999', 'least'),
    isMet: atMost(0.1),
    explain: (row, all) => {
      const best = medianOf('p999')(row) / toBestPeer('p999', 'least')(row, all);
      return `with 40 callers that work for 5 ms each, the mean wait is at least 195 ms in any order (Little's law), which is ${figure(195 / best)} × the p99.9 of the best peer`;
    },
  },
  {
    scenario: '4t',
    candidates: ['pub-sub', 'fair'],
    text: 'at least 0.95 × the acquisitions of the token',
    value: toFloor('rate'),
    isMet: atLeast(0.95),
  },
  {
    scenario: '4t',
    candidates: ['spin'],
    text: 'at least 0.75 × the acquisitions of the token',
    value: toFloor('rate'),
    isMet: atLeast(0.75),
  },
  {
    scenario: '4t',
    candidates: ['fair'],
    text: 'at most 2.2 requests for each acquisition',
    value: medianOf('requests'),
    isMet: atMost(2.2),
  },
  {
    scenario: '5',
    candidates: ['pub-sub', 'fair'],
    text: 'under 2 requests a second for the waiting process',
    value: medianOf('requests'),
    isMet: below(2),
  },
  {
    scenario: '5',
    candidates: ['pub-sub', 'fair'],
    text: 'at most 20 ms of client CPU a second for the waiting process',
    value: medianOf('client'),
    isMet: atMost(20),
  },
  {
    scenario: '6',
    candidates: OURS,
    text: 'at most 0.05 × the requests of the best peer that loses no lock',
    value: toBestPeer('requests', 'least', losesNone),
    isMet: atMost(0.05),
  },
  {
    scenario: '6',
    candidates: OURS,
    text: 'no lock lost',
    value: (row) => row.values.lost?.greatest ?? Number.NaN,
    isMet: atMost(0),
  },
  {
    scenario: '7',
    candidates: OURS,
    text: 'at most 600 B for an idle lock',
    value: medianOf('idle'),
    isMet: atMost(600),
  },
  {
    scenario: '7',
    candidates: OURS,
    text: 'at most 900 B for a held lock',
    value: medianOf('held'),
    isMet: atMost(900),
  },
  {
    scenario: '8',
    candidates: ['fair'],
    text: 'hand-over within 1.25 PINGs',
    value: medianOf('pings'),
    isMet: atMost(1.25),
  },
  {
    scenario: '8',
    candidates: ['pub-sub'],
    text: 'hand-over within 2.3 PINGs',
    value: medianOf('pings'),
    isMet: atMost(2.3),
  },
];

export function evaluateTargets({ scenario, rows }: ScenarioResult): TargetResult[] {
  return targets
    .filter((target) => target.scenario === scenario.id)
    .flatMap((target) =>
      rows
        .filter(({ id }) => target.candidates.includes(id))
        .map((row): TargetResult => {
          const value = target.value(row, rows);
          const isMet = Number.isNaN(value) ? undefined : target.isMet(value);
          const explanation = isMet === false ? target.explain?.(row, rows) : undefined;
          return { scenario: scenario.id, candidate: row.title, target: target.text, value, isMet, explanation };
        }),
    );
}
