import { Semaphore } from 'async-mutex';
import type { Wait } from './wait';

/** The right to contend for one lock in Redis, of which there is one in a process. */
export interface Turn {
  /** Lets the next local caller have it. A second call does nothing. */
  release(): void;
}

interface Waiter {
  /** ms; what it will ask Redis for. */
  readonly ttl: number;
  readonly grant: (turn: Turn) => void;
  previous: Waiter | undefined;
  next: Waiter | undefined;
}

/**
 * The local callers of one lock, served strictly in the order they came.
 *
 * async-mutex's Semaphore is the mutex (its Mutex costs ten times as much). It cannot cancel one waiter, so a waiter
 * never enters its queue: the waiters stand in a list here, which each can leave at once, and the semaphore is asked
 * for once, for whoever is the first when it is granted.
 */
export class LocalQueue {
  readonly #semaphore = new Semaphore(1);
  #first: Waiter | undefined;
  #last: Waiter | undefined;
  #asking = false;

  /** Somebody has the turn. */
  get isTaken(): boolean {
    return this.#semaphore.isLocked();
  }

  /** Who is next, if somebody waits. */
  get next(): { readonly ttl: number } | undefined {
    return this.#first;
  }

  /** Gives a turn that was not released directly to the one who is next. */
  pass(turn: Turn): void {
    this.#first?.grant(turn);
  }

  /** Takes the turn if it is free, in this very tick, so that nobody can come between the question and the answer. */
  tryEnter(): Turn | undefined {
    if (this.isTaken || this.#first !== undefined) return undefined;
    const acquired = this.#semaphore.acquire();
    return { release: () => void acquired.then(([, release]) => release()) };
  }

  /** Waits for the turn; `undefined` when the caller's time is over before. */
  enter(wait: Wait, ttl: number): Promise<Turn | undefined> {
    return wait.suspend<Turn>(wait.remaining, (grant) => {
      const waiter = this.#append(ttl, grant);
      this.#ask();
      return () => this.#remove(waiter);
    });
  }

  /** Keeps one request in the semaphore's queue as long as somebody waits. */
  #ask(): void {
    if (this.#asking) return;
    this.#asking = true;
    this.#semaphore.acquire().then(
      ([, release]) => {
        this.#asking = false;
        // Everybody may have left since: then the turn goes back.
        if (this.#first === undefined) release();
        else this.#first.grant({ release });
        if (this.#first !== undefined) this.#ask();
      },
      () => undefined, // cancelled by the last who left
    );
  }

  /** Lets everybody who waits go, with a turn that is none. */
  dismiss(): void {
    while (this.#first !== undefined) this.#first.grant({ release: () => undefined });
  }

  #append(ttl: number, grant: (turn: Turn) => void): Waiter {
    const waiter: Waiter = { ttl, grant, previous: this.#last, next: undefined };
    if (this.#last === undefined) this.#first = waiter;
    else this.#last.next = waiter;
    this.#last = waiter;
    return waiter;
  }

  #remove(waiter: Waiter): void {
    if (waiter.previous === undefined) this.#first = waiter.next;
    else waiter.previous.next = waiter.next;
    if (waiter.next === undefined) this.#last = waiter.previous;
    else waiter.next.previous = waiter.previous;
    if (this.#first !== undefined || !this.#asking) return;
    // Nobody waits any more: else the turn would be taken for nobody, for a moment, when it is released.
    this.#asking = false;
    this.#semaphore.cancel();
  }
}
