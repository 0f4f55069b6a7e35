import { quantileSorted } from 'simple-statistics';
import { CLOCK_ERROR } from './clock';
import type { Observation, Passage } from './loads/load';

/** Passages of all processes through the sections of one key, in the order in which they entered; those that wait come last. */
export type Sequence = readonly Passage[];

/** Puts what several processes saw together: one sequence for each key. Callers are told apart over all processes. */
export function sequences(observations: readonly Observation[], callers: number, keys: number): Sequence[] {
  const all = observations.flatMap(({ passages }, process) =>
    passages.map((passage) => ({ ...passage, caller: process * callers + passage.caller })),
  );
  const ofKey = Array.from({ length: keys }, (): Passage[] => []);
  for (const passage of all) ofKey[(passage.caller % callers) % keys]?.push(passage);
  return ofKey.map((passages) => passages.sort((a, b) => a.entered - b.entered || a.asked - b.asked));
}

/** Entries into a section that somebody was in. */
export function intrusions(sequence: Sequence): number {
  return pairs(sequence).filter(([before, after]) => after.entered < before.left - CLOCK_ERROR).length;
}

/** ms from the moment a holder gives the lock back to the entry of the next one, where that one was waiting `since` ms before. */
export function handOvers(sequence: Sequence, since = 0): number[] {
  return pairs(sequence)
    .filter(([before, after]) => after.asked + since < before.left && after.entered < Number.POSITIVE_INFINITY)
    .map(([before, after]) => after.entered - before.left);
}

/** ms that each caller waited, sorted. For those who wait still, the time until `end`: the least that it can be. */
export function waits(sequence: Sequence, end: number): number[] {
  return sequence.map(({ asked, entered }) => Math.min(entered, end) - asked).sort((a, b) => a - b);
}

/** How often each of `callers` had the lock, the unluckiest first. */
export function turns(sequence: Sequence, callers: number): number[] {
  const counts = new Uint32Array(callers);
  for (const { caller, entered } of sequence)
    counts[caller] = (counts[caller] ?? 0) + Number(entered < Number.POSITIVE_INFINITY);
  return [...counts].sort((a, b) => a - b);
}

/** How many callers were overtaken, by all that overtook them: pairs that entered in another order than they asked in. */
export function inversions(sequence: Sequence): number {
  const order = [...sequence].sort((a, b) => a.asked - b.asked);
  const rank = new Map(order.map((passage, i) => [passage, i + 1]));
  // A Fenwick tree: for each one that enters, how many entered before that had asked later.
  const tree = new Uint32Array(sequence.length + 1);
  let count = 0;
  sequence.forEach((passage, entered) => {
    let notLater = 0;
    const mine = rank.get(passage) as number;
    for (let i = mine; i > 0; i -= i & -i) notLater += tree[i] as number;
    count += entered - notLater;
    for (let i = mine; i < tree.length; i += i & -i) tree[i] = (tree[i] as number) + 1;
  });
  return count;
}

export function quantile(sorted: readonly number[], p: number): number {
  return sorted.length === 0 ? Number.NaN : quantileSorted(sorted as number[], p);
}

function pairs(sequence: Sequence): [Passage, Passage][] {
  return sequence.slice(1).map((after, i) => [sequence[i] as Passage, after]);
}
