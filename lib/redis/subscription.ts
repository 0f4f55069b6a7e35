import type { RedisSubscriber } from '../api/options';
import { clock } from '../internal/clock';
import { States } from '../internal/states';
import { WakeTimer } from '../internal/timers';

/** ms that a subscription stays without listeners: it spares a caller that waits again soon two requests. */
const LINGER = 1_000;

/** The life of a subscription: its states, what ends each of them, and what may follow. */
const STATES = new States('subscription', {
  /** Redis has not confirmed every channel: waiters poll. */
  opening: ['open', 'over'],
  /** Messages come, also after a reconnect. Ends without listeners for a while, or with its connection. */
  open: ['over'],
  /** No message comes any more. */
  over: [],
});

/** The subscription of one lock to its channels. The lock's protocol owns it. It outlasts its listeners by a moment. */
export class Subscription {
  readonly channels: readonly string[];
  /** Called with every message on one of the channels. */
  readonly onMessage: (message: string) => void;
  #state: keyof typeof STATES.following = 'opening';
  #listeners = 0;
  #lingersUntil = 0;
  /** One timer stays while listeners come and go: one for each would cost more than the rest. */
  readonly #lingering = new WakeTimer(() => this.#lingered(), false);
  readonly #end: (subscription: Subscription) => void;
  readonly #wakers = new Set<() => void>();
  /** Runs while its channels are not confirmed. */
  #late: NodeJS.Timeout | undefined;

  /** `end` is called when the subscription has had no listeners for a while. */
  constructor(
    channels: readonly string[],
    onMessage: (message: string) => void,
    end: (subscription: Subscription) => void,
  ) {
    this.channels = channels;
    this.onMessage = onMessage;
    this.#end = end;
  }

  /** Somebody listens, until `leave`. */
  join(): void {
    this.#listeners++;
  }

  leave(): void {
    if (--this.#listeners > 0 || this.isOver) return;
    this.#lingersUntil = clock.now() + LINGER;
    this.#lingering.by(this.#lingersUntil);
  }

  #lingered(): void {
    if (this.#listeners > 0) return;
    if (clock.now() < this.#lingersUntil) this.#lingering.by(this.#lingersUntil);
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

  get isOpen(): boolean {
    return this.#state === 'open';
  }

  get isOver(): boolean {
    return this.#state === 'over';
  }

  /** Its channels are subscribed: `onLate` is called where that is not confirmed within `ms`. */
  waitsForAnswer(ms: number, onLate: () => void): void {
    this.#late = clock.setTimeout(onLate, ms);
    this.#late.unref?.();
  }

  /** Called by the subscriber when the channels are confirmed: what was published before was missed. */
  opened(): void {
    this.#state = STATES.become.open(this.#state);
    clock.clearTimeout(this.#late);
    this.wake();
  }

  /** Called by the subscriber when it ends the subscription. */
  over(): void {
    if (!this.isOver) this.#state = STATES.become.over(this.#state);
    clock.clearTimeout(this.#late);
    this.#lingering.close();
  }
}

/** A channel, and the subscriptions that get its messages. */
export class Channel {
  readonly users = new Set<Subscription>();
  /** `undefined`: nobody knows. Where an unsubscribe failed with its connection, node-redis subscribes again on the next one. */
  isSubscribed: boolean | undefined = false;
  /** Where it was subscribed. */
  connection!: RedisSubscriber;
  /** The last command about it. */
  traffic: Promise<void> = Promise.resolve();

  // `unknown` since node-redis' type allows buffers. No listener of ours asks for them.
  readonly deliver = (message: unknown): void => {
    for (const { onMessage } of [...this.users]) onMessage(String(message));
  };
}
