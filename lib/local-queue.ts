import { Semaphore } from 'async-mutex';
import { type Linked, LinkedList } from './linked-list';
import { NoTurn, type Turn } from './turn';
import type { Wait } from './wait';

interface Waiter extends Linked<Waiter> {
  /** ms; what it will ask Redis for. */
  readonly ttl: number;
  readonly grant: (turn: Turn) => void;
}

/**
 * The local callers of one lock, served strictly in the order they came.
 *
 * async-mutex's Semaphore is the mutex of those who wait (its Mutex costs ten times as much). It cannot cancel one
 * waiter, so a waiter never enters its queue: the waiters stand in a list here, which each can leave at once, and the
 * semaphore is asked for once, for whoever is the first when it is granted. As long as nobody waits there is none.
 */
export class LocalQueue {
  readonly #waiters = new LinkedList<Waiter>();
  #semaphore: Semaphore | undefined;
  #isTaken = false;
  #asking = false;

  /** Somebody has the turn. */
  get isTaken(): boolean {
    return this.#isTaken;
  }

  /** Who is next, if somebody waits. */
  get next(): { readonly ttl: number } | undefined {
    return this.#waiters.first;
  }

  /** Gives a turn that was not released directly to the one who is next. */
  pass(turn: Turn): void {
    this.#waiters.first?.grant(turn);
  }

  /** Takes the turn if it is free, in this very tick, so that nobody can come between the question and the answer. */
  tryEnter(): Turn | undefined {
    if (this.#isTaken || this.#waiters.first !== undefined) return undefined;
    this.#isTaken = true;
    return new LocalTurn(this);
  }

  /** Waits for the turn; `undefined` when the caller's time is over before. */
  enter(wait: Wait, ttl: number): Promise<Turn | undefined> {
    return wait.suspend<Turn>(wait.remaining, (grant) => {
      const waiter: Waiter = { ttl, grant, previous: undefined, next: undefined };
      this.#waiters.append(waiter);
      this.#ask();
      return () => this.#leave(waiter);
    });
  }

  /** Lets everybody who waits go, with a turn that is none. */
  dismiss(): void {
    while (this.#waiters.first !== undefined) this.#waiters.first.grant(new NoTurn());
  }

  /** Of the turn, whose owner is done with it. */
  released(): void {
    if (this.#waiters.first !== undefined) {
      this.#semaphore?.release();
      return;
    }
    this.#semaphore = undefined;
    this.#isTaken = false;
  }

  /** Keeps one request in the semaphore's queue as long as somebody waits. */
  #ask(): void {
    if (this.#asking) return;
    this.#asking = true;
    this.#semaphore ??= new Semaphore(this.#isTaken ? 0 : 1);
    this.#isTaken = true;
    this.#semaphore.acquire().then(
      () => {
        this.#asking = false;
        const turn = new LocalTurn(this);
        // Everybody may have left since: then the turn goes back.
        if (this.#waiters.first === undefined) turn.release();
        else this.#waiters.first.grant(turn);
        if (this.#waiters.first !== undefined) this.#ask();
      },
      () => undefined, // cancelled by the last who left
    );
  }

  #leave(waiter: Waiter): void {
    this.#waiters.remove(waiter);
    if (this.#waiters.first !== undefined || !this.#asking) return;
    // Nobody waits any more: else the turn would be taken for nobody, for a moment, when it is released.
    this.#asking = false;
    this.#semaphore?.cancel();
  }
}

class LocalTurn implements Turn {
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
