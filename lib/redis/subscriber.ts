import { backgroundPause, clock } from '../clock';
import { type WarningListener, warn } from '../diagnostics';
import type { RedisClient } from './client';
import { isUnknownCommand } from './failure';
import { type Hear, Subscription } from './subscription';

type Listener = (message: string, channel: string) => unknown;

/** A pub/sub connection, by structure: node-redis' client, cluster and sentinel have it. */
export interface RedisSubscriber {
  subscribe(channel: string, listener: Listener): Promise<unknown>;
  unsubscribe(channel: string, listener?: (message: unknown, channel: unknown) => unknown): Promise<unknown>;
  /** Sharded channels, for the lock types that need them on a cluster. */
  sSubscribe?(channel: string, listener: Listener): Promise<unknown>;
  sUnsubscribe?(channel: string, listener?: (message: unknown, channel: unknown) => unknown): Promise<unknown>;
  /** For the events `ready` and `node-ready`: after a reconnect everybody who waits looks again. */
  on?(event: string, listener: () => void): unknown;
  off?(event: string, listener: () => void): unknown;
}

/** A connection of our own, made with the client's `duplicate()`. */
interface OwnConnection extends RedisSubscriber {
  on(event: string, listener: () => void): unknown;
  connect(): Promise<unknown>;
  destroy(): void;
  unref?(): void;
  /** `false` once it is closed for good. */
  readonly isOpen?: boolean;
}

interface Duplicable {
  readonly options?: { readonly socket?: object };
  duplicate(overrides: { socket: object }): OwnConnection;
}

/** ms that a channel stays subscribed when nobody listens any more: who waits again soon is spared two requests. */
const LINGER = 1_000;

/** Events that tell of a connection made anew: of a client or a sentinel, and of a node of a cluster. */
const CONNECTED = ['ready', 'node-ready'];

/** ms until a connection that could not be had is tried again. */
const RETRY_AFTER = 10_000;

/** One channel, and who hears it. */
class Channel {
  readonly subscriptions = new Set<Subscription>();
  isSubscribed = false;
  /** The last command about it. */
  traffic: Promise<void> = Promise.resolve();

  // `unknown` as in RedisSubscriber: it is a string, since no listener of ours asks for buffers.
  readonly hear = (message: unknown): void => {
    for (const subscription of [...this.subscriptions]) subscription.hear(String(message), subscription);
  };
}

/**
 * The pub/sub connection of a registry: made when somebody listens for the first time, its channels counted by
 * reference. When it cannot be had, that is reported once, and whoever wanted to listen does without.
 */
export class Subscriber {
  readonly #client: RedisClient;
  readonly #given: RedisSubscriber | undefined;
  readonly #onWarning: WarningListener;
  /** Sharded channels, on a cluster: only there PUBLISH inside of a script can tell how many listen. */
  #isSharded: boolean;
  /** Where the server has no sharded channels, plain ones will do. */
  readonly #orPlain: boolean;
  /** ms after which a connection that has not answered is reported. */
  readonly #patience: number;
  readonly #subscriptions = new Map<string, Subscription>();
  readonly #channels = new Map<string, Channel>();
  #connection: Promise<RedisSubscriber> | undefined;
  #own: OwnConnection | undefined;
  /** The caller's connection, as long as it bears our listener. */
  #borrowed: RedisSubscriber | undefined;
  #unavailableUntil = Number.NEGATIVE_INFINITY;
  #hasWarned = false;
  #isClosed = false;

  constructor(
    client: RedisClient,
    given: RedisSubscriber | undefined,
    onWarning: WarningListener,
    {
      isSharded,
      orPlain = false,
      patience,
    }: { readonly isSharded: boolean; readonly orPlain?: boolean; readonly patience: number },
  ) {
    this.#client = client;
    this.#given = given;
    this.#onWarning = onWarning;
    this.#isSharded = isSharded;
    this.#orPlain = orPlain;
    this.#patience = patience;
  }

  /** The subscription with this id, if it stands or is about to. */
  peek(id: string): Subscription | undefined {
    return this.#subscriptions.size === 0 ? undefined : this.#subscriptions.get(id);
  }

  /** Listens, or joins those who do; to be given back with `leave`. `undefined`: there is no connection to be had now. */
  listen(id: string, channels: readonly string[], hear: Hear): Subscription | undefined {
    if (this.#isClosed || clock.now() < this.#unavailableUntil) return undefined;
    let subscription = this.#subscriptions.get(id);
    if (subscription === undefined) {
      subscription = new Subscription(id, channels, hear);
      this.#subscriptions.set(id, subscription);
      void this.#open(subscription);
    }
    subscription.listeners++;
    clock.clearTimeout(subscription.lingering);
    return subscription;
  }

  leave(subscription: Subscription): void {
    if (--subscription.listeners > 0) return;
    subscription.lingering = clock.setTimeout(() => void this.#end(subscription), LINGER);
    subscription.lingering.unref?.();
  }

  /** Leaves no channel subscribed, and closes the connection if it is our own. */
  async close(): Promise<void> {
    this.#isClosed = true;
    for (const { lingering } of this.#subscriptions.values()) clock.clearTimeout(lingering);
    if (this.#own !== undefined) {
      this.#disconnect(); // and with it whatever it is subscribed to
      return;
    }
    const ended = Promise.all([...this.#subscriptions.values()].map((subscription) => this.#end(subscription)));
    await Promise.race([ended, backgroundPause(LINGER)]);
    this.#disconnect();
  }

  async #open(subscription: Subscription): Promise<void> {
    // It goes on trying; whoever waits polls meanwhile, as long as the subscription does not stand.
    const impatience = clock.setTimeout(() => this.#warn(new Error('no answer to SUBSCRIBE')), this.#patience);
    impatience.unref?.();
    try {
      await Promise.all(subscription.channels.map((name) => this.#join(name, subscription)));
      subscription.settle(true);
    } catch (error) {
      this.#giveUp(error);
      await this.#end(subscription);
      subscription.settle(false);
    } finally {
      clock.clearTimeout(impatience);
    }
  }

  async #end(subscription: Subscription): Promise<void> {
    clock.clearTimeout(subscription.lingering);
    if (this.#subscriptions.get(subscription.id) === subscription) this.#subscriptions.delete(subscription.id);
    await Promise.all(subscription.channels.map((name) => this.#part(name, subscription)));
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
   * Subscribes or unsubscribes the channel, as somebody wants it or not. One command at a time for each channel:
   * node-redis lets a `subscribe` that meets the `unsubscribe` of the same channel resolve, and then delivers nothing.
   */
  #adjust(name: string, channel: Channel): Promise<void> {
    const adjusted = channel.traffic.then(async () => {
      const isWanted = channel.subscriptions.size > 0;
      if (isWanted === channel.isSubscribed) return;
      this.#connection ??= this.#connect();
      const connection = await this.#connection;
      await this.#command(connection, isWanted, name, channel);
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
      if (!this.#orPlain || !isUnknownCommand(error)) throw error;
      this.#isSharded = false; // the server is older than 7
      return this.#command(connection, isWanted, name, channel);
    }
  }

  async #connect(): Promise<RedisSubscriber> {
    const given = this.#given ?? this.#client;
    // A plain client (it counts its connections) does not listen and send commands at once: it is duplicated.
    if (this.#given === undefined && this.#client.socketEpoch !== undefined) return this.#duplicate();
    if (!isSubscriber(given)) {
      throw new Error('the client has no pub/sub connection (a pool has none): pass one as the option `subscriber`');
    }
    for (const event of CONNECTED) given.on?.(event, this.#wakeAll);
    this.#borrowed = given;
    return given;
  }

  async #duplicate(): Promise<RedisSubscriber> {
    const client = this.#client as RedisClient & Partial<Duplicable>;
    if (client.duplicate === undefined) throw new Error('the client has no `duplicate()`');
    // Without socketTimeout: a connection that only listens is idle most of the time.
    const own = client.duplicate({ socket: { ...client.options?.socket, socketTimeout: 0 } });
    this.#own = own;
    // It reconnects by itself, unless its reconnectStrategy gives up; without a listener the process would crash.
    own.on('error', () => {
      if (own.isOpen === false && own === this.#own) this.#lost();
    });
    own.on('ready', this.#wakeAll);
    // It would try to reconnect for ever, and keep the process alive, though the application is done with Redis.
    own.on('reconnecting', () => {
      if (client.isOpen === false) own.destroy();
    });
    await own.connect();
    own.unref?.();
    return own;
  }

  /** Counts the times that a connection was made anew. */
  reconnects = 0;

  /** Between a lost connection and the resubscription messages are missed: everybody who waits looks again. */
  readonly #wakeAll = (): void => {
    this.reconnects++;
    for (const subscription of this.#subscriptions.values()) subscription.wake();
  };

  /** Our own connection is closed for good: nothing is heard on it any more. */
  #lost(): void {
    for (const channel of this.#channels.values()) channel.isSubscribed = false;
    this.#giveUp(new Error('the pub/sub connection is closed for good'));
    for (const subscription of [...this.#subscriptions.values()].filter(({ isOpen }) => isOpen)) {
      void this.#end(subscription);
      subscription.settle(false);
    }
  }

  #giveUp(cause: unknown): void {
    this.#unavailableUntil = clock.now() + RETRY_AFTER;
    if (![...this.#channels.values()].some((channel) => channel.isSubscribed)) this.#disconnect();
    this.#warn(cause);
  }

  #disconnect(): void {
    const own = this.#own;
    for (const event of CONNECTED) this.#borrowed?.off?.(event, this.#wakeAll);
    this.#own = undefined;
    this.#borrowed = undefined;
    this.#connection = undefined;
    try {
      own?.destroy();
    } catch {} // redis 5: it is closed already
  }

  #warn(cause: unknown): void {
    if (this.#hasWarned || this.#isClosed) return;
    this.#hasWarned = true;
    warn(this.#onWarning, {
      code: 'SUBSCRIBER_UNAVAILABLE',
      message: `Waiting for locks falls back to polling: ${cause instanceof Error ? cause.message : String(cause)}`,
      cause,
    });
  }
}

export function isSubscriber(value: unknown): value is RedisSubscriber {
  const subscriber = value as Partial<RedisSubscriber> | null | undefined;
  return typeof subscriber?.subscribe === 'function' && typeof subscriber.unsubscribe === 'function';
}
