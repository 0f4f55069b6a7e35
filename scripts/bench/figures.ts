import { max, min, quantileSorted, sum } from 'simple-statistics';
import { conflicts, type Stay } from '../../support/judge/exclusion';
import { type Acquisition, type CallersSettings, CLOCK_ERROR, type LoadSpec, type Observation } from './loads';

/** The raw figures of one window. */
export interface Measurement {
  readonly observations: readonly Observation[];
  /** s */
  readonly seconds: number;
  /** Client requests to the server. */
  readonly requests: number;
  /** ms of CPU of the server. */
  readonly serverCpu: number;
  /** Keys that disappeared or changed during the window. */
  readonly keysLost: number;
  /** ms that a PING takes on the same connection path. */
  readonly ping: number;
}

/** By the id of a metric. NaN: no figure. `violations`: the run fails unless they are 0. */
export type Figures = Readonly<Record<string, number>>;

/** Cycles, or acquisitions that were granted. */
export function acquired({ durations, acquisitions }: Observation): number {
  return durations.length + acquisitions.filter(hasEntered).length;
}

/** All figures that the load of a scenario has. */
export function figuresOf(loads: readonly LoadSpec[], measurement: Measurement): Figures {
  const { observations, requests, serverCpu, seconds, keysLost } = measurement;
  const [{ load, settings }] = loads as [LoadSpec];
  const last = observations.at(-1) as Observation;
  if (load === 'heap' || load === 'listened') return last.each;
  if (load === 'callers') return callersFigures(settings, measurement);
  if (load === 'cycles') {
    const sorted = ascending(observations.flatMap(({ durations }) => durations));
    const latencies = { p50: quantile(sorted, 0.5) * 1000, p99: quantile(sorted, 0.99) * 1000 };
    return { ...forEach(sorted.length, measurement), ...latencies };
  }
  const perSecond = { requests: requests / seconds, client: last.cpu / seconds, server: serverCpu / seconds };
  return { ...perSecond, lost: keysLost, violations: last.violations };
}

/** µs of CPU, and requests, for each of `count`. */
function forEach(count: number, { observations, requests, serverCpu, seconds }: Measurement): Figures {
  const client = sum(observations.map(({ cpu }) => cpu));
  const cpu = { client: (client / count) * 1000, server: (serverCpu / count) * 1000 };
  return { rate: count / seconds, requests: requests / count, ...cpu };
}

/** ms that the next holder has waited at least in scenario 8. By then every library has subscribed or polls regularly. */
const LONG_WAIT = 100;

function callersFigures(settings: CallersSettings, measurement: Measurement): Figures {
  const { callers, keys = 1, permits = 1, readers = 0 } = settings;
  const { observations, seconds, ping } = measurement;
  const end = min(observations.map((observation) => observation.end));
  const all = inOrder(observations, callers, end);
  const ofKeys = Array.from({ length: keys }, (): Acquisition[] => []);
  for (const acquisition of all)
    for (const key of acquisition.keys ?? [(acquisition.caller % callers) % keys]) ofKeys[key]?.push(acquisition);
  const counts = new Uint32Array(callers * observations.length);
  for (const { caller } of all.filter(hasEntered)) counts[caller] = (counts[caller] ?? 0) + 1;
  const [fewest, most] = [min([...counts]), max([...counts])];
  const latencies = ascending(ofKeys.flatMap((history) => handOvers(history, 0)));
  const handOverMs = quantile(ascending(ofKeys.flatMap((history) => handOvers(history, LONG_WAIT))), 0.5);
  const isWriter = ({ weight = 1 }: Acquisition) => weight > 1;
  const [reads, writes] = [all.filter((one) => !isWriter(one)), all.filter(isWriter)];
  const overlaps = ofKeys.flatMap((history) =>
    conflicts(history.filter(hasEntered).map(readers > 0 ? readOrWrite : permit), { permits, tolerance: CLOCK_ERROR }),
  );
  return {
    ...forEach(sum([...counts]), measurement),
    ...waits('', all, end),
    ...waits('reader ', reads, end),
    ...waits('writer ', writes, end),
    reads: reads.filter(hasEntered).length / seconds,
    writes: writes.filter(hasEntered).length / seconds,
    handOver: quantile(latencies, 0.5) * 1000,
    handOver99: quantile(latencies, 0.99) * 1000,
    handOverMs,
    ping,
    pings: handOverMs / ping,
    fewest,
    most,
    evenness: fewest / most,
    violations: overlaps.length + sum(observations.map(({ violations }) => violations)),
  };
}

/**
 * The acquisitions of several processes in the order of entry; unfinished ones come last. Callers are numbered over all
 * processes. What entered after the first process had ended its window is unfinished, since that process does not say when
 * it left.
 */
function inOrder(observations: readonly Observation[], callers: number, end: number): Acquisition[] {
  const notYet = { enteredAt: Number.POSITIVE_INFINITY, leftAt: Number.POSITIVE_INFINITY };
  return observations
    .flatMap(({ acquisitions }, process) =>
      acquisitions.map((acquisition) => ({
        ...acquisition,
        caller: process * callers + acquisition.caller,
        ...(acquisition.enteredAt > end && notYet),
      })),
    )
    .sort((a, b) => a.enteredAt - b.enteredAt || a.requestedAt - b.requestedAt);
}

function hasEntered({ enteredAt }: Acquisition): boolean {
  return Number.isFinite(enteredAt);
}

function permit({ enteredAt, leftAt, weight = 1 }: Acquisition, call: number): Stay {
  return { call, key: '', from: enteredAt, to: leftAt, access: 'permit', permits: weight };
}

function readOrWrite({ enteredAt, leftAt, weight = 1 }: Acquisition, call: number): Stay {
  return { call, key: '', from: enteredAt, to: leftAt, access: weight > 1 ? 'write' : 'read' };
}

/** ms from each release to the next entry, if the next holder had already waited for `minimumWait` ms. */
function handOvers(history: readonly Acquisition[], minimumWait: number): number[] {
  return history.slice(1).flatMap((after, i) => {
    const before = history[i] as Acquisition;
    const isHandOver = after.requestedAt + minimumWait < before.leftAt && hasEntered(after);
    return isHandOver ? [after.enteredAt - before.leftAt] : [];
  });
}

/** ms. An unfinished wait counts up to `end`, a lower bound. */
function waits(whose: string, history: readonly Acquisition[], end: number): Figures {
  const sorted = ascending(history.map(({ requestedAt, enteredAt }) => Math.min(enteredAt, end) - requestedAt));
  const parts = { wait50: 0.5, wait99: 0.99, wait999: 0.999, longest: 1 };
  return Object.fromEntries(Object.entries(parts).map(([id, part]) => [whose + id, quantile(sorted, part)]));
}

const ascending = (figures: number[]) => figures.sort((a, b) => a - b);

function quantile(sorted: readonly number[], p: number): number {
  return sorted.length === 0 ? Number.NaN : quantileSorted(sorted as number[], p);
}
