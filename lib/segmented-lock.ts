import type { Lease, LockOptions, LockRegistry } from './lock-registry';
import {
  callback,
  checkLockOptions,
  expected,
  nonEmptyString,
  type SegmentedLockOptions,
  segmentedSettings,
  wholeNumber,
} from './options';
import { hashTag } from './redis/names';
import { type Entry, type SegmentTask, SegmentVisit } from './segment-visit';
import { split } from './split';

declare const brand: unique symbol;

/** The type of `segment.exhausted`, its only value. */
export type Exhausted = symbol & { readonly [brand]: 'exhausted' };

const EXHAUSTED = Symbol('exhausted') as Exhausted;

/** A segment whose lock is held: its part of the data is the holder's alone. */
export interface Segment {
  /** From 0 up. */
  readonly index: number;
  /** The key of its lock, for `registry.obtain` too. Its part of the data is best named after it. */
  readonly name: string;
  readonly lease: Lease;
  /** What a task returns when this segment cannot serve it. It must have changed nothing: the next segment is tried. */
  readonly exhausted: Exhausted;
}

/** The part of a total that falls to one segment. */
export interface Share {
  readonly index: number;
  readonly name: string;
  readonly amount: number;
}

/** The part of an amount that is taken from one segment, whose lock is held. */
export interface Part extends Share {
  readonly lease: Lease;
}

/** One segment served the task; or none could: every single one was seen so under its lock. */
export type SegmentedResult<T> =
  | { readonly served: true; readonly value: T; readonly segment: number }
  | { readonly served: false };

/** These segments served the task together; or all of them together could not. */
export type AcrossResult<T> =
  | { readonly served: true; readonly value: T; readonly segments: readonly number[] }
  | { readonly served: false };

/** How an amount is taken from several segments. */
export interface AcrossTask<T> {
  /** How much the segment has, a whole number from 0 up. It is asked under its lock, and nothing is changed yet. */
  available(segment: Segment): number | PromiseLike<number>;
  /** Takes `amount` from each of the parts, all or nothing. Called once, when there is enough, while all are locked. */
  commit(parts: readonly Part[]): T | PromiseLike<T>;
}

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
  readonly #registry: LockRegistry;
  readonly #random: () => number;
  /** By index: which refusal it was, of all, when this segment was last tried in vain; 0 when it served, or never was. */
  readonly #refusals: number[];
  #refused = 0;

  /** Throws `TypeError` or `RangeError` when the key or an option is bad. */
  constructor(registry: LockRegistry, key: string, options: SegmentedLockOptions) {
    const { segments, random } = segmentedSettings(options);
    this.key = nonEmptyString('key', key);
    this.names = Array.from({ length: segments }, (_, index) => segmentName(key, index));
    this.#registry = registry;
    this.#random = random;
    this.#refusals = this.names.map(() => 0);
  }

  /** Cuts a total into the shares of the segments: they differ by at most one, and add up to it exactly. See `split`. */
  split(total: number): Share[] {
    return split(total, this.names.length).map((amount, index) => ({ index, name: this.#name(index), amount }));
  }

  /**
   * Runs the task in one segment: it is entered as by `DistributedLock.run`, in an order drawn at random for each call,
   * until a segment serves, that is, until the task returns anything but `segment.exhausted`. Each is entered at most
   * once. A busy segment is passed over for a free one; when only busy ones are left, the first of them to be given
   * back is entered. `{ served: false }` means that the task said `exhausted` in every segment, each under its lock: as
   * long as the data only shrink, none of them can have served it at the end either. What a task is in the midst of
   * elsewhere is waited for, and so is what a dead process holds.
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
          this.#noteRefusal(index);
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
    if (value === EXHAUSTED) {
      this.#noteRefusal(index);
      return { served: false };
    }
    this.#refusals[index] = 0;
    return { served: true, value: value as T, segment: index };
  }

  #noteRefusal(index: number): void {
    this.#refusals[index] = ++this.#refused;
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
      const { outcome } = await visit.enterAnyOf([index], work);
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
   * In which order a caller tries the segments: at random; but those that were tried in vain come last, the latest of
   * them at the very end, since they are likely to be busy or exhausted still. It is no more than an order: all are tried.
   */
  #order(): number[] {
    const indices = [...this.names.keys()];
    // Fisher-Yates. A random start would not do: the neighbour of a busy segment would get twice the load.
    for (let left = indices.length; left > 1; left--) {
      const drawn = this.#random();
      if (!(drawn >= 0 && drawn < 1))
        throw new RangeError(expected('random()', 'a number from 0 up to below 1', drawn));
      const from = Math.floor(drawn * left);
      [indices[left - 1], indices[from]] = [indices[from] as number, indices[left - 1] as number];
    }
    return indices.sort((a, b) => (this.#refusals[a] as number) - (this.#refusals[b] as number));
  }
}

/**
 * `product:7` becomes `product:7:3`, and `{product:7}` becomes `{product:7:3}`: the part between braces decides on the
 * slot of a cluster, and with the index inside of it the segments spread. Whatever data are named after such a segment
 * share its slot.
 */
function segmentName(key: string, index: number): string {
  const tag = hashTag(key);
  return tag === undefined ? `${key}:${index}` : key.replace(`{${tag}}`, () => `{${tag}:${index}}`);
}
