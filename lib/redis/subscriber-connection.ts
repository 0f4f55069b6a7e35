import { clock, inBackground } from '../internal/clock';
import type { RedisClient } from './client';
import { ConnectionMonitor } from './connection';

/** Our own connection is pinged this many times per `socketTimeout` of the client. */
const PINGS = 3;

/** Called with each message of a channel. */
export type MessageListener = (message: string, channel: string) => unknown;

/** A pub/sub connection, by structure: node-redis' client, cluster and sentinel have it. */
export interface RedisSubscriber {
  subscribe(channel: string, listener: MessageListener): Promise<unknown>;
  unsubscribe(channel: string, listener?: (message: unknown, channel: unknown) => unknown): Promise<unknown>;
  /** Sharded channels, for the lock types that need them on a cluster. */
  sSubscribe?(channel: string, listener: MessageListener): Promise<unknown>;
  sUnsubscribe?(channel: string, listener?: (message: unknown, channel: unknown) => unknown): Promise<unknown>;
  /** For the events `ready` and `node-ready`: after a reconnect all waiters poll. */
  on?(event: string, listener: () => void): unknown;
  off?(event: string, listener: () => void): unknown;
}

/** A connection of our own, made with the client's `duplicate()`. */
interface OwnConnection extends RedisSubscriber {
  on(event: string, listener: () => void): unknown;
  connect(): Promise<unknown>;
  destroy(): void;
  ping?(): Promise<unknown>;
  unref?(): void;
  /** `false` once it is closed for good. */
  readonly isOpen?: boolean;
  /** `false` while it connects. */
  readonly isReady?: boolean;
}

interface Duplicable {
  readonly options?: { readonly socket?: { readonly socketTimeout?: number } };
  duplicate(): OwnConnection;
}

export function isSubscriber(value: unknown): value is RedisSubscriber {
  const subscriber = value as Partial<RedisSubscriber> | null | undefined;
  return typeof subscriber?.subscribe === 'function' && typeof subscriber.unsubscribe === 'function';
}

/**
 * Where a registry's pub/sub connection comes from: the caller's, the client itself where it can listen and send
 * commands at once (cluster, sentinel), or a duplicate of a plain client.
 */
export class SubscriberConnection {
  readonly #client: RedisClient;
  readonly #given: RedisSubscriber | undefined;
  readonly #onReconnected: () => void;
  readonly #onClosed: () => void;
  #connection: Promise<RedisSubscriber> | undefined;
  #own: OwnConnection | undefined;
  #stopMonitoring: (() => void) | undefined;

  /**
   * `onReconnected`: it was made again, and messages may have been missed. `onClosed`: it is our own, and closed for
   * good.
   */
  constructor(
    client: RedisClient,
    given: RedisSubscriber | undefined,
    onReconnected: () => void,
    onClosed: () => void,
  ) {
    this.#client = client;
    this.#given = given;
    this.#onReconnected = onReconnected;
    this.#onClosed = onClosed;
  }

  /** It is our own, and ends with all its subscriptions when it is closed. */
  get isOwn(): boolean {
    return this.#own !== undefined;
  }

  get(): Promise<RedisSubscriber> {
    // The socket outlives the caller that needs it first.
    this.#connection ??= inBackground(() => this.#connect());
    return this.#connection;
  }

  /** Sends something over the connection of the caller's, where that has a command for it. */
  probe(): void {
    const given = this.#given as { ping?(): Promise<unknown> } | undefined;
    given?.ping?.().catch(() => undefined);
  }

  /** Closes our own connection, or leaves the caller's as it was. */
  close(): void {
    const own = this.#own;
    this.#stopMonitoring?.();
    this.#stopMonitoring = undefined;
    this.#own = undefined;
    this.#connection = undefined;
    // node-redis leaves a socket open that connects after `destroy`: its next event ends it (see `#duplicate`).
    if (own?.isReady !== false) destroy(own);
  }

  async #connect(): Promise<RedisSubscriber> {
    const given = this.#given ?? this.#client;
    // A plain client (it counts its connections) does not listen and send commands at once: it is duplicated.
    if (this.#given === undefined && this.#client.socketEpoch !== undefined) return this.#duplicate();
    if (!isSubscriber(given)) {
      throw new Error('the client has no pub/sub connection (a pool has none): pass one as the option `subscriber`');
    }
    this.#stopMonitoring = ConnectionMonitor.of(given).onReconnect(this.#onReconnected);
    return given;
  }

  async #duplicate(): Promise<RedisSubscriber> {
    const client = this.#client as RedisClient & Partial<Duplicable>;
    if (client.duplicate === undefined) throw new Error('the client has no `duplicate()`');
    const own = client.duplicate();
    this.#own = own;
    // It reconnects by itself, unless its reconnectStrategy gives up. Without a listener the process would end.
    own.on('error', () => {
      if (own.isOpen === false && own === this.#own) this.#onClosed();
    });
    own.on('ready', () => {
      if (own === this.#own) this.#onReconnected();
      else destroy(own);
    });
    // It would try to reconnect for ever, and keep the process alive, though the application has closed its client.
    own.on('reconnecting', () => {
      if (own !== this.#own || client.isOpen === false) destroy(own);
    });
    own.unref?.();
    await own.connect();
    if (own !== this.#own) throw new Error('it was closed while it connected');
    const { socketTimeout = 0 } = client.options?.socket ?? {};
    if (socketTimeout > 0) this.#keepBusy(own, socketTimeout / PINGS);
    return own;
  }

  /** A connection that only listens is idle most of the time, and its socketTimeout would end it. */
  #keepBusy(own: OwnConnection, interval: number): void {
    if (own !== this.#own || own.ping === undefined) return;
    const timer = clock.setTimeout(() => {
      const again = (): void => this.#keepBusy(own, interval);
      // One at a time, so that a connection that is dead still is idle.
      own.ping?.().then(again, again);
    }, interval);
    timer.unref?.();
  }
}

function destroy(connection: OwnConnection | undefined): void {
  try {
    connection?.destroy();
  } catch {} // redis 5: it is closed already
}
