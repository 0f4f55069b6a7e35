import { AsyncResource } from 'node:async_hooks';

/** The only source of time of locks. Tests replace its functions. */
export const clock = {
  /** Monotonic ms. Leases, deadlines and waits are measured on it. */
  now: (): number => performance.now(),
  /** Wall-clock ms. Compared only with itself, to notice that the machine was suspended. */
  wallNow: (): number => Date.now(),
  /** Resolves after what was written to sockets in this tick of the event loop has gone out. */
  immediate: (): Promise<void> => new Promise((resolve) => setImmediate(resolve)),
  // The globals are looked up at each call, so that an application's fake timers apply to the library too.
  setTimeout: (callback: () => void, ms: number): NodeJS.Timeout => inBackground(() => setTimeout(callback, ms)),
  clearTimeout: (handle: NodeJS.Timeout | undefined): void => clearTimeout(handle),
};

/**
 * Beyond this many ms between wall clock and monotonic clock, the machine was suspended: the monotonic one stood still.
 */
const SUSPENDED = 100;

/** ms; the first drift that was measured: all are counted from here. */
let firstDrift: number | undefined;

/**
 * Whole ms; the wall clock minus the monotonic clock, less a constant. It grows while the machine is suspended. Rounded
 * last: V8 stores a small whole number in an object, and the difference of two large ones beside it.
 */
export function drift(now = clock.now()): number {
  const ms = clock.wallNow() - now;
  firstDrift ??= ms;
  return Math.floor(ms - firstDrift);
}

/** Whether the machine was suspended, or its wall clock was set, between two readings of `drift`. */
export function wasSuspended(driftBefore: number, driftNow: number): boolean {
  return driftNow - driftBefore > SUSPENDED;
}

/** ms; the longest delay of a JavaScript timer. A longer one would fire at once. Also the longest ttl. */
export const MAX_DELAY = 2 ** 31 - 1;

/** ms; the shortest ttl that leaves a holder any time after the round trip and the margin below. */
export const MIN_TTL = 5;

/** ms; the shortest ttl of a lease that is renewed: at a third of it, and no sooner than after a third of this. */
export const MIN_RENEWED_TTL = 30;

/**
 * Until when, on the monotonic clock, a key may be relied on that was given `ttl` ms by a request sent at `sentAt`.
 * Counted from before the request was sent, since the server cannot have counted from earlier. The margin of 0.1 % and
 * 1 ms covers clocks of different rates, and Redis counting in whole milliseconds.
 */
export function reliableUntil(sentAt: number, ttl: number): number {
  return sentAt + ttl - (ttl * 0.001 + 1);
}

/**
 * A timer of any length. `Infinity` never fires and costs nothing. It keeps the process alive where a caller waits for it.
 */
export class Timer {
  #handle: NodeJS.Timeout | undefined;
  readonly #callback: () => void;
  readonly #keepsProcessAlive: boolean;

  constructor(ms: number, callback: () => void, keepsProcessAlive = true) {
    this.#callback = callback;
    this.#keepsProcessAlive = keepsProcessAlive;
    this.#start(ms);
  }

  #start(ms: number): void {
    if (ms === Number.POSITIVE_INFINITY) return;
    this.#handle =
      ms <= MAX_DELAY
        ? clock.setTimeout(this.#callback, Math.max(0, ms))
        : clock.setTimeout(() => this.#start(ms - MAX_DELAY), MAX_DELAY);
    if (!this.#keepsProcessAlive) this.#handle.unref?.();
  }

  cancel(): void {
    clock.clearTimeout(this.#handle);
  }
}

/** A pause that a caller waits for: it keeps the process alive. */
export function pause(ms: number): Promise<void> {
  return new Promise((resolve) => {
    clock.setTimeout(resolve, ms);
  });
}

/** A pause of background work: it does not keep the process alive. */
export function backgroundPause(ms: number): Promise<void> {
  return new Promise((resolve) => {
    clock.setTimeout(resolve, ms).unref?.();
  });
}

/** Resolves with the promise, or after `ms` at the latest. */
export async function within(ms: number, promise: Promise<unknown>): Promise<void> {
  await new Promise<void>((resolve) => {
    const timer = new Timer(ms, resolve);
    void promise.then(() => {
      timer.cancel();
      resolve();
    });
  });
}

/**
 * The async context in which it was made. It keeps nothing alive: without `emitDestroy`, `jest --detectOpenHandles` would
 * name it as a handle left open.
 */
export class CapturedContext extends AsyncResource {
  constructor(type = 'RedisLockRegistryListener') {
    super(type, { requireManualDestroy: true });
    this.emitDestroy();
  }
}

/** The async context in which the library was loaded: no context of a caller. */
const background = new CapturedContext('RedisLockRegistry');

/**
 * Runs `start` outside the async context of the caller. Timers and sockets keep the context in which they were made.
 * A timer or socket that many callers share must not keep the context of one: its callbacks would run in that caller's
 * scope.
 */
export function inBackground<T>(start: () => T): T {
  return background.runInAsyncScope(start);
}
