import { clock } from '../internal/clock';

/** ms that a subscription stays without listeners: it spares a caller that waits again soon two requests. */
const LINGER = 1_000;

/** The subscription of one lock to its channels. The lock's protocol owns it. It outlasts its listeners by a moment. */
export class Subscription {
  readonly channels: readonly string[];
  /** Called with every message on one of the channels. */
  readonly onMessage: (message: string) => void;
  /** Redis has confirmed every channel. */
  isOpen = false;
  /** It has ended: no message comes any more. */
  isOver = false;
  #listeners = 0;
  /** When the last listener left. */
  #leftAt = 0;
  /** Set when that happens. It stays while listeners come and go: a timer for each would cost more than the rest. */
  #lingering: NodeJS.Timeout | undefined;
  readonly #end: (subscription: Subscription) => void;
  readonly #wakers = new Set<() => void>();

  /** `end` is called when the subscription has had no listeners for a while. */
  constructor(
    channels: readonly string[],
    onMessage: (message: string) => void,
    end: (subscription: Subscription) => void,
  ) {
    this.#end = end;
    this.channels = channels;
    this.onMessage = onMessage;
  }

  /** Somebody listens, until `leave`. */
  join(): void {
    this.#listeners++;
  }

  leave(): void {
    if (--this.#listeners > 0 || this.isOver) return;
    this.#leftAt = clock.now();
    if (this.#lingering === undefined) this.#linger(LINGER);
  }

  #linger(ms: number): void {
    this.#lingering = clock.setTimeout(() => this.#lingered(), ms);
    this.#lingering.unref?.();
  }

  #lingered(): void {
    this.#lingering = undefined;
    if (this.#listeners > 0) return;
    const left = this.#leftAt + LINGER - clock.now();
    if (left > 0) this.#linger(left);
    else this.#end(this);
  }

  /** Calls `waker` at every `wake`. Returns the function that stops it. */
  onWake(waker: () => void): () => void {
    this.#wakers.add(waker);
    return () => this.#wakers.delete(waker);
  }

  /** Something happened, or a message may have been missed. */
  wake(): void {
    for (const waker of [...this.#wakers]) waker();
  }

  /** Called by the subscriber when the channels are confirmed, or have failed. Waiters poll in both cases. */
  confirmed(isOpen: boolean): void {
    this.isOpen = isOpen;
    this.wake();
  }

  /** Called by the subscriber when it ends the subscription. */
  over(): void {
    this.isOver = true;
    this.isOpen = false;
    clock.clearTimeout(this.#lingering);
  }
}
