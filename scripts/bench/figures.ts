import { max, min, quantileSorted, sum } from 'simple-statistics';
import { conflicts, type Stay } from '../../support/judge/exclusion';
import { type Acquisition, type Callers, CLOCK_ERROR, type LoadSpec, type Observation } from './loads';

/** The raw figures of one window. */
export interface Measurement {
  readonly observations: readonly Observation[];
  /** Client requests to the server. */
  readonly requests: number;
  /** ms of CPU of the server. */
  readonly serverCpu: number;
  /** Keys that disappeared or changed during the window. */
  readonly keysLost: number;
  /** ms that a PING takes on the same connection path. */
  readonly ping: number;
}

/** The columns of the tables, each with its unit. NaN, or absent: no figure. */
export type Figures = { readonly [Name in Metric]?: number } & {
  /** Overlaps; the run fails unless there are none. */
  readonly violations?: number;
};

export type Metric =
  | keyof ReturnType<typeof figuresOfAll>
  | Exclude<keyof ReturnType<typeof figuresOfCallers>, 'violations'>
  | keyof NonNullable<Observation['each']>;

/** Cycles, or acquisitions that were granted. */
export function acquired({ durations = [], acquisitions = [] }: Observation): number {
  return durations.length + acquisitions.filter(hasEntered).length;
}

/** Those of all processes together. */
export function figuresOf(load: LoadSpec, measurement: Measurement): Figures {
  const seconds = max(measurement.observations.map(({ time }) => time)) / 1000;
  return {
    ...figuresOfAll(measurement, seconds),
    ...(load.load === 'callers' && figuresOfCallers(load, measurement, seconds)),
    ...measurement.observations.at(-1)?.each,
  };
}

/** Client CPU that is not of something is of the last process, as the others only hold what it waits for. */
function figuresOfAll({ observations, requests, serverCpu, keysLost, ping }: Measurement, seconds: number) {
  const count = sum(observations.map(acquired));
  const durations = ascending(observations.flatMap((one) => one.durations ?? []));
  return {
    'acquisitions, /s': count / seconds,
    'cycles, /s': count / seconds,
    'p50, µs': quantile(durations, 0.5) * 1000,
    'p99, µs': quantile(durations, 0.99) * 1000,
    'requests for each': requests / count,
    'client CPU for each, µs': (sum(observations.map(({ cpu }) => cpu)) / count) * 1000,
    'server CPU for each, µs': (serverCpu / count) * 1000,
    'requests, /s': requests / seconds,
    'client CPU, ms/s': (observations.at(-1)?.cpu ?? 0) / seconds,
    'server CPU, ms/s': serverCpu / seconds,
    'locks lost': keysLost,
    'PING, ms': ping,
  };
}

/** ms that the next holder has waited at least in scenario 8. By then every library has subscribed or polls regularly. */
const LONG_WAIT = 100;

function figuresOfCallers(load: Callers, { observations, ping }: Measurement, seconds: number) {
  const { callers, keys = 1, permits = 1, readers = 0 } = load;
  const end = min(observations.map((observation) => observation.end));
  const all = inOrder(observations, load, end);
  const entered = all.filter(hasEntered);
  const counts = new Uint32Array(callers * observations.length);
  for (const { caller } of entered) counts[caller] = (counts[caller] ?? 0) + 1;
  const [fewest, most] = [min([...counts]), max([...counts])];

  const ofKeys = Array.from({ length: keys }, (): Acquisition[] => []);
  for (const acquisition of all) for (const key of acquisition.keys ?? []) ofKeys[key]?.push(acquisition);
  const handOvers = ascending(ofKeys.flatMap((history) => handOversOf(history, 0)));
  const afterLongWaits = ascending(ofKeys.flatMap((history) => handOversOf(history, LONG_WAIT)));

  const stays = entered.flatMap((acquisition, call) => staysOf(acquisition, call, readers > 0));
  const processOf = ({ call }: Stay) => Math.floor((entered[call as number]?.caller ?? 0) / callers);
  const overlaps = [
    ...conflicts(stays, { permits, tolerance: CLOCK_ERROR }),
    // A process has one clock, which also shows an overlap in an empty section.
    ...observations.flatMap((_, process) =>
      conflicts(
        stays.filter((stay) => processOf(stay) === process),
        { permits },
      ),
    ),
  ];
  /** ms. An unfinished wait counts up to `end`, a lower bound. */
  const waitsOf = (some: readonly Acquisition[]) =>
    ascending(some.map(({ requestedAt, enteredAt }) => Math.min(enteredAt, end) - requestedAt));
  const waits = waitsOf(all);
  const [ofReaders, ofWriters] = [waitsOf(all.filter((one) => !isWriter(one))), waitsOf(all.filter(isWriter))];
  const writes = entered.filter(isWriter).length;
  return {
    'reads, /s': (entered.length - writes) / seconds,
    'writes, /s': writes / seconds,
    'wait, p50, ms': quantile(waits, 0.5),
    'wait, p99, ms': quantile(waits, 0.99),
    'wait, p99.9, ms': quantile(waits, 0.999),
    'longest wait, ms': quantile(waits, 1),
    'wait of readers, p50, ms': quantile(ofReaders, 0.5),
    'wait of readers, p99.9, ms': quantile(ofReaders, 0.999),
    'wait of writers, p50, ms': quantile(ofWriters, 0.5),
    'wait of writers, p99.9, ms': quantile(ofWriters, 0.999),
    'hand-over, p50, µs': quantile(handOvers, 0.5) * 1000,
    'hand-over, p99, µs': quantile(handOvers, 0.99) * 1000,
    'hand-over, ms': quantile(afterLongWaits, 0.5),
    'hand-over in PINGs': quantile(afterLongWaits, 0.5) / ping,
    'least-served caller': fewest,
    'most-served caller': most,
    'least / most served': fewest / most,
    violations: overlaps.length,
  };
}

/**
 * The acquisitions of several processes in the order of entry, with their keys; unfinished ones come last. Callers are
 * numbered over all processes. What entered after the first process had ended its window is unfinished, since that process
 * does not say when it left.
 */
function inOrder(observations: readonly Observation[], { callers, keys = 1 }: Callers, end: number): Acquisition[] {
  const notYet = { enteredAt: Number.POSITIVE_INFINITY, leftAt: Number.POSITIVE_INFINITY };
  return observations
    .flatMap(({ acquisitions = [] }, process) =>
      acquisitions.map((acquisition) => ({
        keys: [(acquisition.caller % callers) % keys],
        ...acquisition,
        caller: process * callers + acquisition.caller,
        ...(acquisition.enteredAt > end && notYet),
      })),
    )
    .sort((a, b) => a.enteredAt - b.enteredAt || a.requestedAt - b.requestedAt);
}

const hasEntered = ({ enteredAt }: Acquisition) => Number.isFinite(enteredAt);

const isWriter = ({ weight = 1 }: Acquisition) => weight > 1;

function staysOf(acquisition: Acquisition, call: number, isReadWrite: boolean): Stay[] {
  const { keys = [], enteredAt: from, leftAt: to, weight: permits = 1 } = acquisition;
  const access = isReadWrite ? (isWriter(acquisition) ? 'write' : 'read') : 'permit';
  return keys.map((key) => ({ call, key: String(key), from, to, access, permits }));
}

/** ms from each release to the next entry, if the next holder had already waited for `minimumWait` ms. */
function handOversOf(history: readonly Acquisition[], minimumWait: number): number[] {
  return history.slice(1).flatMap((after, i) => {
    const before = history[i] as Acquisition;
    const isHandOver = after.requestedAt + minimumWait < before.leftAt && hasEntered(after);
    return isHandOver ? [after.enteredAt - before.leftAt] : [];
  });
}

const ascending = (figures: number[]) => figures.sort((a, b) => a - b);

function quantile(sorted: readonly number[], p: number): number {
  return sorted.length === 0 ? Number.NaN : quantileSorted(sorted as number[], p);
}
