import type { RedisSubscriber } from '../api/options';
import { type WarningListener, warn } from '../api/warnings';
import { backgroundPause, clock, inBackground } from '../internal/clock';
import { WakeTimer } from '../internal/timers';
import { destroy, type OwnConnection, type RedisClient } from './client';
import { ConnectionMonitor } from './connection';
import { isServerAnswer, isUnknownCommand, messageOf } from './failure';

/** ms that a subscription stays without listeners: it spares a caller that waits again soon two requests. */
const LINGER = 1_000;

/** ms until a connection that failed is tried again. */
const RETRY_AFTER = 10_000;

/** ms; a connection is made anew, or probed, at most this often. */
const RENEWED_AT_MOST = 5_000;

/** ms that `close` waits for channels of the caller's connection to be unsubscribed. */
const CLOSING = 1_000;

/** Our own connection is pinged this many times per `socketTimeout` of the client. */
const PINGS = 3;

/** A connection of our own that listens. */
interface OwnSubscriber extends OwnConnection, Omit<RedisSubscriber, 'on'> {
  ping?(): Promise<unknown>;
  /** `false` while it connects. */
  readonly isReady?: boolean;
}

interface Duplicable {
  readonly options?: { readonly socket?: { readonly socketTimeout?: number } };
  duplicate(): OwnSubscriber;
}

export function isSubscriber(value: unknown): value is RedisSubscriber {
  const subscriber = value as Partial<RedisSubscriber> | null | undefined;
  return typeof subscriber?.subscribe === 'function' && typeof subscriber.unsubscribe === 'function';
}

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
 * The pub/sub connection of a registry, and its channels, counted by reference. It is the caller's, or the client itself
 * where that can listen and send commands at once (cluster, sentinel), or a duplicate of a plain client. It is made when
 * a waiter listens for the first time. Without one waiters poll, and there is one warning.
 */
export class Subscriber {
  readonly #client: RedisClient;
  readonly #options: SubscriberOptions;
  #isSharded: boolean;
  readonly #subscriptions = new Set<Subscription>();
  readonly #channels = new Map<string, Channel>();
  #connection: Promise<RedisSubscriber> | undefined;
  /** It is our own, and ends with all its subscriptions when it is closed. */
  #own: OwnSubscriber | undefined;
  #stopMonitoring: (() => void) | undefined;
  #unavailableUntil = Number.NEGATIVE_INFINITY;
  #renewedAt = Number.NEGATIVE_INFINITY;
  #hasWarned = false;
  #isClosed = false;
  /** How often the connection was made again. */
  reconnects = 0;

  constructor(client: RedisClient, options: SubscriberOptions) {
    this.#client = client;
    this.#options = options;
    this.#isSharded = options.isSharded;
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
    if (this.#own === undefined) {
      const given = this.#options.connection as { ping?(): Promise<unknown> } | undefined;
      given?.ping?.().catch(() => undefined);
      return true;
    }
    this.#disconnect();
    for (const subscription of this.#subscriptions) {
      subscription.isOpen = false;
      void inBackground(() => this.#open(subscription));
    }
    return true;
  }

  /** Leaves no channel subscribed, and closes the connection if it is our own. */
  async close(): Promise<void> {
    this.#isClosed = true;
    if (this.#own === undefined) {
      const ended = Promise.all([...this.#subscriptions].map((subscription) => this.#end(subscription)));
      await Promise.race([ended, backgroundPause(CLOSING)]);
    }
    for (const subscription of this.#subscriptions) subscription.over();
    this.#disconnect();
  }

  // Channels

  async #open(subscription: Subscription): Promise<void> {
    const renewedAt = this.#renewedAt;
    // It goes on trying. Until the subscription is open, waiters poll.
    const late = clock.setTimeout(() => this.#warn(new Error('no answer to SUBSCRIBE')), this.#options.timeout);
    late.unref?.();
    try {
      await Promise.all(
        subscription.channels.map((name) => {
          const channel = this.#channels.get(name) ?? new Channel();
          this.#channels.set(name, channel);
          channel.users.add(subscription);
          return this.#adjust(name, channel);
        }),
      );
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
    const connection = await this.#connected();
    try {
      await this.#command(connection, isWanted, name, channel);
    } catch (error) {
      if (isServerAnswer(error) || isUnknownCommand(error) || channel.users.size === 0) throw error;
      // It failed with its connection: once more, on the next one.
      await this.#command(await this.#connected(), isWanted, name, channel);
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

  // The connection

  #connected(): Promise<RedisSubscriber> {
    // The socket outlives the caller that needs it first.
    this.#connection ??= inBackground(() => this.#connect());
    return this.#connection;
  }

  async #connect(): Promise<RedisSubscriber> {
    const given = this.#options.connection ?? this.#client;
    // A plain client (it counts its connections) does not listen and send commands at once: it is duplicated.
    if (this.#options.connection === undefined && this.#client.socketEpoch !== undefined) return this.#duplicate();
    if (!isSubscriber(given)) {
      throw new Error('the client has no pub/sub connection (a pool has none): pass one as the option `subscriber`');
    }
    this.#stopMonitoring = ConnectionMonitor.of(given).onReconnect(this.#reconnected);
    return given;
  }

  async #duplicate(): Promise<RedisSubscriber> {
    const client = this.#client as RedisClient & Partial<Duplicable>;
    if (client.duplicate === undefined) throw new Error('the client has no `duplicate()`');
    const own = client.duplicate();
    this.#own = own;
    // It reconnects by itself, unless its reconnectStrategy gives up. Without a listener the process would end.
    own.on('error', () => {
      if (own.isOpen === false && own === this.#own) this.#lost();
    });
    own.on('ready', () => {
      if (own === this.#own) this.#reconnected();
      else void destroy(own);
    });
    // It would try to reconnect for ever, and keep the process alive, though the application has closed its client.
    own.on('reconnecting', () => {
      if (own !== this.#own || client.isOpen === false) void destroy(own);
    });
    own.unref?.();
    await own.connect();
    if (own !== this.#own) throw new Error('it was closed while it connected');
    const { socketTimeout = 0 } = client.options?.socket ?? {};
    if (socketTimeout > 0) this.#keepBusy(own, socketTimeout / PINGS);
    return own;
  }

  /** A connection that only listens is idle most of the time, and its socketTimeout would end it. */
  #keepBusy(own: OwnSubscriber, interval: number): void {
    if (own !== this.#own || own.ping === undefined) return;
    const timer = clock.setTimeout(() => {
      const again = (): void => this.#keepBusy(own, interval);
      // One at a time, so that a connection that is dead still is idle.
      own.ping?.().then(again, again);
    }, interval);
    timer.unref?.();
  }

  /** Between a lost connection and the resubscription messages are missed: all waiters poll. */
  readonly #reconnected = (): void => {
    this.reconnects++;
    for (const subscription of [...this.#subscriptions]) subscription.wake();
  };

  /** Our own connection is closed for good: no message arrives on it any more. */
  #lost(): void {
    if (this.renew()) return;
    this.#disconnect();
    this.#giveUp(new Error('the pub/sub connection is closed for good'));
    for (const subscription of [...this.#subscriptions].filter(({ isOpen }) => isOpen)) {
      void this.#end(subscription);
      subscription.confirmed(false);
    }
  }

  #giveUp(cause: unknown): void {
    this.#unavailableUntil = clock.now() + RETRY_AFTER;
    if (![...this.#channels.values()].some(({ isSubscribed }) => isSubscribed)) this.#closeConnection();
    this.#warn(cause);
  }

  /** Our own connection ends with everything that it is subscribed to. */
  #disconnect(): void {
    for (const channel of this.#channels.values()) {
      // Commands about it that wait for an earlier one find that nobody needs it.
      channel.isSubscribed = false;
      channel.users.clear();
    }
    this.#channels.clear();
    this.#closeConnection();
  }

  /** Closes our own connection, or leaves the caller's as it was. */
  #closeConnection(): void {
    const own = this.#own;
    this.#stopMonitoring?.();
    this.#stopMonitoring = undefined;
    this.#own = undefined;
    this.#connection = undefined;
    // node-redis leaves a socket open that connects after `destroy`: its next event ends it (see `#duplicate`).
    if (own?.isReady !== false) void destroy(own);
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
