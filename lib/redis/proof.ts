import { clock } from '../internal/clock';
import { WakeTimer } from '../internal/timers';
import { WaitingTime } from '../internal/waiting-time';
import { Script } from './script';
import type { Subscription } from './subscription';

/**
 * ms of waiting after which a connection for messages has to prove itself: most waits are over by then. After a pause as
 * long, another wait begins.
 */
const PROVED_AFTER = 250;

/** ms between two proofs while callers wait. */
export const PROVED_EVERY = 3_000;

/** ms that Redis has to confirm the channel, over a connection on which it has confirmed others. */
const CONFIRMED_WITHIN = 1_000;

/** ms that a message has to arrive, once Redis has answered that it was published: to one connection, or to none. */
export const ARRIVES_WITHIN = 1_000;
const UNCOUNTED_ARRIVES_WITHIN = 250;

/**
 * Publishes a message.
 *
 * KEYS: a lock, which says to a cluster what server is asked
 * ARGV: PUBLISH or SPUBLISH, the channel, the message
 * Returns how many connections got it, as far as this server knows.
 */
export const PUBLISH = new Script('publish a proof', 'return redis.call(ARGV[1], ARGV[2], ARGV[3])');

/** What a proof needs. */
export interface Proving {
  /** Redis has confirmed channels on the connection. A new one may take long to connect: that is reported elsewhere. */
  isConnected(): boolean;
  /** `undefined`: there is no connection for messages now. */
  subscribe(onMessage: (message: string) => void): Subscription | undefined;
  /** Resolves to the connections that got it; to -1 where the server cannot count them. */
  publish(message: string): Promise<number>;
  /** No message arrives. True: the connection is made anew. */
  deaf(cause: Error): boolean;
  /** A message arrived. `isCounted`: the server of the commands counts the connection that it arrived on. */
  heard(isCounted: boolean): void;
  /** Nobody waits any more. */
  idle(): void;
}

/**
 * Whether messages arrive. A connection may be gone for the server and open for the client, or be subscribed at another
 * server than commands go to: nothing says so. So while callers wait, a registry publishes a message to itself, every
 * three seconds. If the message does not come back, waiters poll as those of type `spin` do, until one comes.
 */
export class Proof {
  /** The last message to itself did not arrive. */
  isDeaf = false;
  readonly #proving: Proving;
  readonly #timer = new WakeTimer(() => void this.#onTimer(), false);
  #state: 'idle' | 'opening' | 'published' = 'idle';
  readonly #waiting = new WaitingTime(PROVED_AFTER);
  #provedAt = Number.NEGATIVE_INFINITY;
  #subscription: Subscription | undefined;
  /** Redis had confirmed the channel before the last message. */
  #wasOpen: boolean | undefined;
  /** The number of the last message, of the last one that arrived, and what Redis answered to the last one. */
  #last = 0;
  #arrived = 0;
  #count: number | undefined;

  constructor(proving: Proving) {
    this.#proving = proving;
  }

  /** A caller waits, until `leave`. */
  join(): void {
    const now = clock.now();
    if (!this.#waiting.begin(now) || this.#state !== 'idle') return;
    this.#timer.by(Math.max(this.#waiting.since + PROVED_AFTER, this.#provedAt + PROVED_EVERY), now);
  }

  leave(): void {
    if (this.#waiting.end(clock.now()) && this.#state === 'idle') this.#rest();
  }

  /** Something was not heard that is to be expected: the next caller that waits for long has it proved at once. */
  doubt(): void {
    this.#provedAt = Number.NEGATIVE_INFINITY;
  }

  /** Leaves no timer behind. */
  close(): void {
    this.#state = 'idle';
    this.#rest();
    this.#timer.close();
  }

  /** Nothing is to be proved. */
  #rest(): void {
    this.#timer.cancel();
    this.#subscription?.leave();
    this.#subscription = undefined;
    this.#proving.idle();
  }

  async #onTimer(): Promise<void> {
    if (this.#state === 'idle' || this.#subscription?.isOver) {
      // At first, or after it has ended with its connection.
      this.#begin();
    } else if (this.#state === 'opening') {
      if (this.#proving.isConnected()) this.#publish();
      else this.#timer.by(clock.now() + CONFIRMED_WITHIN);
    } else {
      // After a block of the event loop, the message may lie in the socket.
      for (let turn = 0; turn < 2; turn++) await clock.immediate();
      if (this.#state === 'published') this.#judge();
    }
  }

  #judge(): void {
    if (this.#subscription?.isOpen === this.#wasOpen) {
      this.isDeaf = true;
      const cause = new Error('a message of this registry to itself does not arrive');
      this.#next(this.#proving.deaf(cause) ? 0 : PROVED_EVERY);
      return;
    }
    // The channel was confirmed after the message.
    this.#state = 'opening';
    this.#publish();
  }

  #begin(): void {
    if (this.#subscription?.isOver !== false) {
      this.#subscription = this.#proving.subscribe((message) => this.#received(Number(message)));
      this.#subscription?.join();
      this.#subscription?.onWake(() => {
        if (this.#subscription?.isOpen) this.#publish();
      });
    }
    if (this.#subscription === undefined) {
      this.#next(PROVED_EVERY);
      return;
    }
    this.#state = 'opening';
    if (this.#subscription.isOpen) this.#publish();
    else this.#timer.by(clock.now() + CONFIRMED_WITHIN);
  }

  #publish(): void {
    if (this.#state !== 'opening') return;
    this.#timer.cancel();
    this.#state = 'published';
    this.#wasOpen = this.#subscription?.isOpen;
    this.#count = undefined;
    const message = ++this.#last;
    // Where commands fail too, nothing is known of messages.
    this.#proving.publish(String(message)).then(
      (count) => this.#answered(message, count),
      () => this.#state === 'published' && message === this.#last && this.#next(PROVED_EVERY),
    );
  }

  #answered(message: number, count: number): void {
    if (this.#state !== 'published' || message !== this.#last) return;
    this.#count = count;
    if (this.#arrived === message) this.#proved(count);
    else this.#timer.by(clock.now() + (count === 0 ? UNCOUNTED_ARRIVES_WITHIN : ARRIVES_WITHIN));
  }

  #received(message: number): void {
    this.#arrived = message;
    if (this.#state === 'published' && message === this.#last && this.#count !== undefined) this.#proved(this.#count);
  }

  #proved(count: number): void {
    this.isDeaf = false;
    this.#next(PROVED_EVERY);
    this.#proving.heard(count !== 0);
  }

  /** The next proof comes after `ms`, if callers wait then. */
  #next(ms: number): void {
    this.#timer.cancel();
    this.#state = 'idle';
    this.#provedAt = clock.now();
    if (this.#waiting.isWaiting) this.#timer.by(this.#provedAt + ms);
    else this.#rest();
  }
}
