import { EventEmitter } from 'node:events';
import { ChannelListeners } from '../redis/channel-listeners';
import type { EvalOptions } from '../redis/client';
import { JoiningSubscriber } from '../redis/joining-subscriber';
import type { MessageListener } from '../redis/subscriber-connection';
import { ChannelSet } from './channel-set';
import { InFlight } from './in-flight';
import { ignore, type SingleIoredis } from './ioredis';

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
};

/** A connection of our own beside the caller's: for messages, or for acquisitions that replicas must have. */
export class OwnConnection extends JoiningSubscriber {
  readonly #redis: SingleIoredis;
  readonly #events = new EventEmitter();
  readonly #channels: ChannelSet;
  readonly #inFlight: InFlight;
  readonly #listeners = new ChannelListeners();
  #connecting: Promise<void> | undefined;
  #lastError: unknown;
  #isDestroyed = false;
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
    });
    this.#channels = new ChannelSet(redis, this.#listeners.deliver, () => this.#events.emit('ready'));
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

  /** Closes it at once. Nobody waits for its replies any more. */
  destroy(): void {
    this.#isDestroyed = true;
    this.#redis.disconnect();
    this.#redis.stream?.destroy?.();
    this.#events.emit('closed'); // ioredis does not say so while it waits for its next try
  }

  eval(script: string, { keys = [], arguments: args = [] }: EvalOptions = {}): Promise<unknown> {
    return this.#inFlight.track(this.#redis.eval(script, keys.length, ...keys, ...args));
  }

  evalSha(sha1: string, { keys = [], arguments: args = [] }: EvalOptions = {}): Promise<unknown> {
    return this.#inFlight.track(this.#redis.evalsha(sha1, keys.length, ...keys, ...args));
  }

  wait(replicas: number, timeout: number): Promise<unknown> {
    return this.#inFlight.track(this.#redis.wait(replicas, timeout));
  }

  sendCommand(command: readonly string[]): Promise<unknown> {
    return this.#inFlight.track(this.#redis.call(...command));
  }

  protected async join(channel: string, listener: MessageListener, isSharded: boolean): Promise<void> {
    const confirmed = this.#channels.add(channel, isSharded);
    this.#listeners.add(channel, listener);
    await confirmed;
  }

  protected async part(channel: string, listener: MessageListener | undefined, isSharded: boolean): Promise<void> {
    if (this.#listeners.remove(channel, listener)) await this.#channels.remove(channel, isSharded);
  }
}
