import { inBackground } from '../internal/background';
import { clock } from '../internal/clock';

/** What the fake timers of jest and vitest leave on each function that they replace. */
interface FakeTimers {
  readonly now: number;
  readonly performance?: { now(): number };
  setTimeout(callback: () => void, ms: number): NodeJS.Timeout;
  clearTimeout(handle: NodeJS.Timeout): void;
}

/**
 * The clock that the timers of this moment run on; `undefined`: the real one. `setTimeout` says so, and not
 * `performance` or `Date`: a test may leave these real, and then they do not go with its timers.
 */
function fakeTimers(): FakeTimers | undefined {
  return (globalThis.setTimeout as { clock?: FakeTimers }).clock;
}

function readingOf(fake: FakeTimers | undefined): number {
  if (fake === undefined) return performance.now();
  // `now` is a date, which a test may set; its `performance` only goes on.
  return fake.performance?.now() ?? fake.now;
}

/** A timer that goes on when the timers of the platform are replaced under it. */
class FakeableTimer {
  readonly due: number;
  readonly #callback: () => void;
  #cancel: (() => void) | undefined;
  #isUnreferenced = false;
  #handle: NodeJS.Timeout | undefined;

  constructor(due: number, callback: () => void) {
    this.due = due;
    this.#callback = callback;
  }

  /** `ms` from now, by the timers of this moment. */
  start(fake: FakeTimers | undefined, ms: number): void {
    this.#cancel?.();
    const handle = inBackground(() => globalThis.setTimeout(this.#callback, Math.max(0, ms)));
    // `clearTimeout` of this moment, but the timers may be others when it is cancelled.
    this.#cancel = fake === undefined ? () => handle.close() : () => fake.clearTimeout(handle);
    this.#handle = handle;
    if (this.#isUnreferenced) handle.unref?.();
  }

  cancel(): void {
    this.#cancel?.();
  }

  ref(): this {
    this.#isUnreferenced = false;
    this.#handle?.ref?.();
    return this;
  }

  unref(): this {
    this.#isUnreferenced = true;
    this.#handle?.unref?.();
    return this;
  }
}

/**
 * A clock for tests, which may install fake timers, advance them and remove them at any time. It goes on from where it
 * was when that happens, and so do the timers that were set. The wall clock goes with it: a test may fake `Date`
 * without the rest, or set it, and locks in memory have nothing to do with that.
 */
class FakeableClock {
  readonly #real = { ...clock };
  readonly #timers = new Set<FakeableTimer>();
  #fake = fakeTimers();
  #lastRead = clock.now();
  /** ms; this clock minus the reading of the timers' clock. */
  #offset = this.#lastRead - readingOf(this.#fake);

  now(): number {
    const fake = fakeTimers();
    if (fake !== this.#fake) this.#goOnWith(fake);
    this.#lastRead = readingOf(fake) + this.#offset;
    return this.#lastRead;
  }

  /** With fake timers there are no sockets to wait for, and `setImmediate` may be faked too. */
  immediate(): Promise<void> {
    return fakeTimers() === undefined ? this.#real.immediate() : Promise.resolve();
  }

  setTimeout(callback: () => void, ms: number): FakeableTimer {
    const timer = new FakeableTimer(this.now() + ms, () => {
      this.#timers.delete(timer);
      callback();
    });
    this.#timers.add(timer);
    timer.start(this.#fake, ms);
    return timer;
  }

  clearTimeout(timer: FakeableTimer | NodeJS.Timeout | undefined): void {
    if (timer instanceof FakeableTimer) {
      this.#timers.delete(timer);
      timer.cancel();
    } else {
      this.#real.clearTimeout(timer);
    }
  }

  /** Fake timers were installed or removed, or installed again. */
  #goOnWith(fake: FakeTimers | undefined): void {
    this.#fake = fake;
    this.#offset = this.#lastRead - readingOf(fake);
    for (const timer of this.#timers) timer.start(fake, timer.due - this.#lastRead);
  }
}

let isInstalled = false;

/**
 * From now on this copy of the library goes by a `FakeableClock`. It is the same as before while no timers are faked.
 */
export function installFakeableClock(): void {
  if (isInstalled) return;
  isInstalled = true;
  const fakeable = new FakeableClock();
  clock.now = () => fakeable.now();
  clock.wallNow = () => fakeable.now();
  clock.immediate = () => fakeable.immediate();
  clock.setTimeout = (callback, ms) => fakeable.setTimeout(callback, ms) as unknown as NodeJS.Timeout;
  clock.clearTimeout = (handle) => fakeable.clearTimeout(handle);
}
