/** What the waiters of one lock hear, on one channel or several, as long as one of them listens and a moment longer. */
export class Subscription {
  /** Which messages are meant: other locks may share a channel, and the body of a message says which it is about. */
  readonly body: string;
  readonly channels: readonly string[];
  /** Messages that came, and occasions on which one may have been missed; a number that only grows. */
  messages = 0;
  /** Redis has confirmed every channel. */
  isOpen = false;
  /** Kept by the subscriber: how many listen, and the timer that ends it when nobody does. */
  listeners = 0;
  lingering: NodeJS.Timeout | undefined;
  readonly #wakers = new Set<() => void>();

  constructor(body: string, channels: readonly string[]) {
    this.body = body;
    this.channels = channels;
  }

  /** Calls `waker` at the next message; returns what takes it back. */
  next(waker: () => void): () => void {
    this.#wakers.add(waker);
    return () => this.#wakers.delete(waker);
  }

  wake(): void {
    this.messages++;
    for (const waker of [...this.#wakers]) waker();
  }

  /** It stands, or it is not to be had: whoever waits looks again in any case. */
  settle(isOpen: boolean): void {
    this.isOpen = isOpen;
    this.wake();
  }
}
