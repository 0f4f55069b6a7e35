import { Wait } from '../acquire/wait';
import type { DistributedLock, Lease, LockOptions } from '../distributed-lock';
import { CannotAcquireLockError, LockTimeoutError } from '../errors';
import { Timer } from '../internal/clock';

/** ms; an attempt has at least so long to be answered, however little is left of the wait. */
const ATTEMPT_AT_LEAST = 50;

/**
 * Who waits contends for two segments: with the choice of two, queues stay nearly as even as with the choice of all
 * (Mitzenmacher, "The Power of Two Choices"), and every further one costs Redis a command more for each order. For each
 * 100 ms that this was not enough another one is added, so that nobody waits long for the segment of a dead process.
 */
const CHOICES = 2;
const CHOICE_ADDED_AFTER = 100;

/** Why a segment is contended for no longer. Made once: a new one for each order would cost a stack trace. */
const LEFT = new Error('Another segment was entered, or the caller has left');

/** What is done in a segment that was entered. */
export type SegmentTask<T> = (lease: Lease, index: number) => T | PromiseLike<T>;

/** A segment that was entered. */
export interface Entry<T> {
  readonly index: number;
  /** What becomes of the task in it: settles as `DistributedLock.run` does. */
  readonly outcome: Promise<T>;
}

/** One caller's way through the segments of a lock: one wait budget and one signal over all of it. */
export class SegmentVisit {
  readonly #key: string;
  readonly #lockOf: (index: number) => DistributedLock;
  readonly #waitTime: number;
  readonly #signal: AbortSignal | undefined;
  readonly #leaseOptions: LockOptions;
  readonly #wait: Wait;

  constructor(key: string, lockOf: (index: number) => DistributedLock, options: LockOptions) {
    const { waitTime = Number.POSITIVE_INFINITY, signal, ...leaseOptions } = options;
    if (signal?.aborted) throw signal.reason;
    this.#key = key;
    this.#lockOf = lockOf;
    this.#waitTime = waitTime;
    this.#signal = signal;
    this.#leaseOptions = leaseOptions;
    this.#wait = new Wait(key, waitTime, signal);
  }

  /** Nothing may interrupt the caller any more. */
  end(): void {
    this.#wait.end();
  }

  /** Enters the segment if it is free; `'busy'` when somebody holds it. Rejects when the time is over before that is known. */
  async tryEnter<T>(index: number, task: SegmentTask<T>): Promise<Entry<T> | 'busy'> {
    // A wait of 0 is one attempt everywhere, and not one that has no time.
    if (this.#waitTime > 0 && this.#wait.remaining === 0) throw this.#timeout();
    // An attempt without a wait has as long as any command of the lock: longer, perhaps, than this caller has.
    const patience = this.#waitTime === 0 ? Number.POSITIVE_INFINITY : Math.max(this.#wait.remaining, ATTEMPT_AT_LEAST);
    const entry = await this.#contend([index], task, () => 0, patience);
    if (entry !== undefined) return entry;
    throw new CannotAcquireLockError(
      `Lock "${this.#key}" could not be acquired: Redis has not said for ${Math.round(patience)} ms whether segment ${index} is free`,
      this.#key,
    );
  }

  /** Waits for any of these segments, and enters the first that is to be had. `LockTimeoutError` when the time is over. */
  async enterAnyOf<T>(indices: readonly number[], task: SegmentTask<T>): Promise<Entry<T>> {
    if (this.#wait.remaining === 0) throw this.#timeout();
    const entry = await this.#contend(indices, task, () => this.#wait.remaining);
    if (entry === undefined || entry === 'busy') throw this.#timeout();
    return entry;
  }

  /** Enters this segment, as soon as it is free where the caller waits at all. `LockTimeoutError` when the time is over. */
  async enter<T>(index: number, task: SegmentTask<T>): Promise<Entry<T>> {
    if (this.#waitTime > 0) return this.enterAnyOf([index], task);
    const entry = await this.tryEnter(index, task);
    if (entry === 'busy') throw this.#timeout();
    return entry;
  }

  #timeout(): LockTimeoutError {
    return new LockTimeoutError(this.#key, this.#waitTime);
  }

  /**
   * Contends for these segments and enters the first that is to be had; the others are left, and what is granted too
   * late goes back unused. `'busy'`: others held them until `waitTime` was over; `undefined`: `patience` ms were over
   * before that was known. Once a segment is entered nothing interrupts the task.
   */
  async #contend<T>(
    indices: readonly number[],
    task: SegmentTask<T>,
    waitTime: () => number,
    patience = Number.POSITIVE_INFINITY,
  ): Promise<Entry<T> | 'busy' | undefined> {
    const locks = new Map(indices.map((index) => [index, this.#lockOf(index)]));
    // Where there is nothing to leave but at the caller's own signal, that one will do: a controller costs a tenth of it all.
    const mayLeave = indices.length > 1 || patience < Number.POSITIVE_INFINITY;
    const leaving = mayLeave ? new AbortController() : undefined;
    const signal = leaving?.signal ?? this.#signal;
    const outcomes = new Map<number, Promise<T>>();
    let isOver = false;
    const entered = await this.#wait.suspend<number | 'busy'>(patience, (resume, fail) => {
      const contend = ([index, lock]: [number, DistributedLock]): void => {
        let isInside = false;
        const options = { ...this.#leaseOptions, waitTime: waitTime(), signal };
        const outcome = lock.run((lease) => {
          if (isOver) throw LEFT;
          isInside = true;
          resume(index);
          return task(lease, index);
        }, options);
        outcomes.set(index, outcome);
        outcome.catch((error: unknown) => {
          // Whoever is inside learns of it from the outcome: it may be a LockTimeoutError too, of a lock in the task.
          if (isInside) return;
          if (!(error instanceof LockTimeoutError)) fail(error);
          else if (outcomes.delete(index) && outcomes.size === 0) resume('busy');
        });
      };
      const others = [...locks];
      let timer: Timer | undefined;
      const contendFor = (many: number): void => {
        others.splice(0, many).forEach(contend);
        if (others.length > 0) timer = new Timer(CHOICE_ADDED_AFTER, () => contendFor(1));
      };
      contendFor(CHOICES);
      return () => {
        isOver = true;
        timer?.cancel();
        leaving?.abort(LEFT);
      };
    });
    if (entered === undefined || entered === 'busy') return entered;
    return { index: entered, outcome: outcomes.get(entered) as Promise<T> };
  }
}
