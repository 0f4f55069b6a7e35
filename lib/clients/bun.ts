import type { MessageListener, RedisSubscriber } from '../api/options';
import { clock, within } from '../internal/clock';
import type { AdaptedKind, RedisClient } from '../redis/client';
import { answered, isErrorLike, ReplyError, redirectionIn } from '../redis/failure';
import { adapterOf } from './common/adapter-of';
import { CONFIRMING, type Listening, PlacedChannels } from './common/subscriptions';

/** What the adapter needs of Bun's `RedisClient`, by structure. It does not import it. */
export interface BunRedis {
  readonly connected: boolean;
  send(command: string, args: string[]): Promise<unknown>;
  close(): void;
}

const KIND: AdaptedKind = {
  what: 'a RedisClient of Bun',
  make: 'new RedisClient(url)',
  entryPoint: 'bun',
  members: {
    connected: 'boolean',
    duplicate: 'function',
    send: 'function',
    subscribe: 'function',
    unsubscribe: 'function',
  },
};

/**
 * Makes the client that `RedisLockRegistry` needs of a `RedisClient` of Bun. Messages come over a connection of its
 * own, made with `duplicate()`. The client stays the caller's: it is neither changed nor closed. Bun gives up after
 * `maxRetries` tries to connect again. Then the next command connects it: one that has waited while Bun gave up has shown
 * that, or none was answered for 30 s. Otherwise the application has closed its client, and it stays closed.
 *
 * A registry on Bun's client has no `minReplicas`, no sharded channels and no cluster, since that client has none of
 * them. A reconnect of the client is not noticed: a lease that a restarted server forgot is found lost at its next
 * renewal. A reconnect of the connection for messages, which is open while a waiter listens, is noticed: then Redis is
 * asked about all leases.
 * @throws TypeError when it is no such client.
 * @example
 * const registry = new RedisLockRegistry(fromBun(Bun.redis), { registryKey: 'orders', lockType: 'pub-sub' });
 */
export function fromBun(redis: BunRedis): RedisClient & RedisSubscriber {
  return adapterOf(redis, KIND, (client: BunInternals) => new BunClient(client));
}

/** @internal The methods that the adapter uses: as `KIND` says. */
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

/** ms in which a client that had given up may connect, for the command that needs it. Later ones find it connected. */
const CONNECTING = 250;

/** ms without an answer after which a client has given up: by default Bun tries for longer, 31 s. */
const GIVEN_UP_AFTER = 30_000;

/** What commands get that wait while Bun gives up. */
const GIVES_UP = /^Max reconnection attempts reached$/i;

/** Bun has given up to connect, or the application has closed the client: nothing was sent. */
function hasEnded(error: unknown): boolean {
  return isErrorLike(error) && /^Connection has failed$/i.test(error.message);
}

/** The error as the library knows it, where it is an answer of the server. */
function asServerError(error: unknown): unknown {
  if (!isErrorLike(error) || (error as { code?: unknown }).code !== 'ERR_REDIS_SERVER_ERROR') return error;
  const { message } = error;
  // After a redirection another attempt would go to the same server.
  const why = redirectionIn(error) !== undefined ? "ERR Bun's RedisClient cannot work with a cluster: " : '';
  return new ReplyError(why + message, { cause: error });
}

/**
 * Bun's `RedisClient`, as the registry wants a client. One that listens cannot send commands, so messages come over a
 * connection of our own.
 */
class BunClient extends PlacedChannels implements RedisClient {
  readonly #redis: BunInternals;
  readonly #listeners = new Set<() => void>();
  /** The client connects with its first command, which may take long. */
  #wasConnected = false;
  #answeredAt = Number.NEGATIVE_INFINITY;
  /** Why the client has no connection, and makes none by itself; `undefined` while it has one, or has not said so. */
  #end: 'closed' | 'given up' | undefined;
  /** While the client connects again that had given up. */
  #connecting: Promise<void> | undefined;

  constructor(redis: BunInternals) {
    super();
    this.#redis = redis;
  }

  get isReady(): boolean {
    return this.#redis.connected || !this.#wasConnected;
  }

  readonly scan = this.scanPage;

  /** `ready`: the connection for messages was made again. Bun reports the other one to the application only. */
  on(event: string, listener: () => void): void {
    if (event === 'ready') this.#listeners.add(listener);
  }

  off(event: string, listener: () => void): void {
    if (event === 'ready') this.#listeners.delete(listener);
  }

  protected async command([name = '', ...args]: readonly string[]): Promise<unknown> {
    try {
      return await this.#send(name, args);
    } catch (error) {
      this.#noteEnd(error);
      if (this.#end !== 'given up' || !hasEnded(error)) throw asServerError(error);
      await within(CONNECTING, this.#connectAgain());
      if (!this.#redis.connected) throw error;
    }
    return this.#send(name, args).catch((error: unknown) => {
      throw asServerError(error);
    });
  }

  async #send(name: string, args: string[]): Promise<unknown> {
    const reply = await this.#redis.send(name, args);
    this.#wasConnected = true;
    this.#answeredAt = clock.now();
    this.#end = undefined;
    return reply;
  }

  /** A client that was closed, and one that has given up, say the same to each command from then on. */
  #noteEnd(error: unknown): void {
    if (isErrorLike(error) && GIVES_UP.test(error.message)) this.#end = 'given up';
    if (!hasEnded(error)) return;
    this.#end ??= clock.now() - this.#answeredAt >= GIVEN_UP_AFTER ? 'given up' : 'closed';
  }

  /** Once for all commands that need it. Never rejects: Bun tries as often as its options say. */
  #connectAgain(): Promise<void> {
    this.#connecting ??= this.#redis
      .connect()
      .then(
        () => this.restored(),
        () => undefined,
      )
      .finally(() => (this.#connecting = undefined));
    return this.#connecting;
  }

  protected addressFor(): string {
    return 'the server';
  }

  protected async connect(_address: string, lost: () => void): Promise<Listening> {
    const connection = await this.#redis.duplicate();
    try {
      if (!connection.connected) await connection.connect();
    } catch (error) {
      connection.close();
      throw error;
    }
    // Bun connects again, but does not subscribe again.
    connection.onconnect = lost;
    connection.onclose = lost;
    const { deliver } = this;
    let last: Promise<unknown> = Promise.resolve();
    // One command at a time.
    const next = (command: () => Promise<unknown>): Promise<unknown> => {
      const reply = last.then(command);
      last = reply.catch(() => undefined);
      return answered(reply, CONFIRMING);
    };
    return {
      async subscribe({ name, isSharded }) {
        if (isSharded) throw new TypeError("Bun's RedisClient has no sharded pub/sub");
        await next(() => connection.subscribe(name, deliver));
      },
      unsubscribe: ({ name }) => next(() => connection.unsubscribe(name)),
      close: () => connection.close(),
    };
  }

  protected restored(): void {
    for (const listener of [...this.#listeners]) listener();
  }
}
