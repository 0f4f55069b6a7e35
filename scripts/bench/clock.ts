/** Milliseconds between the start of the machine's monotonic clock and the start of this process. */
const offset = Math.max(...Array.from({ length: 20 }, () => Number(process.hrtime.bigint()) / 1e6 - performance.now()));

/** Monotonic ms that all processes of the machine share, so that events of several processes can be ordered. */
export function now(): number {
  return performance.now() + offset;
}

/** Maximum difference of `now` between two processes, in ms. */
export const CLOCK_ERROR = 0.05;

export function sleep(ms: number): Promise<void> {
  return new Promise((resolve) => {
    setTimeout(resolve, ms);
  });
}
