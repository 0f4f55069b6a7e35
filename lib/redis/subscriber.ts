import { type WarningListener, warn } from '../api/warnings';
import { inBackground } from '../internal/background';
import { backgroundPause, clock } from '../internal/clock';
import { WakeTimer } from '../internal/wake-timer';
import type { RedisClient } from './client';
import { isServerAnswer, isUnknownCommand, messageOf } from './failure';
import { type RedisSubscriber, SubscriberConnection } from './subscriber-connection';

/** ms that a subscription stays without listeners: it spares a caller that waits again soon two requests. */
const LINGER = 1_000;

/** ms until a connection that failed is tried again. */
const RETRY_AFTER = 10_000;

/** ms; a connection is made anew, or probed, at most this often. */
const RENEWED_AT_MOST = 5_000;

/** ms that `close` waits for channels of the caller's connection to be unsubscribed. */
const CLOSING = 1_000;

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
  #lingersUntil = 0;
  /** It stays while listeners come and go: a timer for each would cost more than the rest. */
  readonly #lingering = new WakeTimer(() => this.#lingered(), false);
  readonly #end: (subscription: Subscription) => void;
  readonly #wakers = new Set<() => void>();

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

  /** Called by the subscriber when the channels are confirmed, or have failed. Waiters poll in both cases. */
  confirmed(isOpen: boolean): void {
    this.isOpen = isOpen;
    this.wake();
  }

  /** Called by the subscriber when it ends the subscription. */
  over(): void {
    this.isOver = true;
    this.isOpen = false;
    this.#lingering.cancel();
  }
}

/** A channel, and the subscriptions that get its messages. */
class Channel {
  readonly users = new Set<Subscription>();
  isSubscribed = false;
  /** The last command about it. */
  traffic: Promise<void> = Promise.resolve();

  // `unknown` since node-redis' type allows buffers. No listener of ours asks for them.
  readonly deliver = (message: unknown): void => {
    for (const { onMessage } of [...this.users]) onMessage(String(message));
  };
}

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
  #isSharded: boolean;
  readonly #subscriptions = new Set<Subscription>();
  readonly #channels = new Map<string, Channel>();
  #unavailableUntil = Number.NEGATIVE_INFINITY;
  #renewedAt = Number.NEGATIVE_INFINITY;
  #hasWarned = false;
  #isClosed = false;
  /** How often the connection was made again. */
  reconnects = 0;

  constructor(client: RedisClient, options: SubscriberOptions) {
    this.#options = options;
    this.#isSharded = options.isSharded;
    this.#connection = new SubscriberConnection(
      client,
      options.connection,
      () => this.#reconnected(),
      () => this.#lost(),
    );
  }

  /** Subscribes to the channels of one lock; `undefined` while there is no connection. */
  subscribe(channels: readonly string[], onMessage: (message: string) => void): Subscription | undefined {
    if (this.#isClosed || clock.now() < this.#unavailableUntil) return undefined;
    const subscription = new Subscription(channels, onMessage, (idle) => void this.#end(idle));
    this.#subscriptions.add(subscription);
    void inBackground(() => this.#open(subscription));
    return subscription;
  }

  /**
   * No message arrives though the connection seems to be open. Our own connection is made anew, with all its
   * subscriptions. The client of another one notices that it is dead when it sends something, and then subscribes again
   * by itself. False when that was done lately: it did not help.
   */
  renew(): boolean {
    const now = clock.now();
    if (this.#isClosed || now - this.#renewedAt < RENEWED_AT_MOST) return false;
    this.#renewedAt = now;
    if (!this.#connection.isOwn) {
      this.#connection.probe();
      return true;
    }
    this.#closeConnection();
    for (const subscription of this.#subscriptions) {
      subscription.isOpen = false;
      void inBackground(() => this.#open(subscription));
    }
    return true;
  }

  /** Leaves no channel subscribed, and closes the connection if it is our own. */
  async close(): Promise<void> {
    this.#isClosed = true;
    if (!this.#connection.isOwn) {
      const ended = Promise.all([...this.#subscriptions].map((subscription) => this.#end(subscription)));
      await Promise.race([ended, backgroundPause(CLOSING)]);
    }
    for (const subscription of this.#subscriptions) subscription.over();
    this.#closeConnection();
  }

  async #open(subscription: Subscription): Promise<void> {
    const renewedAt = this.#renewedAt;
    // It goes on trying. Until the subscription is open, waiters poll.
    const late = clock.setTimeout(() => this.#warn(new Error('no answer to SUBSCRIBE')), this.#options.timeout);
    late.unref?.();
    try {
      await Promise.all(subscription.channels.map((name) => this.#join(name, subscription)));
      if (!subscription.isOver) subscription.confirmed(true);
    } catch (error) {
      // It is being opened over another connection.
      if (renewedAt !== this.#renewedAt) return;
      this.#giveUp(error);
      await this.#end(subscription);
      subscription.confirmed(false);
    } finally {
      clock.clearTimeout(late);
    }
  }

  /** Ends a subscription: its channels are unsubscribed unless others need them. Never rejects. */
  async #end(subscription: Subscription): Promise<void> {
    subscription.over();
    this.#subscriptions.delete(subscription);
    const parting = subscription.channels.map((name) => {
      const channel = this.#channels.get(name);
      channel?.users.delete(subscription);
      return channel && this.#adjust(name, channel);
    });
    await Promise.allSettled(parting);
  }

  #join(name: string, subscription: Subscription): Promise<void> {
    const channel = this.#channels.get(name) ?? new Channel();
    this.#channels.set(name, channel);
    channel.users.add(subscription);
    return this.#adjust(name, channel);
  }

  /**
   * Subscribes or unsubscribes the channel, depending on whether a subscription needs it. One command at a time for
   * each channel: in node-redis a `subscribe` that meets the `unsubscribe` of the same channel resolves, and then
   * delivers nothing.
   */
  #adjust(name: string, channel: Channel): Promise<void> {
    const adjusted = channel.traffic.then(() => this.#adjustNow(name, channel));
    channel.traffic = adjusted
      .catch(() => undefined)
      .then(() => {
        const isIdle = channel.users.size === 0 && !channel.isSubscribed;
        if (isIdle && this.#channels.get(name) === channel) this.#channels.delete(name);
      });
    return adjusted;
  }

  async #adjustNow(name: string, channel: Channel): Promise<void> {
    const isWanted = channel.users.size > 0;
    if (isWanted === channel.isSubscribed) return;
    const connection = await this.#connection.get();
    try {
      await this.#command(connection, isWanted, name, channel);
    } catch (error) {
      if (isServerAnswer(error) || isUnknownCommand(error) || channel.users.size === 0) throw error;
      // It failed with its connection: once more, on the next one.
      await this.#command(await this.#connection.get(), isWanted, name, channel);
    }
    channel.isSubscribed = isWanted;
  }

  async #command(connection: RedisSubscriber, isWanted: boolean, name: string, channel: Channel): Promise<unknown> {
    const { deliver } = channel;
    if (!this.#isSharded) return isWanted ? connection.subscribe(name, deliver) : connection.unsubscribe(name, deliver);
    const { sSubscribe, sUnsubscribe } = connection;
    if (sSubscribe === undefined || sUnsubscribe === undefined) throw new Error('the client has no sharded pub/sub');
    try {
      return await (isWanted ? sSubscribe : sUnsubscribe).call(connection, name, deliver);
    } catch (error) {
      if (!this.#options.orPlain || !isUnknownCommand(error)) throw error;
      this.#isSharded = false; // the server is older than 7
      return this.#command(connection, isWanted, name, channel);
    }
  }

  /** Between a lost connection and the resubscription messages are missed: all waiters poll. */
  #reconnected(): void {
    this.reconnects++;
    for (const subscription of [...this.#subscriptions]) subscription.wake();
  }

  /** Our own connection is closed for good: no message arrives on it any more. */
  #lost(): void {
    if (this.renew()) return;
    this.#closeConnection();
    this.#giveUp(new Error('the pub/sub connection is closed for good'));
    for (const subscription of [...this.#subscriptions].filter(({ isOpen }) => isOpen)) {
      void this.#end(subscription);
      subscription.confirmed(false);
    }
  }

  #giveUp(cause: unknown): void {
    this.#unavailableUntil = clock.now() + RETRY_AFTER;
    if (![...this.#channels.values()].some(({ isSubscribed }) => isSubscribed)) this.#connection.close();
    this.#warn(cause);
  }

  /** Our own connection ends with everything that it is subscribed to. */
  #closeConnection(): void {
    for (const channel of this.#channels.values()) {
      // Commands about it that wait for an earlier one find that nobody needs it.
      channel.isSubscribed = false;
      channel.users.clear();
    }
    this.#channels.clear();
    this.#connection.close();
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
