import type { Metric } from './figures';
import { PERMITS } from './libraries';
import type { Callers, Cycles, LoadSpec } from './loads';

/** How the figures change with the size of something. Its scenarios share an id and differ in the size only. */
export interface Curve {
  readonly id: string;
  readonly title: string;
  /** What the sizes count; for the name of its picture too. */
  readonly unit: string;
  /** Powers of one number. */
  readonly sizes: readonly number[];
}

/** When what is measured. Times in ms. */
export interface Timing {
  /** At most. Some peers poll so seldom that they never acquire often enough. */
  readonly warmUp: number;
  /** Acquisitions of each process after which the warm-up ends; by default it takes all of its time. */
  readonly enough?: number;
  /** After the warm-up, at the pace of the measurement, for loads that warm up at a faster one. */
  readonly settling?: number;
  readonly window: number;
  /** Windows in a round. With more than one, all candidates run at the same time and are measured in alternation. */
  readonly slices?: number;
}

/** With --quick, code is not compiled fully. */
export function quickly({ warmUp, enough, window, slices }: Timing): Timing {
  const shorter = { warmUp: enough === undefined ? warmUp : Math.min(warmUp, 300) };
  return slices === undefined
    ? { ...shorter, window: window / 4 }
    : { ...shorter, window: window / 2, slices: slices / 2 };
}

/** What the project is to have: the median of a figure, or of its ratio to that of the floor or another candidate. */
export type Goal = readonly [candidates: readonly string[], Metric, '≤' | '≥', limit: number, to?: string];

export interface Scenario {
  /** A number, with a letter where there are variants. */
  readonly id: string;
  readonly title: string;
  /** Where it is on a curve, if it is. */
  readonly point?: { readonly curve: Curve; readonly size: number };
  /** Similar to another scenario, or long; left out with --quick unless it is named. */
  readonly isVariant?: boolean;
  /** The candidate whose figures those of all others are compared with. */
  readonly floor?: string;
  /** The others. */
  readonly candidates: readonly string[];
  readonly metrics: readonly Metric[];
  /** One process for each; they start one after the other. The figures are those of the last one. */
  readonly loads: readonly LoadSpec[];
  readonly timing: Timing;
  readonly ttl?: number;
  readonly hasReplica?: boolean;
  /** ms of network delay between candidate and server, in each direction. */
  readonly delay?: number;
  readonly goals?: readonly Goal[];
}

/** The id of a scenario; of a point of a curve, with the size: `9a 10000`. */
export const nameOf = ({ id, point }: Pick<Scenario, 'id' | 'point'>) =>
  point === undefined ? id : `${id} ${point.size}`;

/** Whether the option --scenario selects it: by its name, by its id, or by its number alone, which selects all variants. */
export function isNamed(scenario: Scenario, name: string): boolean {
  const { id } = scenario;
  return [nameOf(scenario), id, id.replace(/[a-z]$/, '')].includes(name);
}

const OURS = ['spin', 'pub-sub', 'fair'];
const SEVERAL_KEYS = [...OURS, 'redlock', 'sesame-redlock', 'redlock-universal'];
const LIBRARIES = [...SEVERAL_KEYS, 'redis-semaphore', 'verrou', 'simple-redis-mutex', 'node-redisson'];
const WELL_KNOWN = [...OURS, 'redlock', 'redis-semaphore'];

const CPU = ['client CPU for each, µs', 'server CPU for each, µs'] as const;
/** Where wall time is noisy, the CPU time is the figure that counts. */
const CYCLE = ['p50, µs', 'p99, µs', ...CPU] as const;
const SERVED = ['least-served caller', 'most-served caller'] as const;
const CONTENDED = [
  'acquisitions, /s',
  'requests for each',
  'hand-over, p50, µs',
  'wait, p99, ms',
  'wait, p99.9, ms',
  'longest wait, ms',
  'least / most served',
  ...SERVED,
  ...CPU,
] as const;

/*
 * Warm-ups: a service runs for hours, so its code is compiled. V8 compiles a function after some thousand runs. These are
 * the points after which the CPU time for each acquisition fell no further, of the candidate that took the longest.
 */
const ALTERNATING = { warmUp: 6_000, enough: 20_000, window: 100, slices: 12 };
/** Calls that go together run a function once for many of them. */
const MANY_CALLERS = { ...ALTERNATING, enough: 200_000 };
/** Four processes that share a CPU take about ten seconds for that. */
const FOUR_PROCESSES = { warmUp: 10_000, enough: 8_000, settling: 300 };
/** Locks none of which is fast: a run has no time for all that they would need. */
const SLOW_LOCKS = { ...FOUR_PROCESSES, warmUp: 5_000, window: 5_000 };
const WITHOUT_WINDOW = { warmUp: 0, window: 0 };

const cycles = (load: Omit<Cycles, 'load'>): LoadSpec[] => [{ load: 'cycles', ...load }];
const callers = (load: Omit<Callers, 'load'>, processes = 1): LoadSpec[] =>
  new Array(processes).fill({ load: 'callers', ...load });

/** The usual service: a releaser goes away and comes back later. */
const IN_SERVICE = { pause: 10, pauseJitter: 20 };

/** Four processes with ten callers on one key. */
const fourProcesses = (load: Omit<Callers, 'load' | 'callers'>, window: number) => ({
  candidates: ['floor-fifo', 'floor-token', 'floor-fair', 'fenced', 'released', ...LIBRARIES],
  metrics: CONTENDED,
  loads: callers({ callers: 10, ...load }, 4),
  timing: { ...FOUR_PROCESSES, window },
});

/** One scenario for each size of a curve. A short warm-up: there are many points, and what counts is how they compare. */
function pointsOf(
  {
    unit,
    sizes = [1, 10, 100, 1_000, 10_000],
    candidates = WELL_KNOWN,
    ...rest
  }: Pick<Scenario, 'id' | 'title' | 'floor' | 'metrics' | 'goals' | 'ttl'> &
    Pick<Curve, 'unit'> &
    Partial<Pick<Scenario, 'candidates'> & Pick<Curve, 'sizes'>>,
  loadsOf: (size: number) => LoadSpec[],
): Scenario[] {
  const curve: Curve = { id: rest.id, title: rest.title, unit, sizes };
  const isAlternating = loadsOf(1)[0]?.load === 'cycles';
  return sizes.map((size) => ({
    ...rest,
    title: `${rest.title}: ${size.toLocaleString('en')} ${unit}`,
    point: { curve, size },
    isVariant: true,
    candidates,
    loads: loadsOf(size),
    timing: isAlternating ? ALTERNATING : { ...FOUR_PROCESSES, warmUp: 3_000, window: 2_000 },
  }));
}
const HANDED_OVER = ['hand-over, p50, µs', 'hand-over, p99, µs', ...CPU] as const;

/** The locks of several keys, all or nothing. */
const severalAlone = (id: string, together: number, limit: number): Scenario => ({
  id,
  title: `${together} keys at a time, uncontended, one caller`,
  isVariant: together === 2,
  floor: 'floor-evalsha',
  candidates: SEVERAL_KEYS,
  metrics: ['requests for each', ...CYCLE],
  loads: cycles({ callers: 1, together }),
  timing: ALTERNATING,
  goals: [[OURS, 'p50, µs', '≤', limit, 'floor']],
});

/** In each of four processes. */
type SeveralOfMany = Required<Pick<Callers, 'together' | 'keys' | 'callers' | 'work'>>;

const severalContended = (id: string, load: SeveralOfMany, goals: readonly Goal[]): Scenario => ({
  id,
  title: `${load.together} of ${load.keys} keys at a time, 4 processes with ${load.callers} callers, ${load.work} ms of work`,
  isVariant: true,
  floor: 'floor-several',
  candidates: SEVERAL_KEYS,
  metrics: ['acquisitions, /s', 'requests for each', 'wait, p50, ms', 'wait, p99.9, ms', 'longest wait, ms', ...CPU],
  loads: callers(load, 4),
  timing: { ...SLOW_LOCKS, window: 3_500 },
  goals,
});

const FASTER_THAN_REDLOCK: readonly Goal[] = [
  [['spin'], 'acquisitions, /s', '≥', 1, 'redlock'],
  [['pub-sub', 'fair'], 'acquisitions, /s', '≥', 2, 'redlock'],
];

/** ms; redlock-universal does not work with much less. */
const RENEWED_TTL = 1_500;

const [READERS, WRITERS] = [8, 2];

export const scenarios: readonly Scenario[] = [
  {
    id: '1',
    title: 'Uncontended, one caller: lock and unlock',
    floor: 'floor',
    candidates: ['floor-evalsha', ...LIBRARIES, 'observed', 'floor-ioredis', 'spin-ioredis'],
    metrics: CYCLE,
    loads: cycles({ callers: 1 }),
    timing: ALTERNATING,
    goals: [[[...OURS, 'spin-ioredis'], 'p50, µs', '≤', 1.05, 'floor']],
  },
  {
    id: '2',
    title: 'Uncontended, 100 callers on 100 keys',
    floor: 'floor-evalsha',
    candidates: ['floor', ...LIBRARIES],
    metrics: ['cycles, /s', 'requests for each', ...CPU],
    loads: cycles({ callers: 100 }),
    timing: { ...MANY_CALLERS, window: 120 },
    goals: [
      [['spin', 'pub-sub'], 'cycles, /s', '≥', 1.2, 'floor'],
      [['fair'], 'cycles, /s', '≥', 1, 'floor'],
      [['spin', 'pub-sub'], 'client CPU for each, µs', '≤', 4],
      [['fair'], 'client CPU for each, µs', '≤', 5],
    ],
  },
  {
    id: '3',
    title: '100 callers on one key in one process, empty section',
    floor: 'floor-hand-over',
    candidates: ['floor-fifo', 'floor-fair', 'async-mutex', 'fenced', 'released', ...LIBRARIES],
    metrics: CONTENDED,
    loads: callers({ callers: 100, work: 0 }),
    // The longest slice of `spin` and the pause after it, so that each window has one pause.
    timing: { warmUp: 5_000, enough: 25_000, window: 1_710 },
    goals: [
      [OURS, 'acquisitions, /s', '≥', 25, 'floor'],
      [OURS, 'acquisitions, /s', '≥', 0.5, 'async-mutex'],
      [['fenced'], 'acquisitions, /s', '≥', 0.5, 'spin'],
      [OURS, 'requests for each', '≤', 0.01],
      [OURS, 'longest wait, ms', '≤', 10],
    ],
  },
  {
    id: '4a',
    title: '4 processes with 10 callers on one key, empty section',
    isVariant: true,
    floor: 'floor-fifo',
    ...fourProcesses({ work: 0 }, 1_800),
    goals: [
      [['spin', 'pub-sub'], 'acquisitions, /s', '≥', 10, 'floor'],
      [['fair'], 'acquisitions, /s', '≥', 0.8, 'floor-fair'],
    ],
  },
  {
    id: '4b',
    title: '4 processes with 10 callers on one key, 5 ms of work',
    floor: 'floor-fifo',
    ...fourProcesses({ work: 5 }, 5_000),
    goals: [[['spin'], 'longest wait, ms', '≤', 1_000]],
  },
  {
    id: '4t',
    title: '4 processes with 10 callers on one key, 1 ms of work, 10 to 30 ms until the next request',
    floor: 'floor-token',
    ...fourProcesses({ work: 1, ...IN_SERVICE }, 3_000),
    goals: [
      [['pub-sub', 'fair'], 'acquisitions, /s', '≥', 0.95, 'floor'],
      [['spin'], 'acquisitions, /s', '≥', 0.8, 'floor'],
      [['pub-sub', 'fair'], 'wait, p99, ms', '≤', 60],
      [['spin'], 'wait, p99, ms', '≤', 200],
    ],
  },
  {
    id: '5',
    title: '1,000 waiters on a held key',
    candidates: ['floor-fifo', ...LIBRARIES],
    metrics: ['requests, /s', 'client CPU, ms/s', 'server CPU, ms/s'],
    loads: [{ load: 'leases', keys: 1, isRenewed: false }, ...callers({ callers: 1_000, work: 0 })],
    timing: { warmUp: 1_000, window: 3_000 },
    goals: [[['pub-sub', 'fair'], 'requests, /s', '≤', 2]],
  },
  {
    id: '6',
    title: `1,000 held locks with a ttl of ${RENEWED_TTL / 1000} s that the library renews`,
    floor: 'floor',
    candidates: LIBRARIES,
    metrics: ['requests, /s', 'client CPU, ms/s', 'server CPU, ms/s', 'locks lost'],
    loads: [{ load: 'leases', keys: 1_000, isRenewed: true }],
    // In the warm-up every lock is renewed once.
    timing: { warmUp: RENEWED_TTL, window: 3 * RENEWED_TTL },
    ttl: RENEWED_TTL,
    goals: [[OURS, 'locks lost', '≤', 0]],
  },
  {
    id: '7',
    title: 'Heap for each idle lock, held lock and waiter',
    floor: 'floor-fifo',
    candidates: LIBRARIES,
    metrics: ['idle, B', 'held, B', 'waiter, B'],
    loads: [{ load: 'heap', locks: 20_000, waiters: 2_000 }],
    timing: WITHOUT_WINDOW,
    goals: [
      [OURS, 'idle, B', '≤', 160],
      [OURS, 'held, B', '≤', 730],
      [OURS, 'waiter, B', '≤', 1_600],
    ],
  },
  {
    // Every hand-over goes to the other process, which has one caller for each key too.
    id: '8',
    title: 'Hand-over between two processes, Redis 10 ms away',
    candidates: ['floor-fifo', ...LIBRARIES],
    metrics: ['hand-over in PINGs', 'hand-over, ms', 'PING, ms'],
    loads: callers({ callers: 20, keys: 20, work: 500, workJitter: 250, pause: 350 }, 2),
    timing: { warmUp: 1_000, settling: 1_000, window: 3_500 },
    delay: 10,
    goals: [
      [['fair'], 'hand-over in PINGs', '≤', 1.25],
      [['pub-sub'], 'hand-over in PINGs', '≤', 2.3],
    ],
  },
  ...pointsOf(
    {
      id: '9a',
      title: 'One caller that locks and unlocks many keys in turn',
      unit: 'keys',
      floor: 'floor-evalsha',
      metrics: CYCLE,
      goals: [
        [OURS, 'p50, µs', '≤', 1.05, 'floor'],
        [OURS, 'p99, µs', '≤', 1.2, 'floor'],
        [OURS, 'client CPU for each, µs', '≤', 110],
      ],
    },
    (keysEach) => cycles({ callers: 1, keysEach }),
  ),
  ...pointsOf(
    {
      id: '9b',
      title: 'Callers that lock and unlock a key each, at the same time, in one process',
      unit: 'callers',
      floor: 'floor-evalsha',
      metrics: CYCLE,
    },
    (count) => cycles({ callers: count }),
  ),
  ...pointsOf(
    {
      id: '9c',
      title: 'One key that is handed over, waiters in one process, empty section',
      unit: 'waiters',
      floor: 'floor-hand-over',
      metrics: HANDED_OVER,
    },
    (waiters) => callers({ callers: waiters + 1, work: 0 }),
  ),
  ...pointsOf(
    {
      id: '9d',
      title: 'One key that is handed over, processes with 10 callers each, 1 ms of work',
      unit: 'processes',
      sizes: [1, 2, 4, 8, 16],
      floor: 'floor-token',
      metrics: HANDED_OVER,
    },
    (processes) => callers({ callers: 10, work: 1 }, processes),
  ),
  ...pointsOf(
    {
      id: '9e',
      title: 'A semaphore with one permit more than it has holders, one caller that locks and unlocks',
      unit: 'holders',
      candidates: ['semaphore', 'redis-semaphore-semaphore'],
      metrics: CYCLE,
      // Nothing is renewed meanwhile.
      ttl: 300_000,
    },
    (holders) => cycles({ callers: 1, holders }),
  ),
  {
    id: '10',
    title: 'Uncontended, 20 callers on 20 keys, on a master with one replica',
    isVariant: true,
    floor: 'floor-wait',
    candidates: ['floor-evalsha', 'spin', 'replicated'],
    metrics: ['cycles, /s', ...CYCLE],
    loads: cycles({ callers: 20 }),
    timing: { ...MANY_CALLERS, window: 150 },
    hasReplica: true,
  },
  {
    id: '11',
    title: `A semaphore with ${PERMITS} permits: 4 processes with 10 callers, 5 ms of work`,
    candidates: ['semaphore', 'redis-semaphore-semaphore', 'redis-semaphore-multisemaphore'],
    metrics: ['acquisitions, /s', 'requests for each', 'wait, p50, ms', 'wait, p99.9, ms', ...SERVED, ...CPU],
    loads: callers({ callers: 10, work: 5, permits: PERMITS }, 4),
    timing: SLOW_LOCKS,
    goals: [
      [['semaphore'], 'acquisitions, /s', '≥', 700],
      [['semaphore'], 'wait, p99.9, ms', '≤', 90],
      [['semaphore'], 'requests for each', '≤', 1.5],
    ],
  },
  severalAlone('12a', 2, 1.1),
  severalAlone('12b', 5, 1.2),
  severalContended('12c', { together: 2, keys: 20, callers: 10, work: 5 }, []),
  severalContended('12d', { together: 5, keys: 20, callers: 10, work: 5 }, FASTER_THAN_REDLOCK),
  severalContended('12e', { together: 3, keys: 8, callers: 5, work: 1 }, FASTER_THAN_REDLOCK),
  {
    id: '13',
    title: `A read/write lock: 4 processes with ${READERS} readers and ${WRITERS} writers, 5 ms of work, 10 to 30 ms until the next request`,
    isVariant: true,
    candidates: ['read-write'],
    metrics: [
      ...([
        'reads, /s',
        'writes, /s',
        'requests for each',
        'wait of readers, p50, ms',
        'wait of readers, p99.9, ms',
      ] as const),
      ...(['wait of writers, p50, ms', 'wait of writers, p99.9, ms', ...CPU] as const),
    ],
    loads: callers(
      // A writer takes as much as all callers together would as readers.
      { callers: READERS + WRITERS, readers: READERS, permits: 4 * (READERS + WRITERS), ...IN_SERVICE, work: 5 },
      4,
    ),
    timing: SLOW_LOCKS,
    goals: [
      [['read-write'], 'reads, /s', '≥', 800],
      [['read-write'], 'writes, /s', '≥', 80],
      [['read-write'], 'requests for each', '≤', 0.5],
      [['read-write'], 'wait of readers, p99.9, ms', '≤', 100],
      [['read-write'], 'wait of writers, p99.9, ms', '≤', 120],
    ],
  },
  {
    id: '14',
    title: '100,000 held locks whose loss somebody listens for, acquired in batches of 1,000',
    isVariant: true,
    floor: 'floor-evalsha',
    candidates: WELL_KNOWN,
    metrics: ['heap, B', 'time, µs'],
    loads: [{ load: 'listened', locks: 100_000 }],
    timing: WITHOUT_WINDOW,
    ttl: 300_000,
    goals: [
      [OURS, 'heap, B', '≤', 1_200],
      [OURS, 'time, µs', '≤', 1.6, 'floor'],
    ],
  },
  {
    id: '15',
    title: 'once: 4 processes with 100 callers want the result of a task of 50 ms; redlock with a result key by hand',
    isVariant: true,
    candidates: [...OURS, 'redlock'],
    metrics: ['requests for each', ...CYCLE],
    loads: Array(4).fill({ load: 'once', callers: 100, work: 50, period: 2_000 }),
    timing: { warmUp: 6_000, window: 12_000 },
  },
];
