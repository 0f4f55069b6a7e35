import { Batches } from './batches';
import { Call, evaluate } from './call';
import { Deadlines } from './deadlines';
import type { Script } from './script';

export interface EvalOptions {
  keys?: string[];
  arguments?: string[];
}

/** The two commands that the library sends. */
export interface RedisCommands {
  eval(script: string, options?: EvalOptions): Promise<unknown>;
  evalSha(sha1: string, options?: EvalOptions): Promise<unknown>;
}

/**
 * What the library needs of a Redis client, by structure: a client, a pool, a cluster and a sentinel of node-redis 5
 * and 6 have it, and any other client has it with an adapter of a few lines.
 */
export interface RedisClient extends RedisCommands {
  /** node-redis: the same client with other options for its commands. */
  withCommandOptions?(options: { timeout?: number; typeMapping?: Record<never, never> }): RedisCommands;
  /** node-redis' plain client: counts its connections, so that a reconnect can be noticed. */
  readonly socketEpoch?: number;
  /** node-redis: the application has connected the client and not closed it. */
  readonly isOpen?: boolean;
  /** node-redis' sentinel client: tells by events that it lost a connection. */
  on?(event: string, listener: () => void): unknown;
  off?(event: string, listener: () => void): unknown;
}

/** Events of node-redis' sentinel client: which of them it emits depends on its version. */
const LOST_CONNECTION = ['client-error', 'topology-change'];

export function isRedisClient(value: unknown): value is RedisClient {
  const client = value as Partial<RedisClient> | null | undefined;
  return typeof client?.eval === 'function' && typeof client.evalSha === 'function';
}

/**
 * Replies of their own kind, where the application made its client answer with Buffers for one. node-redis copies the
 * options for every command, so a plain client that has no mapping is not asked to have none.
 */
function optionsFor(client: RedisClient): { timeout: number; typeMapping?: Record<never, never> } {
  const { _commandOptions: own, options } = client as NodeRedisClient;
  const isPlain = client.socketEpoch !== undefined && '_commandOptions' in client;
  const hasMapping = own?.typeMapping !== undefined || options?.commandOptions?.typeMapping !== undefined;
  return isPlain && !hasMapping ? { timeout: 0 } : { timeout: 0, typeMapping: {} };
}

/** Where node-redis' plain client has its options: those of the application, and those of `withTypeMapping` and its like. */
interface NodeRedisClient {
  readonly options?: { readonly commandOptions?: CommandOptions };
  readonly _commandOptions?: CommandOptions;
}

interface CommandOptions {
  readonly typeMapping?: unknown;
}

/**
 * The caller's client, behind a deadline of our own. node-redis does not time out a command that was written to the
 * socket, and its default timeout for those that were not costs several times the throughput: so it is switched off,
 * and every command settles here.
 */
export class Redis {
  readonly client: RedisClient;
  readonly #commands: RedisCommands;
  readonly #commandTimeout: number;
  readonly #deadlines = new Deadlines();
  readonly #batches: Batches | undefined;
  #lostConnections = 0;
  readonly #onLostConnection = (): void => {
    this.#lostConnections++;
  };

  constructor(client: RedisClient, commandTimeout: number) {
    this.client = client;
    this.#commands = client.withCommandOptions?.(optionsFor(client)) ?? client;
    this.#commandTimeout = commandTimeout;
    if (client.socketEpoch !== undefined) {
      // A plain client of node-redis has one connection to one server, as far as it knows.
      this.#batches = new Batches(this.#commands);
    } else {
      for (const event of LOST_CONNECTION) client.on?.(event, this.#onLostConnection);
    }
  }

  close(): void {
    for (const event of LOST_CONNECTION) this.client.off?.(event, this.#onLostConnection);
  }

  /**
   * Which connection commands go over now; `undefined` for a client that has several, or does not tell. Two commands
   * with the same epoch before the first and after the last reached the server in the order they were sent.
   */
  get connectionEpoch(): number | undefined {
    return this.client.socketEpoch;
  }

  /**
   * Grows with every connection that was lost, as far as the client tells. A sentinel client repeats by itself a command
   * whose reply was lost with its connection.
   */
  get disruptions(): number {
    return this.client.socketEpoch ?? this.#lostConnections;
  }

  /** Whether what PUBLISH answers inside of a script leaves out those who listen on other nodes. */
  get isCluster(): boolean {
    return Array.isArray((this.client as { slots?: unknown }).slots);
  }

  /**
   * Runs a script. `asText`: without trying whether the server knows it, where a second round trip would come too late.
   * Rejects with `CommandTimeoutError` after `timeout` ms, at most the `commandTimeout`; the outcome is unknown then.
   */
  run(script: Script, keys: string[], args: string[], timeout: number, asText = false): Promise<unknown> {
    const limit = Math.min(timeout, this.#commandTimeout);
    return new Promise((resolve, reject) => {
      const call = new Call(script, keys, args, limit, this.#deadlines, resolve, reject);
      if (asText || this.#batches === undefined) {
        evaluate(this.#commands, script, { keys, arguments: args }, call, asText);
      } else {
        this.#batches.add(call);
      }
    });
  }
}
