/** What `performance.now` leaves out: it counts from the start of its process. */
const offset = Math.max(...Array.from({ length: 20 }, () => Number(process.hrtime.bigint()) / 1e6 - performance.now()));

/** Monotonic ms that all processes of the machine share, so that the sections of several can be put in one order. */
export function now(): number {
  return performance.now() + offset;
}

/** ms by which two processes may differ in what `now` is. */
export const CLOCK_ERROR = 0.05;

export function sleep(ms: number): Promise<void> {
  return new Promise((resolve) => {
    setTimeout(resolve, ms);
  });
}
