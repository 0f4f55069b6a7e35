import type { Locks } from '../candidates/candidate';
import { now, sleep } from '../clock';
import type { HeapPart } from './held-parts';

/** One acquisition by one caller. Times are those of `now`; Infinity: not reached yet. */
export interface Acquisition {
  readonly caller: number;
  /** Numbers of the keys, if the load does not give each caller one key by its number. */
  readonly keys?: readonly number[];
  /** Permits that it takes; 1 by default. */
  readonly weight?: number;
  readonly requestedAt: number;
  readonly enteredAt: number;
  /** Before the release is sent. */
  readonly leftAt: number;
}

/** What one process measured in one window. */
export interface Observation {
  /** Length of the window, in ms, and the time of its end. */
  readonly time: number;
  readonly end: number;
  /** ms of CPU */
  readonly cpu: number;
  /** ms of it in the kernel, and how often the process slept until something happened; not from other languages. */
  readonly kernel?: number;
  readonly sleeps?: number;
  /** ms of each cycle of lock and unlock, if the load measures them. */
  readonly durations: readonly number[];
  /** Finished and waiting acquisitions, if the load records them. */
  readonly acquisitions: readonly Acquisition[];
  /** Two callers in one section, or one caller in a section that must stay empty. */
  readonly violations: number;
  /** bytes of heap for each lock */
  readonly heap: Readonly<Record<string, number>>;
  /** What each lock is made of, the largest part first; if the load finds out. */
  readonly parts?: readonly HeapPart[];
}

/** Observes for `ms` a load that runs all the time. `isWarmUp`: the load may run faster than it is measured. */
export type Observe = (ms: number, isWarmUp?: boolean) => Promise<Partial<Observation>>;

/** Starts the work of a process; it runs until the process ends. */
export type Load<Settings> = (locks: Locks, settings: Settings) => Observe | Promise<Observe>;

/** The observation of the load, with the time and CPU that it took. */
export async function observe(load: Observe, ms: number, isWarmUp = false): Promise<Observation> {
  const startedAt = performance.now();
  const before = process.resourceUsage();
  const observation = await load(ms, isWarmUp);
  const after = process.resourceUsage();
  const kernel = (after.systemCPUTime - before.systemCPUTime) / 1000;
  const time = performance.now() - startedAt;
  return {
    time,
    end: now(),
    cpu: (after.userCPUTime - before.userCPUTime) / 1000 + kernel,
    kernel,
    sleeps: after.voluntaryContextSwitches - before.voluntaryContextSwitches,
    durations: [],
    acquisitions: [],
    violations: 0,
    heap: {},
    ...observation,
  };
}

/** For a load that reports violations only. */
export function reportViolations(violations: () => number): Observe {
  return async (ms) => {
    await sleep(ms);
    return { violations: violations() };
  };
}
