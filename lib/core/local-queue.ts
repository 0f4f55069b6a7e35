import { Semaphore } from 'async-mutex';
import { type Linked, LinkedList } from '../internal/linked-list';
import { Step, type Wait } from './wait';

/** The right to contend for a lock, or to enter a scope. One caller has it at a time. */
export class Turn {
  #queue: { released(): void } | undefined;

  /** Without a queue: a turn that nobody has to give back. */
  constructor(queue?: { released(): void }) {
    this.#queue = queue;
  }

  /** Others wait until it is given back. */
  get isHeld(): boolean {
    return this.#queue !== undefined;
  }

  /** Gives the turn to the next caller. A second call does nothing. */
  release(): void {
    const queue = this.#queue;
    this.#queue = undefined;
    queue?.released();
  }
}

/** In place of a turn: the caller of a shared lock makes one attempt beside the caller that has the turn. */
export const BESIDE = new Turn();

/** The step in which a caller waits for the turn, or for what is passed in its place. */
class Waiter<Caller, T> extends Step<Turn | T> implements Linked<Waiter<Caller, T>> {
  previous: Waiter<Caller, T> | undefined;
  next: Waiter<Caller, T> | undefined;
  readonly caller: Caller;
  readonly #list: LinkedList<Waiter<Caller, T>>;

  constructor(
    caller: Caller,
    wait: Wait,
    list: LinkedList<Waiter<Caller, T>>,
    resolve: (value: Turn | T | undefined) => void,
    reject: (error: unknown) => void,
  ) {
    super(wait, wait.remaining, resolve, reject);
    this.caller = caller;
    this.#list = list;
  }

  protected override over(): void {
    this.#list.remove(this);
  }
}

/** The waiters of a queue, and their request to the semaphore. */
class Waiters<Caller, T> {
  readonly list = new LinkedList<Waiter<Caller, T>>();
  readonly semaphore: Semaphore;
  isAsking = false;

  constructor(isTaken: boolean) {
    this.semaphore = new Semaphore(isTaken ? 0 : 1);
  }
}

/**
 * The local callers of one lock, served strictly in the order in which they came. Whether the next one gets the hold, or
 * another process the lock, is decided by `Passing.passOn`.
 *
 * async-mutex's Semaphore lets them wait for each other (its Mutex costs ten times as much). It cannot cancel a single
 * waiter. So a list here keeps the waiters and their order, and one request to the semaphore stands for all of them: it
 * is granted to the first waiter of the list. A turn that nobody waits for needs the flag alone.
 */
export class LocalQueue<Caller = void, T = never> {
  /** Made for the first waiter, and dropped with the turn of the last one: each lock has a queue, and few have waiters. */
  #waiting: Waiters<Caller, T> | undefined;
  #isTaken: boolean;

  /** `isTaken`: a caller has the turn. */
  constructor(isTaken = false) {
    this.#isTaken = isTaken;
  }

  /** Also while callers wait for the turn. */
  get isTaken(): boolean {
    return this.#isTaken;
  }

  get hasWaiters(): boolean {
    return this.#waiting?.list.first !== undefined;
  }

  /** How many callers wait for the turn. */
  get length(): number {
    return this.#waiting?.list.size ?? 0;
  }

  /** The caller that gets the turn next. */
  get next(): Caller | undefined {
    return this.#waiting?.list.first?.caller;
  }

  /** Takes the turn if it is free, synchronously: no other caller can come between the question and the answer. */
  tryEnter(): Turn | undefined {
    if (this.#isTaken) return undefined;
    this.#isTaken = true;
    return new Turn(this);
  }

  /** Waits for the turn; `undefined` when the caller's waitTime is over first, and for one that does not wait. */
  enter(caller: Caller, wait: Wait): Promise<Turn | T | undefined> {
    if (wait.isSingleAttempt) return Promise.resolve(undefined);
    return new Promise((resolve, reject) => {
      wait.throwIfInterrupted();
      this.#waiting ??= new Waiters(this.#isTaken);
      const { list } = this.#waiting;
      list.append(new Waiter<Caller, T>(caller, wait, list, resolve, reject));
      this.ask(this.#waiting);
    });
  }

  /** Passes the turn to the next caller without a release, or what that caller gets in its place. */
  pass(entry: Turn | T = new Turn(this)): void {
    this.#waiting?.list.first?.resume(entry);
  }

  /** Gives every waiter a turn that is none. */
  dismiss(): void {
    while (this.hasWaiters) this.pass(new Turn());
  }

  /** The turn is given back: by `Turn.release`, or by what has taken its place. */
  released(): void {
    if (this.#waiting?.list.first !== undefined) {
      this.#waiting.semaphore.release();
      return;
    }
    this.#waiting = undefined;
    this.#isTaken = false;
    this.freed();
  }

  /** The turn is free, and nobody waits for it. */
  protected freed(): void {}

  /** Keeps one request in the semaphore's queue while there are waiters. It stays when they leave, for the next ones. */
  private ask(waiting: Waiters<Caller, T>): void {
    if (waiting.isAsking) return;
    waiting.isAsking = true;
    this.#isTaken = true;
    void waiting.semaphore.acquire().then(() => {
      waiting.isAsking = false;
      const turn = new Turn(this);
      // All waiters may have left since: then the turn goes back.
      if (this.hasWaiters) this.pass(turn);
      else turn.release();
      if (this.hasWaiters) this.ask(waiting);
    });
  }
}
