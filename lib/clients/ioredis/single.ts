import { EventEmitter, errorMonitor } from 'node:events';
import type { RedisClient } from '../../redis/client';
import { ClientClosedError, isServerAnswer } from '../../redis/failure';
import { type Channel, Channels, WordsClient } from '../common/subscriptions';
import type { ClusterIoredis, SingleIoredis } from './instance';

/** Sends a command, or adds it to a pipeline. ioredis knows the keys of those in small letters. */
function send<T>(to: { call(name: string, ...args: string[]): T }, [name = '', ...args]: readonly string[]): T {
  return to.call(name.toLowerCase(), ...args);
}

/**
 * Sends a command to a cluster, alone also with auto-pipelining. A pipeline follows no redirection of one command of
 * several, and iovalkey's finds the node of a script by its digest: it refuses scripts about keys of several nodes.
 */
export async function sendAlone(cluster: ClusterIoredis, words: readonly string[]): Promise<unknown> {
  if (cluster.options.enableAutoPipelining !== true) return send(cluster, words);
  const [[error, reply] = []] = await send(cluster.pipeline(), words).exec();
  if (error) throw error;
  return reply;
}

/** Whether the connection can be used. With `lazyConnect` the first command makes it. */
export function isReady({ status }: { readonly status: string }): boolean {
  return status === 'ready' || status === 'wait';
}

/** `host:port`, as in `slots`. */
export function addressOf({ options }: SingleIoredis): string {
  return `${options.host}:${options.port}`;
}

export function ignore(): void {}

/** An instance of ioredis' `Redis`, as the registry wants a plain client. */
export class SingleClient extends WordsClient implements RedisClient {
  readonly #redis: SingleIoredis;
  readonly #inFlight: InFlight | undefined;
  #stream: unknown;
  #epoch = 0;

  constructor(redis: SingleIoredis) {
    super();
    this.#redis = redis;
    if (redis.options.autoResendUnfulfilledCommands === false) this.#inFlight = new InFlight(redis);
  }

  /** A connection that was made again has another socket: so it shows without a listener. */
  get socketEpoch(): number {
    const { stream } = this.#redis;
    if (stream !== this.#stream) {
      this.#stream = stream;
      this.#epoch++;
    }
    return this.#epoch;
  }

  get isOpen(): boolean {
    const { status, manuallyClosing } = this.#redis;
    // When `disconnect` is called in the pause before the next try, ioredis keeps this status for ever.
    return status !== 'end' && !(status === 'reconnecting' && manuallyClosing === true);
  }

  get isReady(): boolean {
    return isReady(this.#redis);
  }

  readonly scan = this.scanPage;

  duplicate(): OwnConnection {
    return new OwnConnection(this.#redis);
  }

  on(event: string, listener: () => void): void {
    this.#redis.on(event, listener);
  }

  off(event: string, listener: () => void): void {
    this.#redis.off(event, listener);
  }

  onError(listener: (error: unknown) => void): () => void {
    this.#redis.on(errorMonitor, listener as never);
    return () => this.#redis.off(errorMonitor, listener as never);
  }

  protected command(words: readonly string[]): Promise<unknown> {
    if (!this.isOpen) return Promise.reject(new ClientClosedError('The client is closed'));
    const reply = send(this.#redis, words);
    return this.#inFlight === undefined ? reply : this.#inFlight.track(reply);
  }
}

/**
 * The options of a connection of our own, in place of the caller's. It repeats nothing by itself: what waits for
 * replicas must not be sent again over another connection. Its commands wait for a connection, as node-redis' do.
 */
const OPTIONS = {
  lazyConnect: true,
  autoResubscribe: false,
  autoResendUnfulfilledCommands: false,
  enableAutoPipelining: false,
  enableOfflineQueue: true,
  maxRetriesPerRequest: null,
  commandTimeout: undefined,
  // ms for which ioredis keeps a process alive that has disconnected a socket that is closed already.
  disconnectTimeout: 1,
};

/**
 * A connection of our own beside the caller's: for messages, or for acquisitions that replicas must have. It subscribes
 * again after a reconnect: ioredis does not handle a refused resubscription, and does not report when it has resubscribed.
 */
export class OwnConnection extends Channels {
  readonly #redis: SingleIoredis;
  readonly #events = new EventEmitter();
  readonly #inFlight: InFlight;
  #connecting: Promise<void> | undefined;
  #lastError: unknown;
  #isDestroyed = false;
  readonly endsAtOnce = true;
  /** Connections so far. */
  socketEpoch = 0;

  constructor(original: SingleIoredis, overrides: object = {}) {
    super();
    const redis = original.duplicate({ ...OPTIONS, ...overrides });
    this.#redis = redis;
    this.#inFlight = new InFlight(redis);
    redis.on('connect', () => {
      this.socketEpoch++;
      redis.stream?.unref?.();
    });
    // Without a listener ioredis writes its errors to the console.
    redis.on('error', ((error: unknown) => {
      this.#lastError = error;
      this.#events.emit('failed');
    }) as never);
    redis.on('reconnecting', () => this.#events.emit('reconnecting'));
    redis.on('end', () => {
      this.#events.emit('failed');
      this.#events.emit('closed');
      for (const channel of this.channels.values())
        channel.fail(new Error('the pub/sub connection is closed for good'));
    });
    const deliver = (channel: string, message: string): unknown => this.deliver(message, channel);
    redis.on('message', deliver as never);
    redis.on('smessage', deliver as never);
    redis.on('ready', () => {
      const subscribed = Promise.all([...this.channels.values()].map((channel) => this.#subscribe(channel)));
      void subscribed.then(() => this.#events.emit('ready'));
    });
  }

  /** `false` once it is closed for good. */
  get isOpen(): boolean {
    return !this.#isDestroyed && this.#redis.status !== 'end';
  }

  get isReady(): boolean {
    return this.#redis.status === 'ready';
  }

  /** Resolves at its first connection. Rejects when it gives up. */
  connect(): Promise<void> {
    this.#connecting ??= new Promise((resolve, reject) => {
      this.#events.once('ready', resolve);
      this.#events.once('closed', () => reject(this.#lastError ?? new Error('the connection was closed')));
      this.#redis.connect().catch(ignore); // it goes on trying
    });
    return this.#connecting;
  }

  /**
   * `ready`: connected and subscribed. `error`: of a connection, and also when it is closed for good. `reconnecting`.
   */
  on(event: string, listener: () => void): this {
    this.#events.on(event === 'error' ? 'failed' : event, listener);
    return this;
  }

  /** Closes it at once. ioredis may never settle what waits for a connection: it is rejected. */
  destroy(): void {
    // ioredis listens to its socket once more each time.
    if (this.#isDestroyed) return;
    this.#isDestroyed = true;
    this.#inFlight.rejectAll();
    this.#redis.disconnect();
    this.#redis.stream?.destroy?.();
    this.#events.emit('closed'); // ioredis does not say so while it waits for its next try
  }

  wait(replicas: number, timeout: number): Promise<unknown> {
    return this.command(['WAIT', String(replicas), String(timeout)]);
  }

  protected command(words: readonly string[]): Promise<unknown> {
    return this.#inFlight.track(send(this.#redis, words));
  }

  /** Before it is ready, it waits: what is sent during the handshake may never be settled. */
  protected added(channel: Channel): void {
    if (channel.isSharded && this.#redis.ssubscribe === undefined) {
      void this.drop(channel, new TypeError('the client has no sharded pub/sub'));
    } else if (this.isReady) {
      void this.#subscribe(channel);
    }
  }

  protected async removed({ name, isSharded }: Channel): Promise<void> {
    const left = this.isReady && (isSharded ? this.#redis.sunsubscribe?.(name) : this.#redis.unsubscribe(name));
    if (left) await this.#inFlight.track(left).catch(ignore);
  }

  /** Never rejects. */
  async #subscribe(channel: Channel): Promise<void> {
    const { name, isSharded } = channel;
    try {
      await (isSharded ? this.#redis.ssubscribe?.(name) : this.#redis.subscribe(name));
      channel.confirm();
    } catch (error) {
      // If it failed with its connection: again on the next one.
      if (!isServerAnswer(error)) return;
      // A listener of a channel that was subscribed relies on it, as long as the connection is open.
      if (channel.wasConfirmed) this.destroy();
      else await this.drop(channel, error);
    }
  }
}

/**
 * The commands of a connection whose replies are awaited. Without `autoResendUnfulfilledCommands`, ioredis never
 * settles a command whose connection was lost, once there is a new one. This rejects it.
 */
class InFlight {
  readonly #rejects = new Set<(error: Error) => void>();
  #isUp: boolean;

  constructor(redis: SingleIoredis) {
    this.#isUp = redis.status === 'ready';
    redis.on('ready', () => {
      this.#isUp = true;
    });
    redis.on('close', () => {
      // What was issued while there was no connection waits in ioredis for the next one.
      if (this.#isUp) this.rejectAll();
      this.#isUp = false;
    });
  }

  track(reply: Promise<unknown>): Promise<unknown> {
    return new Promise((resolve, reject) => {
      this.#rejects.add(reject);
      reply.then(resolve, reject).finally(() => this.#rejects.delete(reject));
    });
  }

  rejectAll(): void {
    for (const reject of this.#rejects) reject(new Error('The connection was lost before Redis replied'));
    this.#rejects.clear();
  }
}
