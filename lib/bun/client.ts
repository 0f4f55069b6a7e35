import { backgroundPause, inBackground } from '../internal/clock';
import { type Channel, WordsClient } from '../redis/channels';
import type { RedisClient } from '../redis/client';
import { isErrorLike, isServerAnswer } from '../redis/failure';
import type { MessageListener } from '../redis/subscriber';

/** What the adapter needs of Bun's `RedisClient`, by structure. It does not import it. */
export interface BunRedis {
  readonly connected: boolean;
  send(command: string, args: string[]): Promise<unknown>;
  close(): void;
}

/** The methods that the adapter uses, after `isBunRedis` accepted the value. */
export interface BunInternals extends BunRedis {
  /** Connected, where the original is. */
  duplicate(): Promise<BunInternals>;
  connect(): Promise<unknown>;
  subscribe(channel: string, listener: MessageListener): Promise<unknown>;
  unsubscribe(channel: string): Promise<unknown>;
  /** Each holds one function: those of the application's client are the application's. */
  onconnect: (() => void) | null;
  onclose: ((error: unknown) => void) | null;
}

export function isBunRedis(value: unknown): value is BunInternals {
  const { send, duplicate, subscribe, unsubscribe, connected } = (value ?? {}) as Partial<BunInternals>;
  const hasMethods = [send, duplicate, subscribe, unsubscribe].every((method) => typeof method === 'function');
  return hasMethods && typeof connected === 'boolean';
}

/** ms that Redis has to confirm a channel. */
const CONFIRMING = 5_000;

/** ms until a connection that failed is tried again. */
const RETRY_AFTER = 1_000;

/** An error that the server answered. Its name is what `isErrorReply` knows. */
class ReplyError extends Error {
  override readonly name = 'ReplyError';
}

/** The error as the library knows it, where it is an answer of the server. */
function asServerError(error: unknown): unknown {
  if (!isErrorLike(error) || (error as { code?: unknown }).code !== 'ERR_REDIS_SERVER_ERROR') return error;
  const { message } = error;
  // After a redirection another attempt would go to the same server.
  const why = /^(MOVED|ASK) /.test(message) ? "ERR Bun's RedisClient cannot work with a cluster: " : '';
  return new ReplyError(why + message, { cause: error });
}

/**
 * Bun's `RedisClient`, as the registry wants a client. One that listens cannot send commands, so messages come over a
 * connection of our own. It would keep the process alive, so it is closed when it has no channels.
 */
export class BunClient extends WordsClient implements RedisClient {
  readonly #redis: BunInternals;
  readonly #listeners = new Set<() => void>();
  #connection: Promise<BunInternals> | undefined;
  #isRestoring = false;
  /** Everything goes over the connection one after the other. */
  #traffic: Promise<unknown> = Promise.resolve();

  constructor(redis: BunInternals) {
    super();
    this.#redis = redis;
  }

  readonly scan = this.scanPage;

  /** `ready`: the connection for messages was made again. Bun reports the other one to the application only. */
  on(event: string, listener: () => void): void {
    if (event === 'ready') this.#listeners.add(listener);
  }

  off(event: string, listener: () => void): void {
    if (event === 'ready') this.#listeners.delete(listener);
  }

  protected async command([name = '', ...args]: string[]): Promise<unknown> {
    try {
      return await this.#redis.send(name, args);
    } catch (error) {
      throw asServerError(error);
    }
  }

  // Channels

  protected async added(channel: Channel): Promise<void> {
    try {
      if (channel.isSharded) throw new Error("Bun's RedisClient has no sharded pub/sub");
      await this.#adjust(channel);
      channel.confirm();
    } catch (error) {
      await this.drop(channel, error);
    }
  }

  protected async removed(channel: Channel): Promise<void> {
    await this.#adjust(channel).catch(() => undefined); // it ends with its connection
  }

  /** Subscribes or unsubscribes it, depending on whether it is wanted. */
  #adjust(channel: Channel): Promise<void> {
    const adjusted = this.#traffic.then(() => this.#adjustNow(channel));
    this.#traffic = adjusted.catch(() => undefined);
    return adjusted;
  }

  async #adjustNow(channel: Channel): Promise<void> {
    const isWanted = this.#wanted.includes(channel);
    if (isWanted === channel.isSubscribed) return;
    try {
      if (isWanted) await confirmed(this.#subscribe(channel));
      else await confirmed(this.#unsubscribe(channel));
    } catch (error) {
      // A refusal is about this channel only. Otherwise the connection has failed, and what was subscribed with it.
      if (!isServerAnswer(error)) {
        if (this.#wanted.some(({ isSubscribed }) => isSubscribed)) void this.#restore();
        else this.#disconnect();
      }
      throw error;
    }
  }

  get #wanted(): Channel[] {
    return [...this.channels.values()];
  }

  async #subscribe(channel: Channel): Promise<void> {
    this.#connection ??= inBackground(() => this.#connect());
    const connecting = this.#connection;
    await (await connecting).subscribe(channel.name, this.deliver);
    // It may be late: another connection has taken its place.
    if (connecting === this.#connection) channel.isSubscribed = true;
  }

  async #unsubscribe(channel: Channel): Promise<void> {
    channel.isSubscribed = false;
    if (!this.#wanted.some(({ isSubscribed }) => isSubscribed)) this.#disconnect();
    else await (await this.#connection)?.unsubscribe(channel.name);
  }

  #connect(): Promise<BunInternals> {
    const connecting = this.#redis.duplicate().then(async (connection) => {
      if (!connection.connected) await connection.connect();
      // Bun connects again, but does not subscribe again.
      const lost = (): void => {
        if (connecting === this.#connection) void this.#restore();
      };
      connection.onconnect = lost;
      connection.onclose = lost;
      return connection;
    });
    return connecting;
  }

  /** All channels, on a new connection: messages may have been missed. Never rejects. */
  async #restore(): Promise<void> {
    this.#disconnect();
    if (this.#isRestoring) return;
    this.#isRestoring = true;
    const isComplete = () => this.#wanted.every(({ isSubscribed }) => isSubscribed);
    while (!isComplete()) {
      await Promise.allSettled(this.#wanted.map((channel) => this.#adjust(channel)));
      if (!isComplete()) await backgroundPause(RETRY_AFTER);
    }
    this.#isRestoring = false;
    for (const listener of [...this.#listeners]) listener();
  }

  #disconnect(): void {
    const connection = this.#connection;
    this.#connection = undefined;
    for (const channel of this.channels.values()) channel.isSubscribed = false;
    connection?.then((one) => one.close()).catch(() => undefined);
  }
}

async function confirmed(command: Promise<void>): Promise<void> {
  const late = backgroundPause(CONFIRMING).then(() => {
    throw new Error(`Redis did not confirm a channel within ${CONFIRMING} ms`);
  });
  await Promise.race([command, late]);
}
