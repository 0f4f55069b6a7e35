import type { RedisSubscriber } from '../api/options';
import { clock } from '../internal/clock';
import type { AdaptedKind, RedisClient } from '../redis/client';
import { type Page, type ScanOptions, scanPage } from '../redis/cluster';
import { ClientClosedError, isErrorLike } from '../redis/failure';
import { adapterOf } from './common/adapter-of';
import { type Channel, CONFIRMING, type Listening, PlacedChannels } from './common/subscriptions';

/** What the adapter needs of a client of valkey-glide, by structure. It does not import the package. */
export interface Glide {
  customCommand(command: string[]): Promise<unknown>;
  close(): void;
}

const KIND: AdaptedKind = {
  what: 'a GlideClient or GlideClusterClient of valkey-glide',
  make: 'await GlideClient.createClient({ addresses })',
  entryPoint: 'valkey-glide',
  members: { close: 'function', customCommand: 'function', invokeScript: 'function' },
};

/**
 * Makes the client that `RedisLockRegistry` needs of a `GlideClient` or `GlideClusterClient` of valkey-glide 2.
 * Messages come over a client of its own, with the configuration of the given one. That stays the caller's: it is
 * neither changed nor closed.
 *
 * There is no `minReplicas` with it, and of a cluster no `list()`. A reconnect is not noticed: a lease that a restarted
 * server forgot is found lost at its next renewal.
 * @throws TypeError when it is no such client.
 * @example
 * const registry = new RedisLockRegistry(fromGlide(client), { registryKey: 'orders', lockType: 'fair' });
 */
export function fromGlide(client: Glide): RedisClient & RedisSubscriber {
  return adapterOf(client, KIND, (glide: GlideInternals) =>
    glide.invokeScriptWithRoute === undefined ? new SingleGlide(glide) : new ClusterGlide(glide),
  );
}

/**
 * `Decoder.Bytes` of valkey-glide. With the other one, a reply is lost as a whole where any text in it is no UTF-8: a key,
 * a value or a message that another program wrote.
 */
const BYTES = 0;
const AS_BYTES = { decoder: BYTES } as const;

/** The reply with text in place of bytes. */
function withText(reply: unknown): unknown {
  if (reply instanceof Uint8Array) return Buffer.from(reply.buffer, reply.byteOffset, reply.byteLength).toString();
  if (typeof reply !== 'object' || reply === null || reply instanceof Error) return reply;
  if (Array.isArray(reply)) return reply.map(withText);
  if (reply instanceof Map) return new Map([...reply].map(([name, value]) => [withText(name), withText(value)]));
  return Object.fromEntries(Object.entries(reply).map(([name, value]) => [name, withText(value)]));
}

interface GlideMessage {
  readonly message: unknown;
  readonly channel: unknown;
}

/** `GlideClient` and `GlideClusterClient`. */
interface GlideInternals extends Glide {
  customCommand(command: string[], options?: typeof AS_BYTES): Promise<unknown>;
  /** A cluster. */
  invokeScriptWithRoute?: unknown;
  /** Private: what the client was made with. */
  readonly config?: { readonly readFrom?: string };
  readonly isClosed?: boolean;
  /** Counts for all clients in this process. */
  getStatistics?(): { readonly total_connections?: string };
  readonly constructor: { createClient?(config: object): Promise<GlideSubscriberClient> } & object;
}

/** A client of our own that only listens. valkey-glide 2.3 and later subscribe after the client was made. */
interface GlideSubscriberClient {
  readonly socket?: { unref?(): unknown };
  subscribe?(channels: string[], timeout: number): Promise<unknown>;
  /** `null`: all channels. */
  unsubscribe?(channels: string[] | null, timeout: number): Promise<unknown>;
  /** A cluster. */
  ssubscribe?(channels: string[], timeout: number): Promise<unknown>;
  sunsubscribe?(channels: string[] | null, timeout: number): Promise<unknown>;
  close(): void;
}

/** ms between two looks at whether valkey-glide counts the connections of a client. */
const COUNTING = 1_000;

/** What valkey-glide calls the error codes of a server. Others it leaves as they are. */
const CODES: Readonly<Record<string, string>> = {
  Ask: 'ASK',
  BusyLoadingError: 'LOADING',
  ClusterDown: 'CLUSTERDOWN',
  CrossSlot: 'CROSSSLOT',
  ExecAbortError: 'EXECABORT',
  MasterDown: 'MASTERDOWN',
  Moved: 'MOVED',
  NoScriptError: 'NOSCRIPT',
  PermissionDenied: 'NOPERM',
  ReadOnly: 'READONLY',
  ResponseError: 'ERR',
  TryAgain: 'TRYAGAIN',
};

/** `An error was signalled by the server: - NoScriptError: No matching script.` */
const NAMED = /^An error was signalled by the server: - (\w+): (.*)$/s;

/** `WRONGTYPE: Operation against a key holding the wrong kind of value` */
const WITH_CODE = /^([A-Z]{3,}): (.*)$/s;

/** What a call of a client that was closed before is rejected with. A minifier changes the name of its class. */
const CLOSED = /\bthe client is closed\b/;

/**
 * The error as the server wrote it, code first, where it is an answer of the server. What is in flight when the client is
 * closed gets any text, and no answer.
 */
function asServerError(error: unknown, { isClosed = false }: { readonly isClosed?: boolean }): unknown {
  if (!isErrorLike(error)) return error;
  const [, name, text] = NAMED.exec(error.message) ?? [];
  if (name !== undefined) return new Error(`${CODES[name] ?? name.toUpperCase()} ${text}`, { cause: error });
  if (isClosed || CLOSED.test(error.message)) return new ClientClosedError(error.message);
  const [, code, rest] = WITH_CODE.exec(error.message) ?? [];
  return code === undefined ? error : new Error(`${code} ${rest}`, { cause: error });
}

/**
 * A client of valkey-glide, as the registry wants one. It has no events: a reconnect is not noticed. Messages come over
 * a client of our own: the callback for them can only be given when a client is made.
 */
class GlideAdapter extends PlacedChannels implements RedisClient {
  readonly #client: GlideInternals;
  /** Whether the client was counted when Redis answered. Closing one of a cluster makes the count too small. */
  #isCounted = false;
  #nextLookAt = 0;

  constructor(client: GlideInternals) {
    super();
    this.#client = client;
  }

  /** `false` while no client of valkey-glide in this process has a connection. It says no more than that. */
  get isReady(): boolean {
    return !this.#isCounted || this.#hasConnections;
  }

  get #hasConnections(): boolean {
    return Number(this.#client.getStatistics?.().total_connections) > 0;
  }

  get isOpen(): boolean {
    return this.#client.isClosed !== true;
  }

  protected get readsFromReplicas(): boolean {
    return (this.#client.config?.readFrom ?? 'primary') !== 'primary';
  }

  protected async command(command: readonly string[]): Promise<unknown> {
    if (!this.isOpen) throw new ClientClosedError('The client is closed');
    try {
      const reply = await this.#client.customCommand([...command], AS_BYTES);
      this.#answered(clock.now());
      return withText(reply);
    } catch (error) {
      throw asServerError(error, this.#client);
    }
  }

  #answered(now: number): void {
    if (now < this.#nextLookAt) return;
    this.#nextLookAt = now + COUNTING;
    this.#isCounted = this.#hasConnections;
  }

  protected addressFor(): string {
    return 'the server, or all nodes';
  }

  /** The client connects and subscribes again by itself. */
  protected async connect(): Promise<Listening> {
    const { config, constructor: Client } = this.#client;
    if (config === undefined || Client.createClient === undefined) {
      throw new Error('this version of valkey-glide does not say what the client was made with');
    }
    const callback = ({ channel, message }: GlideMessage): void => void this.deliver(String(message), String(channel));
    const client = await Client.createClient({
      ...config,
      lazyConnect: false,
      protocol: undefined, // RESP 3, which its subscriptions need
      defaultDecoder: BYTES,
      pubsubSubscriptions: { channelsAndPatterns: {}, callback },
    });
    client.socket?.unref?.();
    return {
      async subscribe({ name, isSharded }: Channel) {
        const command = isSharded ? client.ssubscribe : client.subscribe;
        if (command === undefined) throw new Error(`this version of valkey-glide cannot subscribe to ${name} later`);
        await command.call(client, [name], CONFIRMING).catch((error) => {
          throw asServerError(error, client as { readonly isClosed?: boolean });
        });
      },
      async unsubscribe({ name, isSharded }: Channel) {
        await (isSharded ? client.sunsubscribe : client.unsubscribe)?.call(client, [name], CONFIRMING);
      },
      close() {
        // valkey-glide prints an error later for a client that was closed while it had channels.
        const left = [client.unsubscribe?.(null, CONFIRMING), client.sunsubscribe?.(null, CONFIRMING)];
        void Promise.allSettled(left).then(() => client.close());
      },
    };
  }

  protected restored(): void {}
}

/** `GlideClient`: one server, or a primary with replicas. */
class SingleGlide extends GlideAdapter {
  /**
   * With `readFrom`, each page would come from another replica: a script goes to the primary. Without, SCAN it is: a proxy
   * may have it of all its servers.
   */
  readonly scan = (cursor: string, options: ScanOptions): Promise<Page> => {
    const byScript = (words: string[]) => this.eval('return redis.call(unpack(ARGV))', { arguments: words });
    return this.readsFromReplicas ? scanPage(byScript, cursor, options) : this.scanPage(cursor, options);
  };
}

/** `GlideClusterClient`. */
class ClusterGlide extends GlideAdapter {
  /** An array marks a cluster. */
  readonly slots: readonly never[] = [];
}
