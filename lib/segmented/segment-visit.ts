import type { DistributedLock, Lease, LockOptions } from '../api/distributed-lock';
import { CannotAcquireLockError, LockTimeoutError } from '../api/errors';
import { LEAST_TIME_TO_ANSWER, Wait } from '../core/wait';
import { Timer } from '../internal/clock';

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
export type SegmentTask<T> = (lease: Lease, index: number) => T | PromiseLike<T>;

/** A segment that was entered. */
export interface Entry<T> {
  readonly index: number;
  /** Settles as the task does, as `DistributedLock.run` says. */
  readonly task: Promise<T>;
}

/** One caller's way through the segments of a lock, with one waitTime and one signal for all of them. */
export class SegmentVisit {
  readonly #lockOf: (index: number) => DistributedLock;
  readonly #options: LockOptions;
  readonly #wait: Wait;

  constructor(key: string, lockOf: (index: number) => DistributedLock, options: LockOptions) {
    const { waitTime = Number.POSITIVE_INFINITY, signal } = options;
    if (signal?.aborted) throw signal.reason;
    this.#lockOf = lockOf;
    this.#options = options;
    this.#wait = new Wait(key, waitTime, signal);
  }

  /** Nothing may interrupt the caller any more. */
  end(): void {
    this.#wait.end();
  }

  /** Enters the segment if it is free; `undefined`: it is busy. Rejects when the time is over before that is known. */
  async tryEnter<T>(index: number, task: SegmentTask<T>): Promise<Entry<T> | undefined> {
    const { isSingleAttempt, key, remaining } = this.#wait;
    // A waitTime of 0 is one attempt, and not an attempt without time.
    if (remaining === 0 && !isSingleAttempt) throw this.#timeout();
    // An attempt without a wait has as long as any command of the lock: longer, perhaps, than this caller has.
    const limit = isSingleAttempt ? Number.POSITIVE_INFINITY : Math.max(remaining, LEAST_TIME_TO_ANSWER);
    const entry = await this.#contend([index], task, () => 0, limit);
    if (entry !== undefined) return entry === 'busy' ? undefined : entry;
    const why = `Redis has not said for ${Math.round(limit)} ms whether segment ${index} is free`;
    throw new CannotAcquireLockError(`Lock "${key}" could not be acquired: ${why}`, key);
  }

  /** Waits for any of these segments and enters the first that is granted. `LockTimeoutError` when the time is over. */
  async enterAnyOf<T>(indices: readonly number[], task: SegmentTask<T>): Promise<Entry<T>> {
    if (this.#wait.remaining === 0) throw this.#timeout();
    const entry = await this.#contend(indices, task, () => this.#wait.remaining, Number.POSITIVE_INFINITY);
    if (entry === undefined || entry === 'busy') throw this.#timeout();
    return entry;
  }

  /**
   * Enters this segment, as soon as it is free where the caller waits at all. `LockTimeoutError` when the time is over.
   */
  async enter<T>(index: number, task: SegmentTask<T>): Promise<Entry<T>> {
    if (!this.#wait.isSingleAttempt) return this.enterAnyOf([index], task);
    const entry = await this.tryEnter(index, task);
    if (entry === undefined) throw this.#timeout();
    return entry;
  }

  #timeout(): LockTimeoutError {
    return new LockTimeoutError(this.#wait.key, this.#options.waitTime ?? Number.POSITIVE_INFINITY);
  }

  /**
   * Contends for these segments, for up to `limit` ms, and enters the first that is granted. It leaves the others; a
   * grant that comes too late is released unused. Once a segment is entered, nothing interrupts the task. `busy`: others
   * held the segments until the wait was over; `undefined`: the time was over before that was known.
   */
  async #contend<T>(
    indices: readonly number[],
    task: SegmentTask<T>,
    waitTime: () => number,
    limit: number,
  ): Promise<Entry<T> | 'busy' | undefined> {
    // With one segment and no limit the caller's signal suffices; an AbortController would add about 10 % to the cost.
    const mayLeave = indices.length > 1 || limit < Number.POSITIVE_INFINITY;
    const leaving = mayLeave ? new AbortController() : undefined;
    const signal = leaving?.signal ?? this.#options.signal;
    // All of them first: where the cache is full, the call is rejected before it contends for any.
    const others = indices.map((index) => ({ index, lock: this.#lockOf(index) }));
    const tasks = new Map<number, Promise<T>>();
    let isOver = false;
    const entered = await this.#wait.suspend<number | 'busy'>(limit, (resume, fail) => {
      const contendFor = ({ index, lock }: { index: number; lock: DistributedLock }): void => {
        let isInside = false;
        const options = { ...this.#options, waitTime: waitTime(), signal };
        const running = lock.run((lease) => {
          if (isOver) throw LEFT;
          isInside = true;
          resume(index);
          return task(lease, index);
        }, options);
        tasks.set(index, running);
        running.catch((error: unknown) => {
          // An error inside is reported by the task's promise: it may be the LockTimeoutError of a lock in the task.
          if (isInside) return;
          if (!(error instanceof LockTimeoutError)) fail(error);
          else if (tasks.delete(index) && tasks.size === 0) resume('busy');
        });
      };
      let timer: Timer | undefined;
      const startNext = (count: number): void => {
        others.splice(0, count).forEach(contendFor);
        if (others.length > 0) timer = new Timer(CHOICE_ADDED_AFTER, () => startNext(1));
      };
      startNext(CHOICES);
      return () => {
        isOver = true;
        timer?.cancel();
        leaving?.abort(LEFT);
      };
    });
    return typeof entered === 'number' ? { index: entered, task: tasks.get(entered) as Promise<T> } : entered;
  }
}
