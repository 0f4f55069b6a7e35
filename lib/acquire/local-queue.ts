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

/** The waiters of a queue, and their request to the semaphore. */
class Waiting {
  readonly waiters = new LinkedList<Waiter>();
  readonly semaphore: Semaphore;
  isAsking = false;

  constructor(isTaken: boolean) {
    this.semaphore = new Semaphore(isTaken ? 0 : 1);
  }
}

/**
 * The local callers of one lock, served strictly in the order in which they came.
 *
 * async-mutex's Semaphore is the mutex between waiters (its Mutex costs ten times as much). A Semaphore cannot cancel a
 * single waiter, so waiters are kept in a list here, and one request to the semaphore stands for all of them. It is
 * granted to the first waiter of the list.
 */
export class LocalQueue {
  /** Made for the first waiter, and dropped with the turn of the last one: each lock has a queue, and few have waiters. */
  #waiting: Waiting | undefined;
  /** A caller has the turn. */
  #isTaken = false;

  /** The next caller, if there is one. */
  get next(): { readonly ttl: number; readonly since: number } | undefined {
    return this.#waiting?.waiters.first;
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
    this.#waiting?.waiters.first?.resume(turn);
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
      this.#waiting ??= new Waiting(this.#isTaken);
      this.#waiting.waiters.append(new Waiter(this, ttl, wait, resolve, reject));
      this.ask(this.#waiting);
    });
  }

  /** Resolves every waiter with a no-op turn. */
  dismiss(): void {
    while (this.next !== undefined) this.pass(new NoTurn());
  }

  /** Called when a turn is released. */
  released(): void {
    if (this.next !== undefined) {
      this.#waiting?.semaphore.release();
      return;
    }
    this.#waiting = undefined;
    this.#isTaken = false;
  }

  /** Called when a waiter has the turn, or has given up. */
  leave(waiter: Waiter): void {
    const waiting = this.#waiting;
    waiting?.waiters.remove(waiter);
    if (this.next !== undefined || !waiting?.isAsking) return;
    // Without waiters the request is cancelled: the next release would grant a turn that nobody takes.
    waiting.isAsking = false;
    waiting.semaphore.cancel();
  }

  /** Keeps one request in the semaphore's queue while there are waiters. */
  private ask(waiting: Waiting): void {
    if (waiting.isAsking) return;
    waiting.isAsking = true;
    this.#isTaken = true;
    waiting.semaphore.acquire().then(
      () => {
        waiting.isAsking = false;
        const turn = new LocalTurn(this);
        // All waiters may have left since: then the turn goes back.
        if (this.next === undefined) turn.release();
        else this.pass(turn);
        if (this.next !== undefined) this.ask(waiting);
      },
      () => undefined, // cancelled by the last waiter that left
    );
  }
}

class LocalTurn implements Turn {
  inherited: Turn['inherited'];
  #queue: LocalQueue | undefined;

  constructor(queue: LocalQueue) {
    this.#queue = queue;
  }

  get mayQueue(): true {
    return true;
  }

  release(): void {
    const queue = this.#queue;
    this.#queue = undefined;
    queue?.released();
  }
}
