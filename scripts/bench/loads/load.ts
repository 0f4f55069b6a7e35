import type { Locks } from '../candidates/candidate';
import { now, sleep } from '../clock';

/** One passage of a caller, from its question to the moment at which it gives the lock back. Times are those of `now`; ∞: not yet. */
export interface Passage {
  readonly caller: number;
  readonly asked: number;
  readonly entered: number;
  readonly left: number;
}

/** What one process saw in a window of time. */
export interface Observation {
  /** ms that it lasted, and when it ended. */
  readonly time: number;
  readonly end: number;
  /** ms of CPU */
  readonly cpu: number;
  /** ms of each cycle of lock and unlock, where the load measures them. */
  readonly durations: readonly number[];
  /** Those that entered the section, and those that still wait, where the load notes them. */
  readonly passages: readonly Passage[];
  /** Two callers in one section, or one where nobody may be. */
  readonly violations: number;
  /** bytes of heap for each lock */
  readonly heap: Readonly<Record<string, number>>;
}

/** Observes for so many ms what a load does, which goes on all the time. */
export type Observe = (ms: number) => Promise<Partial<Observation>>;

/** Begins the work of a process, which lasts as long as the process. */
export type Load<Settings> = (locks: Locks, settings: Settings) => Observe | Promise<Observe>;

/** The whole observation: what the load itself tells, and the CPU that it took. */
export async function observe(load: Observe, ms: number): Promise<Observation> {
  const startedAt = performance.now();
  const before = process.cpuUsage();
  const seen = await load(ms);
  const { user, system } = process.cpuUsage(before);
  const time = performance.now() - startedAt;
  return {
    time,
    end: now(),
    cpu: (user + system) / 1000,
    durations: [],
    passages: [],
    violations: 0,
    heap: {},
    ...seen,
  };
}

/** A load that has nothing to tell but what goes wrong. */
export function quietly(violations: () => number): Observe {
  return async (ms) => {
    await sleep(ms);
    return { violations: violations() };
  };
}
