import { inspect } from 'node:util';
import type { DistributedLock, Lease, LockOptions, LockSource } from '../api/distributed-lock';
import { CannotAcquireLockError, LockQueueFullError, LockTimeoutError } from '../api/errors';
import type { SegmentedLockOptions } from '../api/options';
import type { InternalLease } from '../core/internal-lease';
import { assertReplaceable, checkedLockOptions } from '../core/request';
import { asPartOf, LEAST_TIME_TO_ANSWER, Wait } from '../core/wait';
import { CapturedContext, Timer } from '../internal/clock';
import { knownAcrossCopies } from '../internal/copies';
import {
  type Check,
  type Checks,
  callback,
  checkedOptions,
  expected,
  inOneLine,
  nonEmptyString,
  number,
  wholeNumber,
} from '../internal/validation';
import { hashTag } from '../redis/names';

/** A Redis cluster has this many slots: more segments could not spread any further. */
const MOST_SEGMENTS = 16_384;

const segmentCount: Check<number> = (name, value) => wholeNumber(name, value, 1, MOST_SEGMENTS);

const CHECKS: Checks<SegmentedLockOptions> = { segments: segmentCount, random: callback };

declare const brand: unique symbol;

/** The type of `segment.exhausted`, which is its only value. */
export type Exhausted = symbol & { readonly [brand]: 'exhausted' };

const EXHAUSTED = Symbol('exhausted') as Exhausted;

/** A segment whose lock is held: no other caller uses its part of the data. */
export interface Segment {
  /** From 0 up. */
  readonly index: number;
  /** The key of its lock, for `registry.obtain` too. Its part of the data is best named after it. */
  readonly name: string;
  readonly lease: Lease;
  /** What a task returns when this segment cannot serve it. It must have changed nothing: the next segment is tried. */
  readonly exhausted: Exhausted;
}

/** The part of a total that belongs to one segment. */
export interface Share {
  readonly index: number;
  readonly name: string;
  readonly amount: number;
}

/** The part of an amount that is taken from one segment, whose lock is held. */
export interface Part extends Share {
  readonly lease: Lease;
}

/** One segment served the task, or none could: each was entered under its lock. */
export type SegmentedResult<T> =
  | { readonly served: true; readonly value: T; readonly segment: number }
  | { readonly served: false };

/** Which segments served the task together; or that all of them together could not. */
export type AcrossResult<T> =
  | { readonly served: true; readonly value: T; readonly segments: readonly number[] }
  | { readonly served: false };

/** How an amount is taken from several segments. */
export interface AcrossTask<T> {
  /** The amount that the segment has, a whole number from 0 up. Called under its lock; it must change nothing. */
  available(segment: Segment): number | PromiseLike<number>;
  /** Takes `amount` from each of the parts, all or nothing. Called once, when there is enough, while all are locked. */
  commit(parts: readonly Part[]): T | PromiseLike<T>;
}

/**
 * `product:7` becomes `product:7:3`, and `{product:7}` becomes `{product:7:3}`. The part between braces decides on the
 * slot of a cluster: with the index inside it the segments spread over the slots. Data that are named after a segment
 * share its slot.
 */
function segmentName(key: string, index: number): string {
  const tag = hashTag(key);
  return tag === undefined ? `${key}:${index}` : key.replace(`{${tag}}`, () => `{${tag}:${index}}`);
}

/**
 * Splits `total` into one share for each segment. The shares differ by at most one, the larger ones come first, and
 * they add up to `total`.
 * @throws TypeError or RangeError unless `total` is a whole number from 0 up, and `segments` one from 1 to 16 384.
 * @example
 * split(7, 3); // [3, 2, 2]
 */
export function split(total: number, segments: number): number[] {
  wholeNumber('total', total, 0);
  segmentCount('segments', segments);
  const larger = total % segments;
  const share = (total - larger) / segments;
  return Array.from({ length: segments }, (_, index) => (index < larger ? share + 1 : share));
}

/**
 * The lock of one hot resource that is split into segments. Each segment has a lock and a share of the data, so that
 * one caller for each segment can work at a time. After ConcurrentHashMap (Java 5 to 7), which locked its table in
 * segments, and LongAdder, which spreads a hot counter over cells and adds them up to read it.
 *
 * Make it once, with `registry.segmented`, and keep it. It has no state in Redis besides the locks of its segments. All
 * processes must agree on the number of segments. To change it, call `runAll` with the old number and move the data.
 */
export class SegmentedLock {
  readonly key: string;
  /** The keys of the segments' locks, by index. */
  readonly names: readonly string[];
  readonly #registry: LockSource;
  readonly #order: ReturnType<typeof segmentOrder>;

  /** @throws TypeError or RangeError when the key or an option is not valid. */
  constructor(registry: LockSource, key: string, options: SegmentedLockOptions) {
    // Without a number of segments there is no lock.
    const { segments = segmentCount('segments', undefined), random = Math.random } = checkedOptions(CHECKS, options);
    this.key = nonEmptyString('key', key);
    this.names = Array.from({ length: segments }, (_, index) => segmentName(key, index));
    this.#registry = registry;
    this.#order = segmentOrder(segments, random);
  }

  /**
   * Splits a total into the shares of the segments. They differ by at most one and add up to the total.
   * @throws TypeError or RangeError unless `total` is a whole number from 0 up.
   * @example
   * for (const { name, amount } of stock.split(1_000)) await client.set(`stock:${name}`, amount);
   */
  split(total: number): Share[] {
    return split(total, this.names.length).map((amount, index) => ({ index, name: this.#name(index), amount }));
  }

  /**
   * Runs the task in one segment, as `DistributedLock.run` does. When the task returns `segment.exhausted`, it runs in
   * the next segment, in each at most once, until it returns anything else. The order is random for each call; segments
   * that were busy or exhausted lately come last. A free segment is taken before a busy one. When only busy ones are
   * left, the caller waits for two of them at once, for one more after each 100 ms, and enters the first that is free.
   *
   * `{ served: false }` means that the task returned `exhausted` in every segment, each under its lock. If the data
   * only shrink, no segment can serve it at the end either: the holders of busy segments were waited for, dead ones
   * included.
   *
   * `waitTime` and `signal` apply until a segment that serves is entered; tasks that returned `exhausted` before are
   * part of that time. `waitTime: 0` is one attempt for each segment. `ttl` and `renew` apply to each lease.
   *
   * @throws the task's own error, or `signal.reason`.
   * @throws LockLostError when the lease was lost, as `DistributedLock.run` does.
   * @throws LockTimeoutError when the time is over before each segment was entered.
   * @throws LockQueueFullError when it would wait, and `maxWaiting` callers wait for each of the segments already.
   * @throws CannotAcquireLockError when Redis fails for any segment, even if others might serve.
   * @throws RegistryClosedError when the registry is closed.
   * @throws TypeError or RangeError when an option is not valid.
   * @example
   * const result = await stock.run(({ name, exhausted }) => (sellOneOf(name) ? name : exhausted));
   * if (!result.served) throw new Error('sold out');
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
      const untried = new Set(this.#order.next());
      for (const index of untried) {
        const entry = await visit.tryEnter(index, work, untried);
        untried.delete(index);
        if (entry?.index !== index) busy.push(index);
        if (entry === undefined) {
          this.#order.note(index, false);
          continue;
        }
        untried.delete(entry.index);
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

  async #resultOf<T>({ index, task }: Entry<T | Exhausted>): Promise<SegmentedResult<T>> {
    const value = await task;
    const served = value !== EXHAUSTED;
    this.#order.note(index, served);
    return served ? { served, value: value as T, segment: index } : { served };
  }

  /**
   * Takes an amount from several segments, all or nothing. For an order that is larger than what any one segment has,
   * after `run` returned that none can serve it alone. Locks one segment after the other, keeps the locks of those that
   * have something, and calls `commit` once there is enough. `{ served: false }` means that all of them together have
   * too little. All locks are released at the end in any case. `commit` is called only when none of them was lost.
   *
   * All callers lock the segments in the order of their index, so that no two of them wait for each other. For the same
   * reason it must not be called inside a task of the same segmented lock, nor beside a `multi` of its segments, which
   * locks them by their names. Options and errors are those of `run`.
   *
   * @throws TypeError or RangeError unless `amount` and what `available` returns are whole numbers, from 1 and from 0
   * up.
   * @example
   * await stock.runAcross(60, {
   *   available: ({ name }) => stockOf(name),
   *   commit: (parts) => sellTogether(parts), // one transaction
   * });
   */
  async runAcross<T>(amount: number, task: AcrossTask<T>, options: LockOptions = {}): Promise<AcrossResult<T>> {
    wholeNumber('amount', amount, 1);
    callback('task.available', task?.available);
    callback('task.commit', task.commit);
    const parts: Part[] = [];
    let missing = amount;
    const use = async (segment: Segment): Promise<boolean> => {
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
    return this.#inOrder(options, use, () => missing === 0, finish);
  }

  /**
   * Runs the task while the locks of all segments are held: to count the whole, or to distribute it again. They are
   * locked in the order of their index. Options and errors are those of `run`.
   * @example
   * await stock.runAll((segments) => redistribute(segments.map(({ name }) => name)));
   */
  async runAll<T>(task: (segments: readonly Segment[]) => T | PromiseLike<T>, options: LockOptions = {}): Promise<T> {
    callback('task', task);
    const segments: Segment[] = [];
    const use = (segment: Segment): boolean => segments.push(segment) > 0;
    const finish = (): T | PromiseLike<T> => {
      for (const { lease } of segments) lease.assertHeld();
      return task(segments);
    };
    return this.#inOrder(options, use, () => false, finish);
  }

  /** Locks the segments in the order of their index. Those for which `use` returns true stay locked until `finish` has run. */
  async #inOrder<T>(
    options: LockOptions,
    use: (segment: Segment) => boolean | Promise<boolean>,
    isEnough: () => boolean,
    finish: () => T | PromiseLike<T>,
  ): Promise<T> {
    const visit = this.#visit(options);
    const released = Symbol('released');
    const from = async (index: number): Promise<T> => {
      if (isEnough() || index === this.names.length) return finish();
      const work: SegmentTask<T | typeof released> = async (lease) =>
        (await use(this.#segment(lease, index))) ? from(index + 1) : released;
      const entry = await visit.enter(index, work);
      const value = await entry.task;
      return value === released ? from(index + 1) : value;
    };
    try {
      return await from(0);
    } finally {
      visit.end();
    }
  }

  #visit(options: LockOptions) {
    const checked = checkedLockOptions(options);
    if (checked.replace) assertReplaceable('segmented');
    return segmentVisit(this.key, (index) => this.#registry.obtain(this.#name(index)), checked);
  }

  #segment(lease: Lease, index: number): Segment {
    return { index, name: this.#name(index), lease, exhausted: EXHAUSTED };
  }

  /** What `console.log(lock)` prints: no internals. */
  [inspect.custom](): string {
    return inOneLine(`SegmentedLock { key: ${inspect(this.key)}, segments: ${this.names.length} }`);
  }

  #name(index: number): string {
    return this.names[index] as string;
  }
}

knownAcrossCopies({ SegmentedLock });

/**
 * The order in which each call tries the segments: random, except that segments that were busy or exhausted lately come
 * last, the latest at the end. "Lately" is within as many calls as there are segments: so no caller sticks to one
 * segment, and a segment that was filled up again is found.
 */
function segmentOrder(segments: number, random: () => number) {
  /** By index: the call, counted from 1, in which it last was busy or exhausted; 0 when it has served since. */
  const refusedIn = new Array<number>(segments).fill(0);
  let calls = 0;
  return {
    /** The indices of all segments, in the order of a new call. */
    next(): number[] {
      const indices = [...refusedIn.keys()];
      // Fisher-Yates. With only a random start, the neighbour of a busy segment would get twice the load.
      for (let left = indices.length; left > 1; left--) {
        const drawn = number('random()', random());
        if (!(drawn >= 0 && drawn < 1)) {
          throw new RangeError(expected('random()', 'a number from 0 up to below 1', drawn));
        }
        const from = Math.floor(drawn * left);
        [indices[left - 1], indices[from]] = [indices[from] as number, indices[left - 1] as number];
      }
      const lately = ++calls - indices.length;
      const refusal = (index: number): number => Math.max(0, (refusedIn[index] as number) - lately);
      return indices.sort((a, b) => refusal(a) - refusal(b));
    },
    /** The segment has served, or else it was busy, or its task returned `exhausted`. */
    note(index: number, hasServed: boolean): void {
      refusedIn[index] = hasServed ? 0 : calls;
    },
  };
}

/**
 * A waiter contends for two segments: with the choice of two, queues stay nearly as even as with the choice of all
 * (Mitzenmacher, "The Power of Two Choices"), and every further one costs Redis one more command for each order. After
 * each 100 ms without success it contends for one more, so that it does not wait long for the segment of a dead
 * process.
 */
const CHOICES = 2;
const CHOICE_ADDED_AFTER = 100;

/** Why a segment is no longer contended for. Made once: a new error for each order would cost a stack trace. */
const LEFT = new Error('Another segment was entered, or the caller has left');

/** The work that is done in a segment. */
type SegmentTask<T> = (lease: Lease, index: number) => T | PromiseLike<T>;

/** A segment that was entered. */
interface Entry<T> {
  readonly index: number;
  /** Settles as the task does, as `DistributedLock.run` says. */
  readonly task: Promise<T>;
}

/** One caller's way through the segments of a lock, with one waitTime and one signal for all of them. */
function segmentVisit(key: string, lockOf: (index: number) => DistributedLock, options: LockOptions) {
  const { waitTime = Number.POSITIVE_INFINITY } = options;
  if (options.signal?.aborted) throw options.signal.reason;
  const wait = new Wait(key, waitTime, options.signal);
  const timeout = () => new LockTimeoutError(key, waitTime);

  /**
   * Enters the segment if it is free; `undefined`: it is busy. Rejects when the time is over before that is known. While
   * the client has no connection, it waits for any of `all`.
   */
  async function tryEnter<T>(
    index: number,
    task: SegmentTask<T>,
    all: Iterable<number> = [index],
  ): Promise<Entry<T> | undefined> {
    const { isSingleAttempt, remaining } = wait;
    // A waitTime of 0 is one attempt, and not an attempt without time.
    if (remaining === 0 && !isSingleAttempt) throw timeout();
    // An attempt without a wait has as long as any command of the lock: longer, perhaps, than this caller has.
    const limit = isSingleAttempt ? Number.POSITIVE_INFINITY : Math.max(remaining, LEAST_TIME_TO_ANSWER);
    let entry: Entry<T> | 'busy' | undefined;
    try {
      entry = await contend([index], task, 0, limit);
    } catch (error) {
      if (!(error instanceof CannotAcquireLockError) || wait.remaining === 0) throw error;
      // A single attempt fails early while the client has no connection, and this caller waits.
      return enterAnyOf([...all], task);
    }
    if (entry !== undefined) return entry === 'busy' ? undefined : entry;
    const why = `Redis has not said for ${Math.round(limit)} ms whether segment ${index} is free`;
    throw new CannotAcquireLockError(`Lock "${key}" could not be acquired: ${why}`, key);
  }

  /** Waits for any of these segments and enters the first that is granted. `LockTimeoutError` when the time is over. */
  async function enterAnyOf<T>(indices: readonly number[], task: SegmentTask<T>): Promise<Entry<T>> {
    const { remaining } = wait;
    if (remaining === 0) throw timeout();
    const entry = await contend(indices, task, remaining, Number.POSITIVE_INFINITY);
    if (entry === undefined || entry === 'busy') throw timeout();
    return entry;
  }

  /**
   * Enters this segment, as soon as it is free where the caller waits at all. `LockTimeoutError` when the time is over.
   */
  async function enter<T>(index: number, task: SegmentTask<T>): Promise<Entry<T>> {
    if (!wait.isSingleAttempt) return enterAnyOf([index], task);
    const entry = await tryEnter(index, task);
    if (entry === undefined) throw timeout();
    return entry;
  }

  /**
   * Contends for these segments, for up to `limit` ms, and enters the first that is granted. It leaves the others; a
   * grant that comes too late is released unused. Once a segment is entered, nothing interrupts the task. A segment for
   * which as many wait as `maxWaiting` says is left for another one. `waitTime`: what is left of it, or 0 for one attempt.
   * `busy`: others held the segments until the wait was over; `undefined`: the time was over before that was known.
   */
  async function contend<T>(
    indices: readonly number[],
    task: SegmentTask<T>,
    waitTime: number,
    limit: number,
  ): Promise<Entry<T> | 'busy' | undefined> {
    // With one segment and no limit the caller's signal suffices; an AbortController would add about 10 % to the cost.
    const mayLeave = indices.length > 1 || limit < Number.POSITIVE_INFINITY;
    const leaving = mayLeave ? new AbortController() : undefined;
    const signal = leaving?.signal ?? options.signal;
    // All of them first: where the cache is full, the call is rejected before it contends for any.
    const others = indices.map((index) => ({ index, lock: lockOf(index) }));
    const tasks = new Map<number, Promise<T>>();
    let isOver = false;
    const entered = await wait.suspend<number | 'busy'>(limit, (resume, fail) => {
      const contendFor = ({ index, lock }: (typeof others)[number], left: number): void => {
        const all = { ...options, waitTime: left, signal };
        const entering = (lease: Lease): T | PromiseLike<T> => {
          if (isOver) {
            (lease as Partial<InternalLease>).endMinHold?.();
            throw LEFT;
          }
          resume(index);
          return task(lease, index);
        };
        const running = asPartOf(wait, () => lock.run(entering, all));
        tasks.set(index, running);
        running.catch((error: unknown) => {
          // The wait is over once a segment is entered. An error inside is reported by the task's promise: it may be the
          // LockTimeoutError of a lock in the task.
          if (isOver) return;
          tasks.delete(index);
          if (error instanceof LockQueueFullError) {
            addOne();
            if (tasks.size === 0) fail(error);
          } else if (!(error instanceof LockTimeoutError)) fail(error);
          else if (tasks.size === 0) resume('busy');
        });
      };
      let timer: Timer | undefined;
      const start = (count: number, left: number): void => {
        timer?.cancel();
        for (const one of others.splice(0, count)) contendFor(one, left);
        // A timer calls back in no caller's context, and the task would run there.
        if (others.length > 0) timer = new Timer(CHOICE_ADDED_AFTER, new CapturedContext().bind(addOne));
      };
      const addOne = (): void => {
        const { remaining } = wait;
        // With no time left it would be one attempt, which may take longer.
        if (remaining > 0) start(1, remaining);
      };
      start(CHOICES, waitTime);
      return () => {
        isOver = true;
        timer?.cancel();
        leaving?.abort(LEFT);
      };
    });
    return typeof entered === 'number' ? { index: entered, task: tasks.get(entered) as Promise<T> } : entered;
  }

  /** `end`: nothing may interrupt the caller any more. */
  return { tryEnter, enterAnyOf, enter, end: () => wait.end() };
}
