import type { RedisSubscriber } from '../api/options';
import { type WarningListener, warn } from '../api/warnings';
import { clock, inBackground } from '../internal/clock';
import { BackgroundPauses, Backoff } from '../internal/timers';
import { destroy, type OwnConnection, type RedisClient } from './client';
import { ConnectionMonitor } from './connection';
import { isServerAnswer, isUnknownCommand, messageOf } from './failure';
import { onHandOff } from './hand-offs';
import { Proof } from './proof';
import { Channel, Subscription } from './subscription';

/** ms until a connection that failed is tried again. */
export const RETRY_AFTER = 10_000;

/** ms; a connection is made anew at most this often; and one that leads to another server again and again, in the end. */
const RENEWED_AT_MOST = 5_000;
const ELSEWHERE_AT_MOST = 300_000;

/** ms that `close` waits for channels of the caller's connection to be unsubscribed. */
const CLOSING = 1_000;

/** Our own connection is pinged this many times per `socketTimeout` of the client. */
const PINGS = 3;

const POLLING = 'Waiting for locks falls back to polling';

/** What a subscription is for, and what follows where it fails, in words. */
const USES = {
  waiting: POLLING,
  proof: POLLING,
  inbox: 'Leases of this registry can be neither told that they are taken, nor asked, nor replaced',
} as const;

export type Use = keyof typeof USES;

/** A connection of our own that listens. */
interface OwnSubscriber extends OwnConnection, Omit<RedisSubscriber, 'on'> {
  ping?(): Promise<unknown>;
  /** `false` while it connects. */
  readonly isReady?: boolean;
}

interface Duplicable {
  readonly options?: { readonly socket?: { readonly socketTimeout?: number } };
  duplicate(overrides: object): OwnSubscriber;
}

/** What messages come over: a connection of our own, or a client that was given. */
interface MessageConnection {
  readonly isOwn: boolean;
  /** The subscribers that listen over it. */
  readonly users: ReadonlySet<Subscriber>;
  /** Resolves when it is connected. */
  readonly listening: Promise<RedisSubscriber>;
  /**
   * Says whether it is connected now, and (one with connections for its channels) whether these are; a client that does not
   * say so counts as connected. Where it has connections of its own, it can make them anew.
   */
  readonly client: { readonly isReady?: boolean; readonly isListening?: boolean; renewConnections?(): void };
  /** Redis has confirmed a channel on it, which may have been unsubscribed since. */
  hasConfirmed: boolean;
  /** Closes a connection of our own; of a client, ends what listens to its events. */
  close(): void;
}

/** The subscribers that listen over a client that was given. */
const usersOf = new WeakMap<RedisSubscriber, Set<Subscriber>>();

export function isSubscriber(value: unknown): value is RedisSubscriber {
  const { subscribe, unsubscribe, defineCommand } = (value ?? {}) as Partial<RedisSubscriber & Record<string, unknown>>;
  // An instance of ioredis would call the listener with its own reply, and with no message.
  return typeof subscribe === 'function' && typeof unsubscribe === 'function' && defineCommand === undefined;
}

export interface SubscriberOptions {
  /** A pub/sub connection of the caller's. */
  readonly connection: RedisSubscriber | undefined;
  /** Sharded channels, on a cluster: inside a script only SPUBLISH can say how many listen. */
  readonly isSharded: boolean;
  /** Where the server has no sharded channels, plain ones are used. */
  readonly orPlain?: boolean;
  /** ms after which a connection that has not answered is reported. */
  readonly timeout: number;
  /** PUBLISH in a script counts this connection. On a cluster it does not, for a channel that is not sharded. */
  readonly isCountable: boolean;
  /** Tells this registry's channels for proofs from those of others. */
  readonly id: string;
  /** Publishes by a script, at the server of this lock. Resolves to the connections that got it. */
  publish(isSharded: boolean, channel: string, message: string, lock: string): Promise<number>;
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
  /** `undefined`: none was needed yet, or the last one has ended, and with it all that was subscribed. */
  #connection: MessageConnection | undefined;
  #unavailableUntil = Number.NEGATIVE_INFINITY;
  #renewedAt = Number.NEGATIVE_INFINITY;
  /** Those that run, by channel; without sharded channels there is one, under ''. */
  readonly #proofs = new Map<string, Proof>();
  /** Messages arrive on a connection that the server of the commands does not count. */
  isElsewhere = false;
  readonly #elsewhere = new Backoff(RENEWED_AT_MOST, ELSEWHERE_AT_MOST);
  #movesAfter = Number.NEGATIVE_INFINITY;
  #hasWarned = false;
  #isClosed = false;
  readonly #pauses = new BackgroundPauses();
  /** Until the next PING of our own connection. */
  #idle: NodeJS.Timeout | undefined;

  constructor(client: RedisClient, options: SubscriberOptions) {
    this.#client = client;
    this.#options = options;
    this.#isSharded = options.isSharded;
  }

  /** Whether there can be messages: a pool, and an adapter of two methods, have no connection for them. */
  get mayListen(): boolean {
    const { pollInterval, socketEpoch } = this.#client;
    if (this.#options.connection !== undefined) return true;
    return pollInterval === undefined && (socketEpoch !== undefined || isSubscriber(this.#client));
  }

  /** The server counts the connection for this registry, and for no other one of this process. */
  get isCounted(): boolean {
    const { users, client } = this.#connection ?? {};
    return !this.isElsewhere && users?.size === 1 && client?.isReady !== false && client?.isListening !== false;
  }

  /**
   * Subscribes to the channels of one lock; `undefined` while there is no connection, and while the client is closed: the
   * next waiter may find it open again. Always for a client that gets no messages. `use`: nothing follows for waiters where an
   * inbox fails, and nothing at all where a proof does.
   */
  subscribe(
    channels: readonly string[],
    onMessage: (message: string) => void,
    use: Use = 'waiting',
  ): Subscription | undefined {
    const { isOpen, pollInterval } = this.#client;
    if (pollInterval !== undefined && this.#options.connection === undefined) return undefined;
    if (this.#isClosed || isOpen === false || clock.now() < this.#unavailableUntil) return undefined;
    const subscription = new Subscription(channels, onMessage, (idle) => void this.#end(idle));
    this.#subscriptions.add(subscription);
    void inBackground(() => this.#open(subscription, use));
    return subscription;
  }

  /**
   * The proof that messages on this channel of a lock arrive. Those of a plain connection arrive on one channel or on none;
   * each sharded channel may have a connection of its own.
   */
  proofOf(channel: string, lock: string): Proof {
    const id = this.#isSharded ? channel : '';
    const known = this.#proofs.get(id);
    if (known !== undefined) return known;
    const own = `${channel}:@${this.#options.id}`;
    const proof = new Proof({
      isConnected: () => this.#connection?.hasConfirmed === true,
      subscribe: (onMessage) => this.subscribe([own], onMessage, 'proof'),
      publish: async (message) => {
        const count = await this.#options.publish(this.#isSharded, own, message, lock);
        return this.#options.isCountable ? count : -1;
      },
      deaf: (cause) => {
        this.#warn(cause);
        return this.renew();
      },
      heard: (isCounted) => this.#heard(isCounted),
      idle: () => {
        if (id !== '' && !proof.isDeaf) this.#proofs.delete(id);
      },
    });
    this.#proofs.set(id, proof);
    return proof;
  }

  /** Our own connection, made anew, leads to the server that is the master by now; that of the caller is the caller's. */
  #heard(isCounted: boolean): void {
    this.isElsewhere = !isCounted;
    if (isCounted) {
      this.#elsewhere.reset();
      return;
    }
    if (this.#options.connection !== undefined) {
      const where = 'it is connected to another server than the client, perhaps to a replica';
      this.#warn(new Error(where), 'Messages of the option "subscriber" come late or not at all');
    }
    const now = clock.now();
    if (this.#connection?.isOwn !== true || now < this.#movesAfter) return;
    this.#movesAfter = now + this.#elsewhere.next();
    this.renew();
  }

  /**
   * No message arrives though the connection seems to be open: it is made anew. Of a client that was given, every channel
   * is unsubscribed, and subscribed again. False when that was done lately: it did not help.
   */
  renew(): boolean {
    const now = clock.now();
    if (this.#isClosed || now - this.#renewedAt < RENEWED_AT_MOST) return false;
    this.#renewedAt = now;
    const { client } = this.#connection ?? {};
    if (client?.renewConnections === undefined) this.#endAll();
    else client.renewConnections();
    return true;
  }

  /** Leaves no channel subscribed, and closes the connection if it is our own. */
  async close(): Promise<void> {
    this.#isClosed = true;
    for (const proof of this.#proofs.values()) proof.close();
    this.#proofs.clear();
    if (this.#connection?.isOwn) return this.#endAll();
    const ended = Promise.all([...this.#subscriptions].map((subscription) => this.#end(subscription)));
    await this.#pauses.within(CLOSING, ended);
    this.#pauses.close();
    this.#closeConnection();
  }

  // Channels

  async #open(subscription: Subscription, use: Use): Promise<void> {
    // The client goes on trying. Until the subscription is open, waiters poll.
    subscription.waitsForAnswer(this.#options.timeout, () =>
      this.#warn(new Error('no answer to SUBSCRIBE'), USES[use]),
    );
    try {
      await Promise.all(
        subscription.channels.map((name) => {
          const channel = this.#channels.get(name) ?? new Channel();
          this.#channels.set(name, channel);
          channel.users.add(subscription);
          return this.#adjust(name, channel);
        }),
      );
      if (!subscription.isOver) subscription.opened();
    } catch (error) {
      // The subscription ended meanwhile, with its connection.
      if (subscription.isOver) return;
      // Nobody waits for the channel of a proof.
      if (use !== 'proof') this.#giveUp(error, use);
      await this.#end(subscription);
      subscription.wake();
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
        const isIdle = channel.users.size === 0 && channel.isSubscribed === false;
        if (isIdle && this.#channels.get(name) === channel) this.#channels.delete(name);
      });
    return adjusted;
  }

  async #adjustNow(name: string, channel: Channel): Promise<void> {
    const isWanted = channel.users.size > 0;
    if (isWanted === channel.isSubscribed) return;
    // A channel is unsubscribed where it was subscribed, also after `close`.
    if (isWanted) channel.connection = await this.#connected();
    if (channel.isSubscribed) channel.isSubscribed = undefined;
    try {
      await this.#command(isWanted, name, channel);
    } catch (error) {
      if (isServerAnswer(error) || isUnknownCommand(error)) throw error;
      if (isWanted && channel.users.size === 0) throw error;
      // The command failed with its connection: once more, on the next one.
      if (isWanted) channel.connection = await this.#connected();
      await this.#command(isWanted, name, channel);
    }
    channel.isSubscribed = isWanted;
    const current = this.#connection;
    if (current !== undefined && current.client === (channel.connection as object)) current.hasConfirmed = true;
  }

  async #command(isWanted: boolean, name: string, channel: Channel): Promise<unknown> {
    const { connection, deliver } = channel;
    if (!this.#isSharded) return isWanted ? connection.subscribe(name, deliver) : connection.unsubscribe(name, deliver);
    const { sSubscribe, sUnsubscribe } = connection;
    if (sSubscribe === undefined || sUnsubscribe === undefined) throw new Error('the client has no sharded pub/sub');
    try {
      return await (isWanted ? sSubscribe : sUnsubscribe).call(connection, name, deliver);
    } catch (error) {
      if (!this.#options.orPlain || !isUnknownCommand(error)) throw error;
      this.#isSharded = false; // the server is older than 7
      return this.#command(isWanted, name, channel);
    }
  }

  // The connection

  #connected(): Promise<RedisSubscriber> {
    // The socket outlives the caller that needs it first.
    this.#connection ??= inBackground(() => this.#connect());
    return this.#connection.listening;
  }

  #connect(): MessageConnection {
    if (this.#isClosed) throw new Error('the connection is closed');
    const given = this.#options.connection ?? this.#client;
    // A plain client (it counts its connections) does not listen and send commands at once: it is duplicated.
    if (this.#options.connection === undefined && this.#client.socketEpoch !== undefined) return this.#duplicate();
    if (!isSubscriber(given)) {
      throw new Error('the client has no pub/sub connection (a pool has none): pass one as the option `subscriber`');
    }
    const monitor = ConnectionMonitor.of(given);
    let { interruptions } = monitor;
    const stop = monitor.onReconnect(() => {
      if (monitor.interruptions !== interruptions) this.#endAll();
      interruptions = monitor.interruptions;
      this.#reconnected();
    });
    const users = usersOf.get(given) ?? new Set<Subscriber>();
    usersOf.set(given, users.add(this));
    const close = (): void => {
      stop();
      users.delete(this);
    };
    return {
      isOwn: false,
      users,
      listening: Promise.resolve(given),
      client: given as MessageConnection['client'],
      hasConfirmed: false,
      close,
    };
  }

  #duplicate(): MessageConnection {
    const client = this.#client as RedisClient & Partial<Duplicable>;
    if (client.duplicate === undefined) throw new Error('the client has no `duplicate()`');
    // After a hand-off it would be subscribed to nothing, and keep the process alive. Without one it reconnects.
    const own = client.duplicate({ maintNotifications: 'disabled' });
    const isCurrent = (): boolean => this.#connection === connection;
    // The client reconnects by itself, unless its reconnectStrategy gives up. Without a listener the process would end.
    own.on('error', () => {
      if (own.isOpen === false && isCurrent()) this.#lost();
    });
    own.on('ready', () => {
      if (isCurrent()) this.#reconnected();
      else void destroy(own);
    });
    // Else this client would try to reconnect for ever, and keep the process alive, though the application has closed the client.
    own.on('reconnecting', () => {
      if (isCurrent() && client.isOpen !== false) return;
      void destroy(own);
      if (isCurrent()) this.#lost();
    });
    own.unref?.();
    // The server that the client was handed over by is about to go, and the client knows the address of the next one.
    const stopHandOffs = onHandOff(() => this.#endAll());
    const stopWatching = ConnectionMonitor.of(client).onClose(() => this.#endAll());
    const connect = async (): Promise<RedisSubscriber> => {
      await own.connect();
      if (own.isOpen === false || !isCurrent()) throw new Error('it was closed while it connected');
      const { socketTimeout = 0 } = client.options?.socket ?? {};
      if (socketTimeout > 0) this.#keepBusy(own, isCurrent, socketTimeout / PINGS);
      return own;
    };
    const close = (): void => {
      stopHandOffs();
      stopWatching();
      // Else its next event ends it.
      if (own.endsAtOnce || own.isReady !== false) void destroy(own);
    };
    const users = new Set([this]);
    const connection: MessageConnection = {
      isOwn: true,
      users,
      listening: connect(),
      client: own,
      hasConfirmed: false,
      close,
    };
    return connection;
  }

  /** A connection that only listens is idle most of the time, and its socketTimeout would end it. */
  #keepBusy(own: OwnSubscriber, isCurrent: () => boolean, interval: number): void {
    const { ping } = own;
    if (!isCurrent() || ping === undefined) return;
    clock.clearTimeout(this.#idle);
    this.#idle = clock.setTimeout(() => {
      const again = (): void => this.#keepBusy(own, isCurrent, interval);
      // One PING at a time, so that a connection that is dead still is idle.
      ping.call(own).then(again, again);
    }, interval);
    this.#idle.unref?.();
  }

  /** Between a lost connection and the resubscription messages were missed: all waiters make an attempt. */
  #reconnected(): void {
    for (const [name, channel] of this.#channels) {
      if (channel.users.size === 0) void this.#adjust(name, channel).catch(() => undefined);
    }
    for (const subscription of [...this.#subscriptions]) subscription.wake();
  }

  /** Our own connection is closed for good: no message arrives on it any more. */
  #lost(): void {
    if (this.#client.isOpen !== false && this.renew()) return;
    this.#endAll();
    this.#giveUp(new Error('the pub/sub connection is closed for good'));
  }

  #giveUp(cause: unknown, use: Use = 'waiting'): void {
    const isUsed = [...this.#channels.values()].some(({ isSubscribed }) => isSubscribed);
    // A client that was given is listened to until `close`: other channels may be about to be confirmed on it.
    if (this.#connection?.isOwn && !isUsed) this.#closeConnection();
    // The application knows that it has closed its client. Nothing is wrong when that is open again.
    if (this.#client.isOpen === false) return;
    if (use === 'waiting') this.#unavailableUntil = clock.now() + RETRY_AFTER;
    this.#warn(cause, USES[use]);
  }

  /** No message arrives any more: every subscription ends. Waiters poll, and subscribe again where they wait on. */
  #endAll(): void {
    if (this.#connection?.isOwn) {
      // Commands about a channel that wait for an earlier one find that nobody needs it.
      for (const channel of this.#channels.values()) channel.users.clear();
      this.#channels.clear();
      this.#closeConnection();
    }
    for (const subscription of [...this.#subscriptions]) {
      void this.#end(subscription);
      // A caller that is woken may subscribe at once: the channel was found to be idle before that.
      if (!this.#isClosed) void Promise.resolve().then(() => subscription.wake());
    }
  }

  /** Closes our own connection, or leaves the caller's as it was. */
  #closeConnection(): void {
    const connection = this.#connection;
    this.#connection = undefined;
    clock.clearTimeout(this.#idle);
    connection?.close();
  }

  #warn(cause: unknown, what: string = POLLING): void {
    if (this.#hasWarned || this.#isClosed) return;
    this.#hasWarned = true;
    const message = `${what}: ${messageOf(cause)}`;
    warn(this.#options.onWarning, { code: 'SUBSCRIBER_UNAVAILABLE', message, cause });
  }
}
