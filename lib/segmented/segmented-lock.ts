import type { Lease, LockOptions, LockSource } from '../distributed-lock';
import { callback, expected, nonEmptyString, number, wholeNumber } from '../internal/validation';
import type { SegmentedLockOptions } from '../options';
import { checkLockOptions, segmentedSettings } from '../settings';
import {
  type AcrossResult,
  type AcrossTask,
  EXHAUSTED,
  type Exhausted,
  type Part,
  type Segment,
  type SegmentedResult,
  type Share,
  segmentName,
} from './segment';
import { type Entry, type SegmentTask, SegmentVisit } from './segment-visit';
import { split } from './split';

/**
 * The lock of one hot resource that is split into segments, each with a lock and a share of the data of its own: as many
 * callers work at a time as there are segments. After ConcurrentHashMap (Java 5 to 7), which locked its table in
 * segments, and LongAdder, which spreads a hot counter over cells and sums them up to read it.
 *
 * Make it once, by `registry.segmented`, and keep it; it has no state in Redis besides the locks of its segments. All
 * processes must agree on the number of segments: to change it, `runAll` with the old number, and move the data there.
 */
export class SegmentedLock {
  readonly key: string;
  /** The keys of the segments' locks, by index. */
  readonly names: readonly string[];
  readonly #registry: LockSource;
  readonly #random: () => number;
  /** By index: in which call, counted from 1, the segment was last tried in vain; 0 when it served since, or never was. */
  readonly #refusedIn: number[];
  #calls = 0;

  /** Throws `TypeError` or `RangeError` when the key or an option is bad. */
  constructor(registry: LockSource, key: string, options: SegmentedLockOptions) {
    const { segments, random } = segmentedSettings(options);
    this.key = nonEmptyString('key', key);
    this.names = Array.from({ length: segments }, (_, index) => segmentName(key, index));
    this.#registry = registry;
    this.#random = random;
    this.#refusedIn = this.names.map(() => 0);
  }

  /** Cuts a total into the shares of the segments: they differ by at most one, and add up to it exactly. See `split`. */
  split(total: number): Share[] {
    return split(total, this.names.length).map((amount, index) => ({ index, name: this.#name(index), amount }));
  }

  /**
   * Runs the task in one segment, entered as by `DistributedLock.run`, and in the next one when it returns
   * `segment.exhausted`, each at most once, until one serves: until the task returns anything else. The order is drawn
   * at random for each call, but what was busy or exhausted lately comes last. A busy segment is passed over for a free
   * one; when only busy ones are left, two of them are waited for at once, one more every 100 ms, and the first that is
   * given back is entered.
   *
   * `{ served: false }`: the task said `exhausted` in every segment, each under its lock. As long as the data only
   * shrink, no segment could serve it at the end either: what others were in the midst of was waited for, and so was
   * what a dead process held.
   *
   * `waitTime` and `signal` count from the call until the segment that serves is entered; the tasks that said
   * `exhausted` before are part of it. `waitTime: 0` is one attempt for each segment. `ttl` and `renew` hold for each lease.
   *
   * Rejects as `DistributedLock.run` does: with the task's own error; with `LockLostError` when the lease was lost under
   * it; with `LockTimeoutError` when the time is over and a segment that was not seen is still busy;
   * `CannotAcquireLockError` when Redis fails for any segment, also if others might serve; `signal.reason`.
   */
  async run<T>(
    task: (segment: Segment) => T | Exhausted | PromiseLike<T | Exhausted>,
    options: LockOptions = {},
  ): Promise<SegmentedResult<T>> {
    callback('task', task);
    const visit = this.#visit(options);
    try {
      const work = (lease: Lease, index: number) => task(this.#segment(lease, index));
      const busy: number[] = [];
      for (const index of this.#order()) {
        const entry = await visit.tryEnter(index, work);
        if (entry === 'busy') {
          this.#refusedIn[index] = this.#calls;
          busy.push(index);
          continue;
        }
        const result = await this.#resultOf(entry);
        if (result.served) return result;
      }
      while (busy.length > 0) {
        const entry = await visit.enterAnyOf(busy, work);
        const result = await this.#resultOf(entry);
        if (result.served) return result;
        busy.splice(busy.indexOf(entry.index), 1);
      }
      return { served: false };
    } finally {
      visit.end();
    }
  }

  async #resultOf<T>({ index, outcome }: Entry<T | Exhausted>): Promise<SegmentedResult<T>> {
    const value = await outcome;
    const served = value !== EXHAUSTED;
    this.#refusedIn[index] = served ? 0 : this.#calls;
    return served ? { served, value: value as T, segment: index } : { served };
  }

  /**
   * Takes an amount from several segments, all or nothing: for an order that is larger than what any one of them has,
   * after `run` has said that none can serve it alone. Locks one segment after the other, keeps those that have
   * something, and calls `commit` once as soon as there is enough. `{ served: false }` means that all of them together
   * have too little. All locks are given back at the end, whatever happens, and `commit` is called only when none of
   * them was lost.
   *
   * Everybody locks the segments in the order of their index, so that no two callers wait for each other. For the same
   * reason it must not be called in a task of the same segmented lock. Options and errors are those of `run`.
   */
  async runAcross<T>(amount: number, task: AcrossTask<T>, options: LockOptions = {}): Promise<AcrossResult<T>> {
    wholeNumber('amount', amount, 1);
    callback('task.available', task?.available);
    callback('task.commit', task?.commit);
    const parts: Part[] = [];
    let missing = amount;
    const keep = async (segment: Segment): Promise<boolean> => {
      const available = wholeNumber('available', await task.available(segment), 0);
      const taken = Math.min(available, missing);
      missing -= taken;
      if (taken > 0) parts.push({ index: segment.index, name: segment.name, lease: segment.lease, amount: taken });
      return taken > 0;
    };
    const finish = async (): Promise<AcrossResult<T>> => {
      if (missing > 0) return { served: false };
      for (const { lease } of parts) lease.assertHeld();
      return { served: true, value: await task.commit(parts), segments: parts.map(({ index }) => index) };
    };
    return this.#inOrder(options, keep, () => missing === 0, finish);
  }

  /**
   * Runs the task with the locks of all segments held: to count the whole, or to share it out anew. They are locked in
   * the order of their index. Options and errors are those of `run`.
   */
  async runAll<T>(task: (segments: readonly Segment[]) => T | PromiseLike<T>, options: LockOptions = {}): Promise<T> {
    callback('task', task);
    const segments: Segment[] = [];
    const keep = (segment: Segment): boolean => segments.push(segment) > 0;
    const finish = (): T | PromiseLike<T> => {
      for (const { lease } of segments) lease.assertHeld();
      return task(segments);
    };
    return this.#inOrder(options, keep, () => false, finish);
  }

  /** Locks the segments in the order of their index, those within `keep` said yes until the end, then runs `finish`. */
  async #inOrder<T>(
    options: LockOptions,
    keep: (segment: Segment) => boolean | Promise<boolean>,
    isEnough: () => boolean,
    finish: () => T | PromiseLike<T>,
  ): Promise<T> {
    const visit = this.#visit(options);
    const released = Symbol('released');
    const from = async (index: number): Promise<T> => {
      if (isEnough() || index === this.names.length) return finish();
      const work: SegmentTask<T | typeof released> = async (lease) =>
        (await keep(this.#segment(lease, index))) ? from(index + 1) : released;
      const { outcome } = await visit.enter(index, work);
      const value = await outcome;
      return value === released ? from(index + 1) : value;
    };
    try {
      return await from(0);
    } finally {
      visit.end();
    }
  }

  #visit(options: LockOptions): SegmentVisit {
    checkLockOptions(options);
    return new SegmentVisit(this.key, (index) => this.#registry.obtain(this.#name(index)), options);
  }

  #segment(lease: Lease, index: number): Segment {
    return { index, name: this.#name(index), lease, exhausted: EXHAUSTED };
  }

  #name(index: number): string {
    return this.names[index] as string;
  }

  /**
   * In which order a call tries the segments: at random; but what was tried in vain lately, so that it is likely to be
   * busy or exhausted still, comes last, and the latest at the very end. Lately means in one of the last calls, as many
   * as there are segments: so nobody sticks to one segment, and what was filled up again is found.
   */
  #order(): number[] {
    const indices = [...this.names.keys()];
    // Fisher-Yates. A random start would not do: the neighbour of a busy segment would get twice the load.
    for (let left = indices.length; left > 1; left--) {
      const drawn = number('random()', this.#random());
      if (!(drawn >= 0 && drawn < 1)) {
        throw new RangeError(expected('random()', 'a number from 0 up to below 1', drawn));
      }
      const from = Math.floor(drawn * left);
      [indices[left - 1], indices[from]] = [indices[from] as number, indices[left - 1] as number];
    }
    const lately = ++this.#calls - indices.length;
    const refusal = (index: number): number => Math.max(0, (this.#refusedIn[index] as number) - lately);
    return indices.sort((a, b) => refusal(a) - refusal(b));
  }
}
