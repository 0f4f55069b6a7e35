/** How long a candidate warms up before it is measured. */
export interface WarmUp {
  /** ms, at most. Some peers poll so seldom that they never acquire often enough. */
  readonly longest: number;
  /** Acquisitions of each process after which it ends; by default it takes all of its time. */
  readonly enough?: number | undefined;
  /** ms after it at the pace of the measurement, for loads that warm up at a faster one. */
  readonly settling?: number;
}

/*
 * Those of full runs: a service runs for hours, so its code is compiled. V8 compiles a function after some thousand
 * runs. These are the points after which the CPU time for each acquisition fell no further, of the candidate that took
 * the longest.
 */

export const ONE_CALLER: WarmUp = { longest: 4_000, enough: 20_000 };

/** Calls that go together run a function once for many of them. */
export const MANY_CALLERS: WarmUp = { longest: 4_000, enough: 200_000 };

export const ONE_PROCESS: WarmUp = { longest: 5_000, enough: 25_000 };

/** Four processes that share a CPU take about ten seconds for that. */
export const FOUR_PROCESSES: WarmUp = { longest: 10_000, enough: 8_000, settling: 300 };

/** Loads of several kinds of locks, none of which is fast: a full run has no time for all that they would need. */
export const SLOW_LOCKS: WarmUp = { ...FOUR_PROCESSES, longest: 5_000 };

/** With --quick, code is not compiled fully. */
export const quickWarmUp = (longest: number): WarmUp => ({ longest });
