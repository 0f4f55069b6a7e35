import { inBackground } from '../internal/background';
import { backgroundPause, clock } from '../internal/clock';
import { type WarningListener, warn } from '../warnings';
import { Channels } from './channels';
import type { RedisClient } from './client';
import { messageOf } from './failure';
import { type RedisSubscriber, SubscriberConnection } from './subscriber-connection';
import { Subscription } from './subscription';

/** ms until a connection that failed is tried again. */
const RETRY_AFTER = 10_000;

/** ms; a connection is made anew, or probed, at most this often. */
const RENEWED_AT_MOST = 5_000;

/** ms that `close` waits for channels of the caller's connection to be unsubscribed. */
const CLOSING = 1_000;

interface SubscriberOptions {
  /** A pub/sub connection of the caller's. */
  readonly connection: RedisSubscriber | undefined;
  /** Sharded channels, on a cluster: inside a script only SPUBLISH can say how many listen. */
  readonly isSharded: boolean;
  /** Where the server has no sharded channels, plain ones are used. */
  readonly orPlain?: boolean;
  /** ms after which a connection that has not answered is reported. */
  readonly timeout: number;
  readonly onWarning: WarningListener;
}

/**
 * The pub/sub connection of a registry. It is made when a waiter listens for the first time, and its channels are
 * counted by reference. Without a connection waiters poll, and there is one warning.
 */
export class Subscriber {
  readonly #connection: SubscriberConnection;
  readonly #options: SubscriberOptions;
  readonly #channels: Channels;
  readonly #subscriptions = new Set<Subscription>();
  #unavailableUntil = Number.NEGATIVE_INFINITY;
  #renewedAt = Number.NEGATIVE_INFINITY;
  #hasWarned = false;
  #isClosed = false;
  /** How often the connection was made again. */
  reconnects = 0;

  constructor(client: RedisClient, options: SubscriberOptions) {
    this.#options = options;
    this.#connection = new SubscriberConnection(client, options.connection, {
      reconnected: () => this.#reconnected(),
      closed: () => this.#lost(),
    });
    this.#channels = new Channels(this.#connection, options.isSharded, options.orPlain ?? false);
  }

  /** Subscribes to the channels of one lock; `undefined` while there is no connection. */
  subscribe(channels: readonly string[], onMessage: (message: string) => void): Subscription | undefined {
    if (this.#isClosed || clock.now() < this.#unavailableUntil) return undefined;
    const subscription = new Subscription(channels, onMessage, (idle) => void this.end(idle));
    this.#subscriptions.add(subscription);
    void inBackground(() => this.#open(subscription));
    return subscription;
  }

  /** Ends a subscription: its channels are unsubscribed unless others need them. */
  async end(subscription: Subscription): Promise<void> {
    subscription.over();
    this.#subscriptions.delete(subscription);
    await Promise.all(subscription.channels.map((name) => this.#channels.part(name, subscription)));
  }

  /**
   * No message arrives though the connection seems to be open. Our own connection is made anew, with all its
   * subscriptions. The client of another one notices that it is dead when it sends something, and then subscribes again
   * by itself.
   */
  renew(): void {
    if (this.#connection.isOwn) this.#renewConnection();
    else if (this.#mayRenew()) this.#connection.probe();
  }

  /** Leaves no channel subscribed, and closes the connection if it is our own. */
  async close(): Promise<void> {
    this.#isClosed = true;
    if (!this.#connection.isOwn) {
      const ended = Promise.all([...this.#subscriptions].map((subscription) => this.end(subscription)));
      await Promise.race([ended, backgroundPause(CLOSING)]);
    }
    for (const subscription of this.#subscriptions) subscription.over();
    this.#channels.forget();
    this.#connection.close(); // our own, with everything that it is subscribed to
  }

  async #open(subscription: Subscription): Promise<void> {
    const renewedAt = this.#renewedAt;
    // It goes on trying. Until the subscription is open, waiters poll.
    const late = clock.setTimeout(() => this.#warn(new Error('no answer to SUBSCRIBE')), this.#options.timeout);
    late.unref?.();
    try {
      await Promise.all(subscription.channels.map((name) => this.#channels.join(name, subscription)));
      if (!subscription.isOver) subscription.confirmed(true);
    } catch (error) {
      // It is being opened over another connection.
      if (renewedAt !== this.#renewedAt) return;
      this.#giveUp(error);
      await this.end(subscription);
      subscription.confirmed(false);
    } finally {
      clock.clearTimeout(late);
    }
  }

  /** Between a lost connection and the resubscription messages are missed: all waiters poll. */
  #reconnected(): void {
    this.reconnects++;
    for (const subscription of [...this.#subscriptions]) subscription.wake();
  }

  #mayRenew(): boolean {
    const now = clock.now();
    if (this.#isClosed || now - this.#renewedAt < RENEWED_AT_MOST) return false;
    this.#renewedAt = now;
    return true;
  }

  /** False when that was done lately: it did not help. */
  #renewConnection(): boolean {
    if (!this.#mayRenew()) return false;
    this.#channels.forget();
    this.#connection.close();
    for (const subscription of this.#subscriptions) {
      subscription.isOpen = false;
      void inBackground(() => this.#open(subscription));
    }
    return true;
  }

  /** Our own connection is closed for good: no message arrives on it any more. */
  #lost(): void {
    if (this.#renewConnection()) return;
    this.#channels.forget();
    this.#giveUp(new Error('the pub/sub connection is closed for good'));
    for (const subscription of [...this.#subscriptions].filter(({ isOpen }) => isOpen)) {
      void this.end(subscription);
      subscription.confirmed(false);
    }
  }

  #giveUp(cause: unknown): void {
    this.#unavailableUntil = clock.now() + RETRY_AFTER;
    if (!this.#channels.isAnySubscribed) this.#connection.close();
    this.#warn(cause);
  }

  #warn(cause: unknown): void {
    if (this.#hasWarned || this.#isClosed) return;
    this.#hasWarned = true;
    warn(this.#options.onWarning, {
      code: 'SUBSCRIBER_UNAVAILABLE',
      message: `Waiting for locks falls back to polling: ${messageOf(cause)}`,
      cause,
    });
  }
}
