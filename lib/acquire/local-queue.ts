import { Semaphore } from 'async-mutex';
import { type Linked, LinkedList } from '../internal/linked-list';
import { Step } from './step';
import { NoTurn, type Turn } from './turn';
import type { Wait } from './wait';

/** The step in which a caller waits for the turn. */
class Waiter extends Step<Turn> implements Linked<Waiter> {
  previous: Waiter | undefined;
  next: Waiter | undefined;
  /** ms; the ttl that it will ask Redis for. */
  readonly ttl: number;
  /** When it called, on the monotonic clock. */
  readonly since: number;
  readonly #queue: LocalQueue;

  constructor(
    queue: LocalQueue,
    ttl: number,
    wait: Wait,
    resolve: (turn: Turn | undefined) => void,
    reject: (error: unknown) => void,
  ) {
    super(wait, wait.remaining, resolve, reject);
    this.#queue = queue;
    this.ttl = ttl;
    this.since = wait.startedAt;
  }

  protected undo(): void {
    this.#queue.leave(this);
  }
}

/**
 * The local callers of one lock, served strictly in the order in which they came.
 *
 * async-mutex's Semaphore is the mutex between waiters (its Mutex costs ten times as much). A Semaphore cannot cancel a
 * single waiter, so waiters are kept in a list here, and one request to the semaphore stands for all of them. It is
 * granted to the first waiter of the list. While there are no waiters there is no semaphore.
 */
export class LocalQueue {
  /** Made for the first waiter. */
  #waiters: LinkedList<Waiter> | undefined;
  #semaphore: Semaphore | undefined;
  /** A caller has the turn. */
  #isTaken = false;
  #asking = false;

  /** The next caller, if there is one. */
  get next(): { readonly ttl: number; readonly since: number } | undefined {
    return this.#waiters?.first;
  }

  /**
   * Whether the next caller can take an acquisition made for the one that was next then. That one may have left since,
   * and the next one may ask for another ttl. Its position in a queue in Redis is its own.
   */
  takes({ ttl, since }: { readonly ttl: number; readonly since: number }, isGranted: boolean): boolean {
    const { next } = this;
    return next !== undefined && Math.ceil(next.ttl) === ttl && (isGranted || next.since === since);
  }

  /** Passes the turn to the next caller without a release. */
  pass(turn: Turn): void {
    this.#waiters?.first?.resume(turn);
  }

  /** Takes the turn if it is free, synchronously: no other caller can come between the question and the answer. */
  tryEnter(): Turn | undefined {
    if (this.#isTaken || this.next !== undefined) return undefined;
    this.#isTaken = true;
    return new LocalTurn(this);
  }

  /** Waits for the turn; `undefined` when the caller's waitTime is over first, and for one that does not wait. */
  enter(wait: Wait, ttl: number): Promise<Turn | undefined> {
    if (wait.isSingleAttempt) return Promise.resolve(undefined);
    return new Promise((resolve, reject) => {
      wait.throwIfInterrupted();
      this.#waiters ??= new LinkedList();
      this.#waiters.append(new Waiter(this, ttl, wait, resolve, reject));
      this.#ask();
    });
  }

  /** Resolves every waiter with a no-op turn. */
  dismiss(): void {
    while (this.next !== undefined) this.pass(new NoTurn());
  }

  /** Called when a turn is released. */
  released(): void {
    if (this.next !== undefined) {
      this.#semaphore?.release();
      return;
    }
    this.#semaphore = undefined;
    this.#isTaken = false;
  }

  /** Called when a waiter has the turn, or has given up. */
  leave(waiter: Waiter): void {
    this.#waiters?.remove(waiter);
    if (this.next !== undefined || !this.#asking) return;
    // Without waiters the request is cancelled: the next release would grant a turn that nobody takes.
    this.#asking = false;
    this.#semaphore?.cancel();
  }

  /** Keeps one request in the semaphore's queue while there are waiters. */
  #ask(): void {
    if (this.#asking) return;
    this.#asking = true;
    this.#semaphore ??= new Semaphore(this.#isTaken ? 0 : 1);
    this.#isTaken = true;
    this.#semaphore.acquire().then(
      () => {
        this.#asking = false;
        const turn = new LocalTurn(this);
        // All waiters may have left since: then the turn goes back.
        if (this.next === undefined) turn.release();
        else this.pass(turn);
        if (this.next !== undefined) this.#ask();
      },
      () => undefined, // cancelled by the last waiter that left
    );
  }
}

class LocalTurn implements Turn {
  inherited: Turn['inherited'];
  readonly mayQueue = true;
  #queue: LocalQueue | undefined;

  constructor(queue: LocalQueue) {
    this.#queue = queue;
  }

  release(): void {
    const queue = this.#queue;
    this.#queue = undefined;
    queue?.released();
  }
}
