import { clock, inBackground } from '../internal/clock';

/** The clock of the fake timers of jest, vitest and sinon. `now` is a date, which a test may set; `performance` only goes on. */
interface FakeClock {
  readonly now: number;
  readonly performance?: { now(): number };
}

type ClearTimeout = typeof globalThis.clearTimeout;

/** Tells fake timers from others. For those of node:test, which leave no mark, it is the `clearTimeout` that they replace. */
type Fake = FakeClock | true | ClearTimeout;

/** What fake timers leave on the functions that they replace: their clock, or `true` in Bun. */
interface Marked {
  readonly name: string;
  readonly clock?: FakeClock | boolean;
  getMockImplementation?(): { readonly name: string } | undefined;
}

/**
 * The fake timers of this moment; `undefined`: the real ones. The functions for timers say so, and not `performance` or
 * `Date`: a test may leave these real, and then they do not go with its timers. A test may also spy on `setTimeout`.
 */
function fakeTimers(): Fake | undefined {
  const { setTimeout, clearTimeout }: Record<'setTimeout' | 'clearTimeout', Marked> = globalThis;
  if (setTimeout.getMockImplementation?.()?.name === 'bound _fakeSetTimeout') {
    throw new Error('Locks in memory cannot follow the legacy fake timers of jest, which tell nobody their time');
  }
  const mark = setTimeout.clock || clearTimeout.clock;
  if (mark) return mark;
  return clearTimeout.name === 'bound #clearTimer' ? globalThis.clearTimeout : undefined;
}

function readingOf(fake: Fake | undefined): number {
  // Bun replaces `performance` with its timers.
  if (fake === undefined || fake === true) return performance.now();
  if (typeof fake !== 'function') return fake.performance?.now() ?? fake.now;
  // The mock timers of node:test say what time it is only in the timers that they make.
  const timer = globalThis.setTimeout(() => undefined, 0) as NodeJS.Timeout & { readonly runAt?: number };
  fake(timer);
  if (timer.runAt !== undefined) return timer.runAt;
  throw new Error('Locks in memory cannot follow the mock timers of node:test in this version of Node');
}

/** A timer that goes on when the timers of the platform are replaced under it. */
class FakeableTimer {
  readonly due: number;
  readonly #callback: () => void;
  #isUnreferenced = false;
  #handle: NodeJS.Timeout | undefined;
  #cancel: (() => void) | undefined;

  constructor(due: number, callback: () => void) {
    this.due = due;
    this.#callback = callback;
  }

  /** `ms` from now, by the timers of this moment. */
  start(ms: number): void {
    // The timers may be others when it is cancelled.
    const { setTimeout, clearTimeout } = globalThis;
    const handle = inBackground(() => setTimeout(this.#callback, Math.max(0, ms)));
    this.#cancel = () => clearTimeout(handle);
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
    const reading = readingOf(fake);
    // A reading that goes back is that of timers that were removed and installed again.
    if (fake !== this.#fake || reading + this.#offset < this.#lastRead) this.#goOnWith(fake, reading);
    this.#lastRead = reading + this.#offset;
    return this.#lastRead;
  }

  /** With fake timers there are no sockets to wait for, and `setImmediate` may be faked too. */
  immediate(): Promise<void> {
    return fakeTimers() === undefined ? this.#real.immediate() : Promise.resolve();
  }

  setTimeout(callback: () => void, ms: number): FakeableTimer {
    const timer = new FakeableTimer(this.now() + ms, () => {
      if (this.#timers.delete(timer)) callback();
    });
    this.#timers.add(timer);
    timer.start(ms);
    return timer;
  }

  clearTimeout(timer: FakeableTimer | NodeJS.Timeout | undefined): void {
    if (!(timer instanceof FakeableTimer)) {
      this.#real.clearTimeout(timer);
    } else if (this.#timers.has(timer)) {
      // First others may have to take over: node:test removes a wrong timer when one from before a reset is cleared.
      this.now();
      this.#timers.delete(timer);
      timer.cancel();
    }
  }

  #goOnWith(fake: Fake | undefined, reading: number): void {
    const wasReal = this.#fake === undefined;
    this.#fake = fake;
    this.#offset = this.#lastRead - reading;
    for (const timer of this.#timers) {
      if (wasReal) timer.cancel();
      timer.start(timer.due - this.#lastRead);
    }
  }
}

let isInstalled = false;

/**
 * From now on this copy of the library goes by a `FakeableClock`. It is the same as before while no timers are faked.
 * Throws while timers are faked that it cannot follow.
 */
export function installFakeableClock(): void {
  if (!isInstalled) {
    const fakeable = new FakeableClock();
    isInstalled = true;
    clock.now = () => fakeable.now();
    clock.wallNow = () => fakeable.now();
    clock.immediate = () => fakeable.immediate();
    clock.setTimeout = (callback, ms) => fakeable.setTimeout(callback, ms) as unknown as NodeJS.Timeout;
    clock.clearTimeout = (handle) => fakeable.clearTimeout(handle);
  }
  clock.now();
}
