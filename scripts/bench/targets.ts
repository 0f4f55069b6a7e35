import { figure } from './report/format';
import type { Row, ScenarioResult } from './results';

/** What the project wants of itself, and what was measured. */
export interface Verdict {
  readonly scenario: string;
  readonly candidate: string;
  readonly target: string;
  /** NaN: what it is compared with was not measured. */
  readonly value: number;
  readonly isMet: boolean | undefined;
  /** Of a target that was missed: what the same measurements say of why. */
  readonly why: string | undefined;
}

interface Target {
  readonly scenario: string;
  readonly candidates: readonly string[];
  readonly text: string;
  value(row: Row, all: readonly Row[]): number;
  holds(value: number): boolean;
  why?(row: Row, all: readonly Row[]): string;
}

const OURS = ['spin', 'pub-sub', 'fair'];

const atMost = (limit: number) => (value: number) => value <= limit;
const atLeast = (limit: number) => (value: number) => value >= limit;
const below = (limit: number) => (value: number) => value < limit;

const medianOf = (metric: string) => (row: Row) => row.values[metric]?.median ?? Number.NaN;
const toFloor = (metric: string) => (row: Row) => row.ratios[metric]?.median ?? Number.NaN;

/** The median as a ratio to the best peer's: the least of those that `may` be compared with, or the greatest. */
function toBestPeer(metric: string, best: 'least' | 'greatest', may = (_row: Row) => true) {
  return (row: Row, all: readonly Row[]) => {
    const peers = all.filter((peer) => (peer.kind === 'polling' || peer.kind === 'notified') && may(peer));
    const figures = peers.map(medianOf(metric)).filter(Number.isFinite);
    if (figures.length === 0) return Number.NaN;
    return medianOf(metric)(row) / (best === 'least' ? Math.min(...figures) : Math.max(...figures));
  };
}

/** Where the time of an uncontended cycle goes. */
function costs(row: Row, all: readonly Row[]): string {
  const floor = all.find(({ id }) => id === 'floor-evalsha');
  const [client, server] = ['client', 'server'].map((metric) => (of: Row) => figure(medianOf(metric)(of))) as [
    (of: Row) => string,
    (of: Row) => string,
  ];
  if (floor === undefined) return '';
  return `a cycle takes ${client(row)} µs of the client and ${server(row)} µs of the server, the floor's ${client(floor)} and ${server(floor)} µs`;
}

const isPolling = ({ kind }: Row) => kind === 'polling';
const losesNone = ({ values }: Row) => values.lost?.greatest === 0;

const targets: readonly Target[] = [
  { scenario: '1', candidates: OURS, text: 'p50 at most 1.10 × the floor', value: toFloor('p50'), holds: atMost(1.1) },
  {
    scenario: '2',
    candidates: OURS,
    text: 'at least 0.85 × the cycles of the floor with two EVALSHA',
    value: toFloor('rate'),
    holds: atLeast(0.85),
    why: costs,
  },
  {
    scenario: '2',
    candidates: OURS,
    text: 'at least 1.5 × the cycles of the best peer',
    value: toBestPeer('rate', 'greatest'),
    holds: atLeast(1.5),
    why: (row, all) => {
      const floor = all.find(({ id }) => id === 'floor-evalsha');
      const reach = floor && toBestPeer('rate', 'greatest')(floor, all);
      return `the floor with two EVALSHA, which is no library, makes ${figure(reach ?? Number.NaN)} × the cycles of the best peer; ${costs(row, all)}`;
    },
  },
  {
    scenario: '3',
    candidates: ['pub-sub'],
    text: 'at least 0.8 × the acquisitions of the transfer floor',
    value: toFloor('rate'),
    holds: atLeast(0.8),
  },
  {
    scenario: '3',
    candidates: ['pub-sub'],
    text: 'at most 1.1 requests for each acquisition',
    value: medianOf('requests'),
    holds: atMost(1.1),
  },
  {
    scenario: '3',
    candidates: ['pub-sub'],
    text: 'nobody overtaken',
    value: (row) => row.values.inversions?.greatest ?? Number.NaN,
    holds: atMost(0),
  },
  {
    scenario: '3',
    candidates: ['pub-sub'],
    text: 'longest wait at most 0.1 × that of the best polling peer',
    value: toBestPeer('longest', 'least', isPolling),
    holds: atMost(0.1),
  },
  {
    scenario: '4b',
    candidates: ['fair'],
    text: 'turns of the unluckiest at least 0.9 × those of the luckiest',
    value: medianOf('evenness'),
    holds: atLeast(0.9),
  },
  {
    scenario: '4b',
    candidates: ['fair'],
    text: 'p99.9 of the wait at most 0.1 × that of the best peer',
    value: toBestPeer('p999', 'least'),
    holds: atMost(0.1),
    why: (row, all) => {
      const best = medianOf('p999')(row) / toBestPeer('p999', 'least')(row, all);
      return `of 40 callers who each work for 5 ms, the mean wait is 195 ms at least, in whatever order they come (Little's law): that is ${figure(195 / best)} × the best peer's p99.9 already`;
    },
  },
  {
    scenario: '5',
    candidates: ['pub-sub', 'fair'],
    text: 'under 2 requests a second for the process that waits',
    value: medianOf('requests'),
    holds: below(2),
  },
  {
    scenario: '6',
    candidates: OURS,
    text: 'at most 0.05 × the requests of the best peer that loses none',
    value: toBestPeer('requests', 'least', losesNone),
    holds: atMost(0.05),
  },
  {
    scenario: '6',
    candidates: OURS,
    text: 'no lock lost',
    value: (row) => row.values.lost?.greatest ?? Number.NaN,
    holds: atMost(0),
  },
  {
    scenario: '7',
    candidates: OURS,
    text: 'at most 600 B for an idle lock',
    value: medianOf('idle'),
    holds: atMost(600),
  },
  {
    scenario: '7',
    candidates: OURS,
    text: 'at most 2,000 B for a held lock',
    value: medianOf('held'),
    holds: atMost(2_000),
  },
  {
    scenario: '8',
    candidates: ['fair'],
    text: 'hand-over within 1.25 PINGs',
    value: medianOf('pings'),
    holds: atMost(1.25),
  },
  {
    scenario: '8',
    candidates: ['pub-sub'],
    text: 'hand-over within 2.3 PINGs',
    value: medianOf('pings'),
    holds: atMost(2.3),
  },
];

export function judge({ scenario, rows }: ScenarioResult): Verdict[] {
  return targets
    .filter((target) => target.scenario === scenario.id)
    .flatMap((target) =>
      rows
        .filter(({ id }) => target.candidates.includes(id))
        .map((row): Verdict => {
          const value = target.value(row, rows);
          const isMet = Number.isNaN(value) ? undefined : target.holds(value);
          const why = isMet === false ? target.why?.(row, rows) : undefined;
          return { scenario: scenario.id, candidate: row.title, target: target.text, value, isMet, why };
        }),
    );
}
