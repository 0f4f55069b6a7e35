import { setTimeout as sleep } from 'node:timers/promises';

/** What came of one side of a competition. Times in ms. */
export interface Outcome {
  readonly turns: number;
  /** The longest time in which no caller of this side had the lock, though all others of it waited. */
  readonly longestWait: number;
  /** Of mutual exclusion. */
  readonly violations: number;
}

/** Counts on a connection of its own. */
export interface Counter {
  incr(key: string): Promise<number>;
  decr(key: string): Promise<number>;
}

/** Resolves, when the lock is held, to the function that releases it. */
export type TakeLock = () => Promise<() => Promise<unknown>>;

/**
 * Callers that take one lock over and over, and hold it for `work` ms, until `ms` are over. Competition.java does the
 * same.
 */
export async function compete(
  takeLock: TakeLock,
  counter: Counter,
  key: string,
  callers: number,
  work: number,
  ms: number,
): Promise<Outcome> {
  const start = performance.now();
  let [turns, longestWait, violations] = [0, 0, 0];
  let leftAt = start;
  const inside = `${key}:inside`;
  const turn = async () => {
    const release = await takeLock();
    const entered = performance.now();
    longestWait = Math.max(longestWait, entered - leftAt);
    if ((await counter.incr(inside)) !== 1) violations++;
    if (entered < start + ms) turns++;
    if (work > 0) await sleep(work);
    if ((await counter.decr(inside)) !== 0) violations++;
    leftAt = performance.now();
    await release();
  };
  await Promise.all(
    Array.from({ length: callers }, async () => {
      while (performance.now() < start + ms) await turn();
    }),
  );
  return { turns, longestWait, violations };
}
