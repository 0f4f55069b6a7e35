/** The only source of time of this library. Tests replace its functions; nothing else may ask the system. */
export const clock = {
  /** Monotonic ms. Every lease, deadline and wait is counted on it. */
  now: (): number => performance.now(),
  /** Wall-clock ms. Only ever compared with itself, to notice that the machine was suspended. */
  wallNow: (): number => Date.now(),
  /** After what was written to sockets in this turn of the event loop has gone out. */
  immediate: (): Promise<void> => new Promise((resolve) => setImmediate(resolve)),
  // The globals are looked up at each call, so that an application's fake timers hold for the library too.
  setTimeout: (callback: () => void, ms: number): NodeJS.Timeout => setTimeout(callback, ms),
  clearTimeout: (handle: NodeJS.Timeout | undefined): void => clearTimeout(handle),
};

/** ms; the wall clock less the monotonic one: it grows while the machine is suspended, for the monotonic one stands still. */
export function drift(): number {
  return clock.wallNow() - clock.now();
}

/** The longest delay of a JavaScript timer: a longer one would fire at once. Also the longest ttl that is accepted. */
export const MAX_DELAY = 2 ** 31 - 1;

/**
 * Until when, on the monotonic clock, a key may be relied on that was given `ttl` ms by a request sent at `sentAt`.
 * Counted from before the request was sent, since the server cannot have counted from earlier; the margin of 0.1 % and
 * 1 ms is for clocks that run at different rates and for Redis counting in whole milliseconds.
 */
export function reliableUntil(sentAt: number, ttl: number): number {
  return sentAt + ttl - (ttl * 0.001 + 1);
}

/** A timer of any length, `Infinity` included: it never fires, and costs nothing. */
export class Timer {
  #handle: NodeJS.Timeout | undefined;
  readonly #callback: () => void;

  /** While it runs, it keeps the process alive: somebody is waiting for it. */
  constructor(ms: number, callback: () => void) {
    this.#callback = callback;
    this.#start(ms);
  }

  #start(ms: number): void {
    if (ms === Number.POSITIVE_INFINITY) return;
    this.#handle =
      ms <= MAX_DELAY
        ? clock.setTimeout(this.#callback, Math.max(0, ms))
        : clock.setTimeout(() => this.#start(ms - MAX_DELAY), MAX_DELAY);
  }

  cancel(): void {
    clock.clearTimeout(this.#handle);
  }
}

/** A pause of somebody who is waited for: it keeps the process alive. */
export function pause(ms: number): Promise<void> {
  return new Promise((resolve) => {
    clock.setTimeout(resolve, ms);
  });
}

/** A pause of work in the background: it does not keep the process alive. */
export function backgroundPause(ms: number): Promise<void> {
  return new Promise((resolve) => {
    clock.setTimeout(resolve, ms).unref?.();
  });
}
