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
  cancel: () => void = () => undefined;

  constructor(due: number, callback: () => void) {
    this.due = due;
    this.#callback = callback;
  }

  /** `ms` from now, by the timers of this moment. */
  start(ms: number): void {
    // The timers may be others when it is cancelled.
    const { setTimeout, clearTimeout } = globalThis;
    const handle = inBackground(() => setTimeout(this.#callback, Math.max(0, ms)));
    this.cancel = () => clearTimeout(handle);
    this.#handle = handle;
    if (this.#isUnreferenced) handle.unref?.();
  }

  ref(): void {
    this.#isUnreferenced = false;
    this.#handle?.ref?.();
  }

  unref(): void {
    this.#isUnreferenced = true;
    this.#handle?.unref?.();
  }
}

/**
 * A clock for tests, which may install fake timers, advance them and remove them at any time. It goes on from where it
 * was when that happens, and so do the timers that were set. The wall clock goes with it: a test may fake `Date`
 * without the rest, or set it, and locks in memory have nothing to do with that.
 */
function fakeableClock(real: typeof clock): typeof clock {
  const timers = new Set<FakeableTimer>();
  let fake = fakeTimers();
  let lastRead = real.now();
  const epoch = real.wallNow() - lastRead;
  /** ms; this clock minus the reading of the timers' clock. */
  let offset = lastRead - readingOf(fake);

  const goOnWith = (others: Fake | undefined, reading: number): void => {
    const wasReal = fake === undefined;
    fake = others;
    offset = lastRead - reading;
    for (const timer of timers) {
      if (wasReal) timer.cancel();
      timer.start(timer.due - lastRead);
    }
  };
  const now = (): number => {
    const current = fakeTimers();
    const reading = readingOf(current);
    // A reading that goes back is that of timers that were removed and installed again.
    if (current !== fake || reading + offset < lastRead) goOnWith(current, reading);
    lastRead = reading + offset;
    return lastRead;
  };
  return {
    now,
    wallNow: () => epoch + now(),
    /** With fake timers there are no sockets to wait for, and `setImmediate` may be faked too. */
    immediate: () => (fakeTimers() === undefined ? real.immediate() : Promise.resolve()),
    setTimeout(callback, ms) {
      const timer = new FakeableTimer(now() + ms, () => {
        if (timers.delete(timer)) callback();
      });
      timers.add(timer);
      timer.start(ms);
      return timer as unknown as NodeJS.Timeout;
    },
    clearTimeout(handle) {
      const timer: unknown = handle;
      if (!(timer instanceof FakeableTimer)) real.clearTimeout(handle);
      else if (timers.has(timer)) {
        // First others may have to take over: node:test removes a wrong timer when one from before a reset is cleared.
        now();
        timers.delete(timer);
        timer.cancel();
      }
    },
  };
}

let isInstalled = false;

/**
 * From now on this copy of the library goes by a fakeable clock. It is the same as before while no timers are faked, but
 * that it does not notice a suspension of the machine.
 * Throws while timers are faked that it cannot follow.
 */
export function installFakeableClock(): void {
  if (!isInstalled) Object.assign(clock, fakeableClock({ ...clock }));
  isInstalled = true;
  clock.now();
}
