/** What is made of a message. Other locks may share a channel: then its body says which one is meant. */
export type Hear = (message: string, subscription: Subscription) => void;

/** What the waiters of one lock hear, on one channel or several, as long as one of them listens and a moment longer. */
export class Subscription {
  /** Whose it is: there is one for each lock. */
  readonly id: string;
  readonly channels: readonly string[];
  readonly hear: Hear;
  /** Messages that came, and occasions on which one may have been missed; a number that only grows. */
  messages = 0;
  /** Redis has confirmed every channel. */
  isOpen = false;
  /** It was not to be had. */
  hasFailed = false;
  /** Kept by the subscriber: how many listen, and the timer that ends it when nobody does. */
  listeners = 0;
  lingering: NodeJS.Timeout | undefined;
  readonly #wakers = new Set<() => void>();

  constructor(id: string, channels: readonly string[], hear: Hear) {
    this.id = id;
    this.channels = channels;
    this.hear = hear;
  }

  /** Calls `waker` at every `wake`; returns what takes it back. */
  next(waker: () => void): () => void {
    this.#wakers.add(waker);
    return () => this.#wakers.delete(waker);
  }

  /** There is news, or there may be: a message may have been missed. */
  wake(): void {
    this.messages++;
    for (const waker of [...this.#wakers]) waker();
  }

  /** It stands, or it is not to be had: whoever waits looks again in any case. */
  settle(isOpen: boolean): void {
    this.isOpen = isOpen;
    this.hasFailed = !isOpen;
    this.wake();
  }
}
