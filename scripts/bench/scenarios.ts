import { PERMITS } from './libraries';
import type { CallersSettings, CyclesSettings, LoadSpec } from './loads';

export interface Metric {
  readonly id: string;
  readonly title: string;
  readonly unit: string;
  /** Whether the figure is also shown as a ratio to the floor. */
  readonly hasRatio: boolean;
}

/** How the figures change with the size of something. Its scenarios differ in the size only. */
export interface Curve {
  readonly id: string;
  readonly title: string;
  /** What the sizes count; for the name of its picture too. */
  readonly unit: string;
  /** Powers of one number. */
  readonly sizes: readonly number[];
}

/** When what is measured. */
export interface Timing {
  /** ms of warm-up, at most. Some peers poll so seldom that they never acquire often enough. */
  readonly longest: number;
  /** Acquisitions of each process after which the warm-up ends; by default it takes all of its time. */
  readonly enough?: number;
  /** ms after it at the pace of the measurement, for loads that warm up at a faster one. */
  readonly settling?: number;
  /** ms */
  readonly window: number;
  /** Windows in a round. With more than one, all candidates run at the same time and are measured in alternation. */
  readonly slices?: number;
}

export interface Scenario {
  /** A number, with a letter where there are variants. */
  readonly id: string;
  readonly title: string;
  /** Where it is on a curve, if it is. */
  readonly point?: { readonly curve: Curve; readonly size: number };
  /** Similar to another scenario, or long; left out with --quick unless it is named. */
  readonly isVariant?: boolean;
  /** The candidate whose figures all others are compared with. */
  readonly floor?: string;
  readonly candidates: readonly string[];
  readonly metrics: readonly Metric[];
  /** One process for each; they start one after the other. */
  readonly loads: readonly LoadSpec[];
  readonly full: Timing;
  readonly quick: Timing;
  readonly ttl?: number;
  /** ms of the warm-up in which MONITOR attributes commands to clients or scripts; MONITOR slows everything down. */
  readonly monitoring?: number;
  readonly hasReplica?: boolean;
  /** ms of network delay between candidate and server, in each direction. */
  readonly delay?: number;
}

/** Whether the option --scenario selects it: by its id, or by its number alone, which selects all variants. */
export function isNamed({ id }: Scenario, name: string): boolean {
  return id === name || id.replace(/[a-z]$/, '') === name;
}

const metric = (id: string, title: string, unit = '', hasRatio = true): Metric => ({ id, title, unit, hasRatio });

const RATE = metric('rate', 'acquisitions', '/s');
const REQUESTS = metric('requests', 'requests for each');
const CPU = [metric('client', 'client CPU for each', 'µs'), metric('server', 'server CPU for each', 'µs')];
const HAND_OVER = metric('handOver', 'hand-over', 'µs');
const LONGEST = metric('longest', 'longest wait', 'ms');
const SERVED = [metric('fewest', 'least-served caller', '', false), metric('most', 'most-served caller', '', false)];
/** Where wall time is noisy, the CPU time is the figure that counts. */
const CYCLE = [metric('p50', 'p50', 'µs'), metric('p99', 'p99', 'µs'), ...CPU];
const CYCLES = metric('rate', 'cycles', '/s');
const EVENNESS = metric('evenness', 'least / most served', '', false);
const waits = (p: 50 | 99 | 999, whose = '') =>
  metric(`${whose && `${whose} `}wait${p}`, `wait${whose && ` of ${whose}s`}, p${p === 999 ? '99.9' : p}`, 'ms');
const CONTENDED = [RATE, REQUESTS, HAND_OVER, waits(99), waits(999), LONGEST, EVENNESS, ...SERVED, ...CPU];
const HANDED_OVER = [metric('handOver', 'hand-over, p50', 'µs'), metric('handOver99', 'hand-over, p99', 'µs'), ...CPU];
/** Of what happens all the time, without cycles. */
const perSecond = (hasRatio: boolean) => [
  metric('requests', 'requests', '/s', hasRatio),
  metric('client', 'client CPU', 'ms/s', hasRatio),
  metric('server', 'server CPU', 'ms/s', hasRatio),
];

const OURS = ['spin', 'pub-sub', 'fair'];
const SEVERAL_KEYS = [...OURS, 'redlock', 'sesame-redlock', 'redlock-universal'];
const LIBRARIES = [...SEVERAL_KEYS, 'redis-semaphore', 'verrou', 'simple-redis-mutex', 'node-redisson'];

/** The candidates of a scenario with a floor. */
const versus = (floor: string, ...others: string[]) => ({ floor, candidates: [floor, ...others] });

/*
 * Warm-ups of full runs: a service runs for hours, so its code is compiled. V8 compiles a function after some thousand
 * runs. These are the points after which the CPU time for each acquisition fell no further, of the candidate that took
 * the longest. With --quick, code is not compiled fully.
 */
const ONE_CALLER = { longest: 4_000, enough: 20_000 };
/** Calls that go together run a function once for many of them. */
const MANY_CALLERS = { longest: 4_000, enough: 200_000 };
/** Four processes that share a CPU take about ten seconds for that. */
const FOUR_PROCESSES = { longest: 10_000, enough: 8_000, settling: 300 };
/** Loads of locks none of which is fast: a full run has no time for all that they would need. */
const slowLocks = (window: number) => ({
  full: { ...FOUR_PROCESSES, longest: 5_000, window },
  quick: { longest: 200, window: 800 },
});
const IN_ALTERNATION = {
  full: { ...ONE_CALLER, window: 100, slices: 12 },
  quick: { longest: 400, window: 50, slices: 6 },
};
const WITHOUT_WINDOW = { full: { longest: 0, window: 0 }, quick: { longest: 0, window: 0 } };

const times = (count: number, load: LoadSpec): LoadSpec[] => new Array(count).fill(load);
const cycles = (settings: CyclesSettings): LoadSpec[] => [{ load: 'cycles', settings }];
const callers = (settings: CallersSettings, processes = 1) => times(processes, { load: 'callers', settings });

/** The usual service: a releaser goes away and comes back later. */
const IN_SERVICE = { pause: 10, pauseJitter: 20 };

/** Four processes with ten callers on one key. */
const fourProcesses = (settings: { work: number; pause?: number; pauseJitter?: number }, window: number) => ({
  candidates: ['floor-fifo', 'floor-token', 'floor-fair', ...LIBRARIES],
  metrics: CONTENDED,
  loads: callers({ callers: 10, ...settings }, 4),
  full: { ...FOUR_PROCESSES, window },
  quick: { longest: 200, window: window / 5 },
});

/** One scenario for each size of a curve: ours, and the two peers in Node that are used most. */
function pointsOf(
  id: string,
  unit: string,
  title: string,
  of: (size: number) => Pick<Scenario, 'metrics' | 'loads' | 'full' | 'quick'> & { readonly floor: string },
  sizes: readonly number[] = [1, 10, 100, 1_000, 10_000],
): Scenario[] {
  const curve = { id, title, unit, sizes };
  return sizes.map((size) => ({
    id,
    isVariant: true,
    title: `${title}: ${size.toLocaleString('en')} ${unit}`,
    point: { curve, size },
    ...of(size),
    ...versus(of(size).floor, ...OURS, 'redlock', 'redis-semaphore'),
  }));
}

/** Each caller with keys of its own. */
function cycling(floor: string, settings: CyclesSettings) {
  return { floor, metrics: CYCLE, loads: cycles(settings), ...IN_ALTERNATION };
}

/** Callers of one key that is handed over. A short warm-up: there are many points, and what counts is how they compare. */
function handedOver(floor: string, settings: CallersSettings, processes: number) {
  const full = { ...FOUR_PROCESSES, longest: 3_000, window: 2_000 };
  const quick = { longest: 300, window: 600 };
  return { floor, metrics: HANDED_OVER, loads: callers(settings, processes), full, quick };
}

const several = (together: number, alone: string, contended: string): Scenario[] => [
  {
    id: alone,
    isVariant: together === 2,
    title: `${together} keys at a time, uncontended, one caller`,
    ...versus('floor-evalsha', ...SEVERAL_KEYS),
    metrics: [REQUESTS, ...CYCLE],
    loads: cycles({ callers: 1, together }),
    ...IN_ALTERNATION,
  },
  {
    id: contended,
    isVariant: true,
    title: `${together} of 20 keys at a time, 4 processes with 10 callers, 5 ms of work`,
    candidates: SEVERAL_KEYS,
    metrics: [RATE, REQUESTS, waits(50), waits(999), LONGEST, ...CPU],
    loads: callers({ callers: 10, keys: 20, together, work: 5 }, 4),
    ...slowLocks(3_500),
  },
];

/** ms; redlock-universal does not work with much less. */
const RENEWED_TTL = 1_500;

const READERS = 8;
const WRITERS = 2;
/** A writer takes as much as all callers together would as readers. */
const ALL = 4 * (READERS + WRITERS);

/** The scenarios of one curve share an id. */
export const scenarios: readonly Scenario[] = [
  {
    id: '1',
    title: 'Uncontended, one caller: lock and unlock',
    candidates: ['floor', 'floor-evalsha', ...LIBRARIES, 'observed', 'floor-ioredis', 'spin-ioredis'],
    ...cycling('floor', { callers: 1 }),
  },
  {
    id: '2',
    title: 'Uncontended, 100 callers on 100 keys',
    ...versus('floor-evalsha', 'floor', ...LIBRARIES),
    metrics: [CYCLES, REQUESTS, ...CPU],
    loads: cycles({ callers: 100 }),
    full: { ...MANY_CALLERS, window: 120, slices: 12 },
    quick: { longest: 400, window: 60, slices: 6 },
  },
  {
    id: '3',
    title: '100 callers on one key in one process, empty section',
    ...versus('floor-hand-over', 'floor-fifo', 'floor-fair', 'async-mutex', ...LIBRARIES),
    metrics: CONTENDED,
    loads: callers({ callers: 100, work: 0 }),
    // The longest slice of `spin` and the pause after it, so that each window has one pause.
    full: { longest: 5_000, enough: 25_000, window: 1_710 },
    quick: { longest: 300, window: 300 },
  },
  {
    id: '4a',
    isVariant: true,
    title: '4 processes with 10 callers on one key, empty section',
    floor: 'floor-fifo',
    ...fourProcesses({ work: 0 }, 1_800),
  },
  {
    id: '4b',
    title: '4 processes with 10 callers on one key, 5 ms of work',
    floor: 'floor-fifo',
    ...fourProcesses({ work: 5 }, 5_000),
  },
  {
    id: '4t',
    title: '4 processes with 10 callers on one key, 1 ms of work, 10 to 30 ms until the next request',
    floor: 'floor-token',
    ...fourProcesses({ work: 1, ...IN_SERVICE }, 3_000),
  },
  {
    id: '5',
    title: '1,000 waiters on a held key',
    ...versus('floor-fifo', ...LIBRARIES),
    metrics: perSecond(false),
    // The figures are those of the waiters: they are in another process than the holder.
    loads: [
      { load: 'holder', settings: undefined },
      { load: 'waiters', settings: { callers: 1_000 } },
    ],
    full: { longest: 1_000, window: 3_000 },
    quick: { longest: 200, window: 400 },
  },
  {
    id: '6',
    title: `1,000 held locks with a ttl of ${RENEWED_TTL / 1000} s that the library renews`,
    ...versus('floor', ...LIBRARIES),
    metrics: [...perSecond(true), metric('lost', 'locks lost', '', false)],
    loads: [{ load: 'leases', settings: { keys: 1_000 } }],
    // Every lock is renewed once, so that MONITOR sees the commands of a renewal.
    monitoring: RENEWED_TTL,
    full: { longest: RENEWED_TTL, window: 3 * RENEWED_TTL },
    quick: { longest: RENEWED_TTL, window: RENEWED_TTL / 2 },
    ttl: RENEWED_TTL,
  },
  {
    id: '7',
    title: 'Heap for each idle lock, held lock and waiter',
    ...versus('floor-fifo', ...LIBRARIES),
    metrics: [metric('idle', 'idle', 'B'), metric('held', 'held', 'B'), metric('waiting', 'waiter', 'B')],
    loads: [{ load: 'heap', settings: { locks: 2_000 } }],
    ...WITHOUT_WINDOW,
  },
  {
    // Every hand-over goes to the other process, which has one caller for each key too.
    id: '8',
    title: 'Hand-over between two processes, Redis 10 ms away',
    candidates: ['floor-fifo', ...LIBRARIES],
    metrics: [
      metric('pings', 'hand-over in PINGs', '', false),
      metric('handOverMs', 'hand-over', 'ms', false),
      metric('ping', 'PING', 'ms', false),
    ],
    loads: callers({ callers: 20, keys: 20, work: 500, workJitter: 250, pause: 350 }, 2),
    full: { longest: 1_000, settling: 1_000, window: 3_500 },
    quick: { longest: 200, window: 1_500 },
    delay: 10,
  },
  ...pointsOf('9a', 'keys', 'One caller that locks and unlocks many keys in turn', (keysEach) =>
    cycling('floor-evalsha', { callers: 1, keysEach }),
  ),
  ...pointsOf('9b', 'callers', 'Callers that lock and unlock a key each, at the same time, in one process', (count) =>
    cycling('floor-evalsha', { callers: count }),
  ),
  ...pointsOf('9c', 'waiters', 'One key that is handed over, waiters in one process, empty section', (waiters) =>
    handedOver('floor-hand-over', { callers: waiters + 1, work: 0 }, 1),
  ),
  ...pointsOf(
    '9d',
    'processes',
    'One key that is handed over, processes with 10 callers each, 1 ms of work',
    (processes) => handedOver('floor-token', { callers: 10, work: 1 }, processes),
    [1, 2, 4, 8, 16],
  ),
  {
    id: '10',
    isVariant: true,
    title: 'Uncontended, 20 callers on 20 keys, on a master with one replica',
    ...versus('floor-wait', 'floor-evalsha', 'spin', 'replicated'),
    metrics: [CYCLES, ...CYCLE],
    loads: cycles({ callers: 20 }),
    full: { ...MANY_CALLERS, window: 150, slices: 12 },
    quick: { longest: 400, window: 100, slices: 3 },
    hasReplica: true,
  },
  {
    id: '11',
    title: `A semaphore with ${PERMITS} permits: 4 processes with 10 callers, 5 ms of work`,
    candidates: ['semaphore', 'redis-semaphore-semaphore', 'redis-semaphore-multisemaphore'],
    metrics: [RATE, REQUESTS, waits(50), waits(999), ...SERVED, ...CPU],
    loads: callers({ callers: 10, work: 5, permits: PERMITS }, 4),
    ...slowLocks(5_000),
  },
  ...several(2, '12a', '12c'),
  ...several(5, '12b', '12d'),
  {
    id: '13',
    isVariant: true,
    title: `A read/write lock: 4 processes with ${READERS} readers and ${WRITERS} writers, 5 ms of work, 10 to 30 ms until the next request`,
    candidates: ['read-write'],
    metrics: [
      metric('reads', 'reads', '/s'),
      metric('writes', 'writes', '/s'),
      REQUESTS,
      ...(['reader', 'writer'] as const).flatMap((whose) => [waits(50, whose), waits(999, whose)]),
      ...CPU,
    ],
    loads: callers({ callers: READERS + WRITERS, readers: READERS, permits: ALL, ...IN_SERVICE, work: 5 }, 4),
    ...slowLocks(5_000),
  },
  {
    id: '14',
    isVariant: true,
    title: '100,000 held locks whose loss somebody listens for, acquired in batches of 1,000',
    ...versus('floor-evalsha', ...OURS, 'redlock', 'redis-semaphore'),
    metrics: [metric('held', 'heap', 'B'), metric('time', 'time', 'µs')],
    loads: [{ load: 'listened', settings: { locks: 100_000 } }],
    ...WITHOUT_WINDOW,
    ttl: 300_000,
  },
];

/** A figure that the project is to have, as a median of all rounds. */
export interface Goal {
  readonly scenario: string;
  readonly candidates: readonly string[];
  readonly metric: string;
  /** In place of the figure: its ratio to that of the floor, or of another candidate. */
  readonly to?: 'floor' | string;
  readonly atLeast?: number;
  readonly atMost?: number;
}

const goal = (
  scenario: string,
  candidates: readonly string[],
  metric: string,
  rest: Omit<Goal, 'scenario' | 'candidates' | 'metric'>,
) => ({ scenario, candidates, metric, ...rest });

export const GOALS: readonly Goal[] = [
  goal('1', [...OURS, 'spin-ioredis'], 'p50', { to: 'floor', atMost: 1.05 }),
  goal('2', ['spin'], 'rate', { to: 'floor', atLeast: 1.5 }),
  goal('2', ['pub-sub'], 'rate', { to: 'floor', atLeast: 1.7 }),
  goal('2', ['fair'], 'rate', { to: 'floor', atLeast: 1.2 }),
  goal('2', ['spin', 'pub-sub'], 'client', { atMost: 5 }),
  goal('2', ['fair'], 'client', { atMost: 6.5 }),
  goal('3', OURS, 'rate', { to: 'floor', atLeast: 25 }),
  goal('3', OURS, 'rate', { to: 'async-mutex', atLeast: 0.5 }),
  goal('3', OURS, 'requests', { atMost: 0.01 }),
  goal('3', OURS, 'longest', { atMost: 10 }),
  goal('4a', ['spin', 'pub-sub'], 'rate', { to: 'floor', atLeast: 10 }),
  goal('4a', ['fair'], 'rate', { to: 'floor-fair', atLeast: 0.9 }),
  goal('4b', ['spin'], 'longest', { atMost: 1_000 }),
  goal('4t', ['fair'], 'rate', { to: 'floor', atLeast: 0.85 }),
  goal('4t', ['pub-sub'], 'rate', { to: 'floor', atLeast: 0.95 }),
  goal('4t', ['spin'], 'rate', { to: 'floor', atLeast: 0.75 }),
  goal('4t', ['fair'], 'wait99', { atMost: 65 }),
  goal('4t', ['pub-sub'], 'wait99', { atMost: 70 }),
  goal('4t', ['spin'], 'wait99', { atMost: 500 }),
  goal('5', ['pub-sub', 'fair'], 'requests', { atMost: 2 }),
  goal('6', OURS, 'lost', { atMost: 0 }),
  goal('8', ['fair'], 'pings', { atMost: 1.25 }),
  goal('8', ['pub-sub'], 'pings', { atMost: 2.3 }),
  goal('9a', OURS, 'p99', { to: 'floor', atMost: 1.2 }),
  goal('11', ['semaphore'], 'rate', { atLeast: 700 }),
  goal('11', ['semaphore'], 'wait999', { atMost: 90 }),
  goal('11', ['semaphore'], 'requests', { atMost: 1.5 }),
  ...['12a', '12b'].map((id) => goal(id, OURS, 'p50', { to: 'floor', atMost: 1.2 })),
  goal('12d', OURS, 'rate', { to: 'redlock', atLeast: 1 }),
  goal('13', ['read-write'], 'reads', { atLeast: 800 }),
  goal('13', ['read-write'], 'writes', { atLeast: 80 }),
  goal('13', ['read-write'], 'requests', { atMost: 0.5 }),
  goal('13', ['read-write'], 'reader wait999', { atMost: 100 }),
  goal('13', ['read-write'], 'writer wait999', { atMost: 120 }),
  goal('14', OURS, 'held', { atMost: 1_200 }),
  goal('14', OURS, 'time', { to: 'floor', atMost: 1.6 }),
];
