import { afterEach, beforeEach } from '@jest/globals';
import { clock, MAX_DELAY } from '../../lib/internal/clock';
import { installFakeableClock } from '../../lib/testing/fakeable-clock';

interface FakeTimer {
  readonly due: number;
  readonly callback: () => void;
  isUnreferenced: boolean;
}

// Else the first locks in memory would replace that of a test.
installFakeableClock();
const real = { ...clock };

/** Replaces the library's clock until `restore`: time passes only by `advance`. */
export class FakeClock {
  now = 0;
  wallNow = 0;
  /** The delays of all timers that were set. */
  delays: number[] = [];
  #timers = new Map<object, FakeTimer>();
  /** Turns of the event loop that the library waits for. */
  #immediates = new Set<object>();

  /**
   * Registers the hooks that replace the clock for each test of the file, or of the surrounding `describe`. What a hook
   * ends on this clock is registered before.
   */
  static install(): FakeClock {
    const time = new FakeClock();
    time.restore();
    beforeEach(() => time.begin());
    afterEach(() => time.restore());
    return time;
  }

  constructor() {
    this.begin();
  }

  /** Begins anew. What the library did before is of an earlier clock. */
  begin(): void {
    this.now = 1_000;
    this.wallNow = 1_700_000_000_000;
    this.delays = [];
    this.#timers = new Map();
    const immediates = new Set<object>();
    this.#immediates = immediates;
    clock.now = () => this.now;
    clock.wallNow = () => this.wallNow;
    clock.immediate = async () => {
      const turn = {};
      immediates.add(turn);
      await promiseJobs();
      immediates.delete(turn);
    };
    clock.setTimeout = (callback, ms) => {
      this.delays.push(ms);
      // Node sets a delay that is too long to 1 ms.
      const delay = ms > MAX_DELAY ? 1 : Math.max(1, ms);
      const timer: FakeTimer = { due: this.now + delay, callback, isUnreferenced: false };
      const handle = {
        unref() {
          timer.isUnreferenced = true;
          return handle;
        },
      };
      this.#timers.set(handle, timer);
      return handle as unknown as NodeJS.Timeout;
    };
    clock.clearTimeout = (handle) => {
      if (handle !== undefined) this.#timers.delete(handle);
    };
  }

  /** Timers that have been set and have neither fired nor been cleared. */
  get pending(): number {
    return this.#timers.size;
  }

  /** Pending timers that keep the process alive. */
  get keepingAlive(): number {
    return [...this.#timers.values()].filter((timer) => !timer.isUnreferenced).length;
  }

  /** Advances both clocks by `ms` and runs the timers that become due, in order, each followed by its promise jobs. */
  async advance(ms: number): Promise<void> {
    const end = this.now + ms;
    for (;;) {
      await this.#settled();
      const [next] = [...this.#timers].sort(([, a], [, b]) => a.due - b.due);
      if (next === undefined || next[1].due > end) break;
      this.#timers.delete(next[0]);
      this.#pass(Math.max(0, next[1].due - this.now)); // late, after a pause of the process
      next[1].callback();
    }
    this.#pass(Math.max(0, end - this.now));
    await this.#settled();
  }

  /** How the call ends, and after how many ms; `undefined`: it does not within `limit` ms. */
  async settled(call: Promise<unknown>, limit = 20_000) {
    const startedAt = this.now;
    let end: { readonly after: number; readonly value?: unknown; readonly error?: unknown } | undefined;
    call.then(
      (value) => (end = { after: this.now - startedAt, value }),
      (error: unknown) => (end = { after: this.now - startedAt, error }),
    );
    await this.advance(0);
    while (end === undefined && this.now - startedAt < limit) await this.advance(10);
    return end;
  }

  [Symbol.dispose](): void {
    this.restore();
  }

  restore(): void {
    Object.assign(clock, real);
  }

  /** Resolves after all pending promise jobs, and the turns of the event loop that they wait for: these take no time. */
  async #settled(): Promise<void> {
    do await promiseJobs();
    while (this.#immediates.size > 0);
  }

  #pass(ms: number): void {
    this.now += ms;
    this.wallNow += ms;
  }
}

/** Resolves after all pending promise jobs. */
export function promiseJobs(): Promise<void> {
  return new Promise((resolve) => {
    setImmediate(resolve);
  });
}
