import { setImmediate as nextTurn } from 'node:timers/promises';
import type { Locks, Release } from '../candidates/candidate';
import { now, sleep } from '../clock';
import type { Acquisition, Observe } from './load';

export interface CallersSettings {
  readonly callers: number;
  /** Number of keys that the callers are distributed over. */
  readonly keys: number;
  /** Each acquisition takes that many keys, chosen at random, all or nothing. By default the key of the caller. */
  readonly together?: number;
  /** ms in the section, and a random addition of up to `workJitter`. 0: one microtask, in which an overlap would show. */
  readonly work: number;
  readonly workJitter: number;
  /** How many may be inside at a time; 1 by default. */
  readonly permits?: number;
  /** The first callers of a process that take one permit as readers, while the others take all; by default none. */
  readonly readers?: number;
  /** ms from a release to the next request, and a random addition of up to `pauseJitter`, 0 by default. */
  readonly pause: number;
  readonly pauseJitter?: number;
}

type MutableAcquisition = { -readonly [Key in keyof Acquisition]: Acquisition[Key] };

const NOT_YET = Number.POSITIVE_INFINITY;

/** During the warm-up, work and pauses take that part of their time, so that the same code runs more often. */
const WARM_UP_PACE = 0.1;

/** Callers that lock, work and unlock in a loop. Every acquisition is recorded. */
export function callers(locks: Locks, settings: CallersSettings): Observe {
  const { callers, keys, together, work, workJitter, pause, pauseJitter = 0, permits = 1, readers = 0 } = settings;
  const acquire = acquireOf(locks, settings);
  const ownKeys = Array.from({ length: callers }, (_, caller) => [caller % keys]);
  let log: MutableAcquisition[] = [];
  const waiting = new Set<MutableAcquisition>();
  /** Permits taken of each key. */
  const taken = new Uint32Array(keys);
  let violations = 0;
  let pace = 1;

  const spend = (ms: number, jitter: number): Promise<void> => {
    const time = pace * (ms + Math.random() * jitter);
    return time < 1 ? nextTurn() : sleep(time); // a timer takes 1 ms at least
  };

  const acquireOnce = async (caller: number) => {
    const chosen = together === undefined ? (ownKeys[caller] as number[]) : sample(keys, together);
    const weight = readers > 0 && caller >= readers ? permits : 1;
    const acquisition: MutableAcquisition = { caller, requestedAt: now(), enteredAt: NOT_YET, leftAt: NOT_YET };
    // There are many acquisitions: only what differs from the default is sent to the bench.
    if (together !== undefined) acquisition.keys = chosen;
    if (weight !== 1) acquisition.weight = weight;
    waiting.add(acquisition);
    const release = await acquire(chosen, caller);
    acquisition.enteredAt = now();
    waiting.delete(acquisition);
    log.push(acquisition);

    for (const key of chosen) {
      const sum = (taken[key] ?? 0) + weight;
      if (sum > permits) violations++;
      taken[key] = sum;
    }
    await (work === 0 ? undefined : spend(work, workJitter));
    for (const key of chosen) taken[key] = (taken[key] ?? 0) - weight;

    acquisition.leftAt = now();
    await release();
  };
  const loop = async (caller: number) => {
    for (;;) {
      await acquireOnce(caller);
      if (pause > 0) await spend(pause, pauseJitter);
    }
  };
  // A rejection is not handled: it ends the process, and with it the measurement.
  for (let caller = 0; caller < callers; caller++) void loop(caller);

  return async (ms, isWarmUp = false) => {
    pace = isWarmUp ? WARM_UP_PACE : 1;
    log = [];
    await sleep(ms);
    return { acquisitions: [...log, ...waiting], violations };
  };
}

/** How a caller acquires keys that are given by their numbers. */
function acquireOf(
  locks: Locks,
  { keys, together, readers = 0 }: CallersSettings,
): (chosen: readonly number[], caller: number) => Promise<Release> {
  const names = Array.from({ length: keys }, (_, key) => `key-${key}`);
  const nameOf = (key: number | undefined) => names[key as number] as string;
  const { acquireAll, acquireShared } = locks;
  if (together !== undefined) {
    if (acquireAll === undefined) throw new Error('it cannot lock several keys');
    return (chosen) => acquireAll(chosen.map(nameOf));
  }
  if (readers === 0) return ([key]) => locks.acquire(nameOf(key));
  if (acquireShared === undefined) throw new Error('it has no readers');
  return ([key], caller) => (caller < readers ? acquireShared(nameOf(key)) : locks.acquire(nameOf(key)));
}

/** `count` different numbers below `limit`. */
function sample(limit: number, count: number): number[] {
  const chosen = new Set<number>();
  while (chosen.size < count) chosen.add(Math.floor(Math.random() * limit));
  return [...chosen];
}
