import { inBackground } from '../internal/background';
import { backgroundPause, clock } from '../internal/clock';
import { type WarningListener, warn } from '../warnings';
import type { RedisClient } from './client';
import { isUnknownCommand, messageOf } from './failure';
import { type RedisSubscriber, SubscriberConnection } from './subscriber-connection';
import { Subscription } from './subscription';

/** ms until a connection that could not be had is tried again. */
const RETRY_AFTER = 10_000;

/** ms that `close` waits for channels of the caller's connection to be unsubscribed. */
const CLOSING = 1_000;

/** One channel, and the subscriptions that hear it. */
class Channel {
  readonly subscriptions = new Set<Subscription>();
  isSubscribed = false;
  /** The last command about it. */
  traffic: Promise<void> = Promise.resolve();

  // `unknown` since node-redis' type allows buffers. No listener of ours asks for them.
  readonly hear = (message: unknown): void => {
    for (const subscription of [...this.subscriptions]) subscription.onMessage(String(message));
  };
}

export interface SubscriberOptions {
  /** A pub/sub connection of the caller's. */
  readonly connection: RedisSubscriber | undefined;
  /** Sharded channels, on a cluster: only their PUBLISH inside a script can say how many listen. */
  readonly isSharded: boolean;
  /** Where the server has no sharded channels, plain ones are used. */
  readonly orPlain?: boolean;
  /** ms after which a connection that has not answered is reported. */
  readonly timeout: number;
  readonly onWarning: WarningListener;
}

/**
 * The pub/sub connection of a registry. It is made when a waiter listens for the first time, and its channels are
 * counted by reference. When it cannot be had, that is reported once, and waiters poll.
 */
export class Subscriber {
  readonly #connection: SubscriberConnection;
  readonly #options: SubscriberOptions;
  #isSharded: boolean;
  readonly #subscriptions = new Set<Subscription>();
  readonly #channels = new Map<string, Channel>();
  #unavailableUntil = Number.NEGATIVE_INFINITY;
  #hasWarned = false;
  #isClosed = false;
  /** How often the connection was made again. */
  reconnects = 0;

  constructor(client: RedisClient, options: SubscriberOptions) {
    this.#options = options;
    this.#isSharded = options.isSharded;
    this.#connection = new SubscriberConnection(client, options.connection, {
      reconnected: () => this.#reconnected(),
      closed: () => this.#lost(),
    });
  }

  /** Subscribes to the channels of one lock; `undefined` while no connection can be had. */
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
    await Promise.all(subscription.channels.map((name) => this.#part(name, subscription)));
  }

  /** Leaves no channel subscribed, and closes the connection if it is our own. */
  async close(): Promise<void> {
    this.#isClosed = true;
    if (!this.#connection.isOwn) {
      const ended = Promise.all([...this.#subscriptions].map((subscription) => this.end(subscription)));
      await Promise.race([ended, backgroundPause(CLOSING)]);
    }
    for (const subscription of this.#subscriptions) subscription.over();
    this.#connection.close(); // our own, with everything that it is subscribed to
  }

  async #open(subscription: Subscription): Promise<void> {
    // It goes on trying. Until the subscription is open, waiters poll.
    const late = clock.setTimeout(() => this.#warn(new Error('no answer to SUBSCRIBE')), this.#options.timeout);
    late.unref?.();
    try {
      await Promise.all(subscription.channels.map((name) => this.#join(name, subscription)));
      if (!subscription.isOver) subscription.settle(true);
    } catch (error) {
      this.#giveUp(error);
      await this.end(subscription);
      subscription.settle(false);
    } finally {
      clock.clearTimeout(late);
    }
  }

  #join(name: string, subscription: Subscription): Promise<void> {
    let channel = this.#channels.get(name);
    if (channel === undefined) {
      channel = new Channel();
      this.#channels.set(name, channel);
    }
    channel.subscriptions.add(subscription);
    return this.#adjust(name, channel);
  }

  #part(name: string, subscription: Subscription): Promise<void> {
    const channel = this.#channels.get(name);
    channel?.subscriptions.delete(subscription);
    return channel === undefined ? Promise.resolve() : this.#adjust(name, channel).catch(() => undefined);
  }

  /**
   * Subscribes or unsubscribes the channel, depending on whether a subscription needs it. One command at a time for
   * each channel: in node-redis a `subscribe` that meets the `unsubscribe` of the same channel resolves, and then
   * delivers nothing.
   */
  #adjust(name: string, channel: Channel): Promise<void> {
    const adjusted = channel.traffic.then(async () => {
      const isWanted = channel.subscriptions.size > 0;
      if (isWanted === channel.isSubscribed) return;
      await this.#command(await this.#connection.get(), isWanted, name, channel);
      channel.isSubscribed = isWanted;
    });
    channel.traffic = adjusted
      .catch(() => undefined)
      .then(() => {
        const isIdle = channel.subscriptions.size === 0 && !channel.isSubscribed;
        if (isIdle && this.#channels.get(name) === channel) this.#channels.delete(name);
      });
    return adjusted;
  }

  async #command(connection: RedisSubscriber, isWanted: boolean, name: string, channel: Channel): Promise<unknown> {
    const { hear } = channel;
    if (!this.#isSharded) return isWanted ? connection.subscribe(name, hear) : connection.unsubscribe(name, hear);
    const { sSubscribe, sUnsubscribe } = connection;
    if (sSubscribe === undefined || sUnsubscribe === undefined) throw new Error('the client has no sharded pub/sub');
    try {
      return await (isWanted ? sSubscribe : sUnsubscribe).call(connection, name, hear);
    } catch (error) {
      if (!this.#options.orPlain || !isUnknownCommand(error)) throw error;
      this.#isSharded = false; // the server is older than 7
      return this.#command(connection, isWanted, name, channel);
    }
  }

  /** Between a lost connection and the resubscription messages are missed: all waiters look again. */
  #reconnected(): void {
    this.reconnects++;
    for (const subscription of [...this.#subscriptions]) subscription.wake();
  }

  /** Our own connection is closed for good: nothing is heard on it any more. */
  #lost(): void {
    for (const channel of this.#channels.values()) channel.isSubscribed = false;
    this.#giveUp(new Error('the pub/sub connection is closed for good'));
    for (const subscription of [...this.#subscriptions].filter(({ isOpen }) => isOpen)) {
      void this.end(subscription);
      subscription.settle(false);
    }
  }

  #giveUp(cause: unknown): void {
    this.#unavailableUntil = clock.now() + RETRY_AFTER;
    if (![...this.#channels.values()].some((channel) => channel.isSubscribed)) this.#connection.close();
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
