import { min, quantileSorted } from 'simple-statistics';
import { CLOCK_ERROR } from './clock';
import type { Acquisition, Observation } from './loads/load';

/** Cycles, or acquisitions that were granted. */
export function acquired({ durations, acquisitions }: Observation): number {
  return durations.length + acquisitions.filter(({ enteredAt }) => Number.isFinite(enteredAt)).length;
}

/** Acquisitions of one key by all processes, in the order of entry; unfinished ones come last. */
export type KeyHistory = readonly Acquisition[];

const NOT_YET = Number.POSITIVE_INFINITY;

/**
 * Merges the observations of several processes into one history for each key. Callers are numbered over all processes.
 * The history ends with the process that was the first to end its window: a later entry is unfinished, since that process
 * does not say when it left.
 */
export function keyHistories(observations: readonly Observation[], callers: number, keys: number): KeyHistory[] {
  const end = min(observations.map((observation) => observation.end));
  const all = observations.flatMap(({ acquisitions }, process) =>
    acquisitions.map((acquisition) => ({
      ...acquisition,
      caller: process * callers + acquisition.caller,
      ...(acquisition.enteredAt > end && { enteredAt: NOT_YET, leftAt: NOT_YET }),
    })),
  );
  const ofKey = Array.from({ length: keys }, (): Acquisition[] => []);
  for (const acquisition of all)
    for (const key of acquisition.keys ?? [(acquisition.caller % callers) % keys]) ofKey[key]?.push(acquisition);
  return ofKey.map((acquisitions) =>
    acquisitions.sort((a, b) => a.enteredAt - b.enteredAt || a.requestedAt - b.requestedAt),
  );
}

/** Number of entries into a section that had not been left. */
export function overlaps(history: KeyHistory): number {
  return pairs(history).filter(([before, after]) => after.enteredAt < before.leftAt - CLOCK_ERROR).length;
}

/** Number of entries that took more permits, with those of the others that had not left, than there are. */
export function overfull(history: KeyHistory, permits: number): number {
  let inside: Acquisition[] = [];
  let count = 0;
  for (const entering of history) {
    inside = inside.filter(({ leftAt }) => leftAt - CLOCK_ERROR > entering.enteredAt);
    const taken = inside.reduce((sum, { weight = 1 }) => sum + weight, 0);
    if (taken + (entering.weight ?? 1) > permits && entering.enteredAt < Number.POSITIVE_INFINITY) count++;
    inside.push(entering);
  }
  return count;
}

/** ms from each release to the next entry, if the next holder had already waited for `minimumWait` ms. */
export function handOvers(history: KeyHistory, minimumWait = 0): number[] {
  return pairs(history)
    .filter(
      ([before, after]) =>
        after.requestedAt + minimumWait < before.leftAt && after.enteredAt < Number.POSITIVE_INFINITY,
    )
    .map(([before, after]) => after.enteredAt - before.leftAt);
}

/** ms that each acquisition waited, sorted. An unfinished wait counts up to `end`, a lower bound. */
export function waits(history: KeyHistory, end: number): number[] {
  return history.map(({ requestedAt, enteredAt }) => Math.min(enteredAt, end) - requestedAt).sort((a, b) => a - b);
}

/** How often each of `callers` acquired the lock, the fewest first. */
export function acquisitionsPerCaller(history: KeyHistory, callers: number): number[] {
  const counts = new Uint32Array(callers);
  for (const { caller, enteredAt } of history)
    counts[caller] = (counts[caller] ?? 0) + Number(enteredAt < Number.POSITIVE_INFINITY);
  return [...counts].sort((a, b) => a - b);
}

/** Number of pairs of acquisitions that entered in another order than they were requested in. */
export function overtaken(history: KeyHistory): number {
  const order = [...history].sort((a, b) => a.requestedAt - b.requestedAt);
  const position = new Map(order.map((acquisition, i) => [acquisition, i + 1]));
  // A Fenwick tree: counts, for each entry, the earlier entries that were requested later.
  const tree = new Uint32Array(history.length + 1);
  let count = 0;
  history.forEach((acquisition, enteredBefore) => {
    let requestedEarlier = 0;
    const own = position.get(acquisition) as number;
    for (let i = own; i > 0; i -= i & -i) requestedEarlier += tree[i] as number;
    count += enteredBefore - requestedEarlier;
    for (let i = own; i < tree.length; i += i & -i) tree[i] = (tree[i] as number) + 1;
  });
  return count;
}

export function quantile(sorted: readonly number[], p: number): number {
  return sorted.length === 0 ? Number.NaN : quantileSorted(sorted as number[], p);
}

function pairs(history: KeyHistory): [Acquisition, Acquisition][] {
  return history.slice(1).map((after, i) => [history[i] as Acquisition, after]);
}
