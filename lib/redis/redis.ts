import { Batches } from './batches';
import { Call, evaluate } from './call';
import type { RedisClient, RedisCommands } from './client';
import { ConnectionMonitor } from './connection-monitor';
import { Deadlines } from './deadlines';
import type { Script } from './script';

/**
 * Replies must come in their own types, though the application made its client answer with Buffers. node-redis copies
 * the options for every command, so a plain client that has no type mapping is not asked to have none.
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
 * The caller's client, with a deadline of our own for each command. node-redis does not time out a command that was
 * written to the socket, and its default timeout for the others costs several times the throughput. So its timeout is
 * switched off, and every command settles here.
 */
export class Redis {
  readonly client: RedisClient;
  readonly monitor: ConnectionMonitor;
  readonly #commands: RedisCommands;
  readonly #commandTimeout: number;
  readonly #deadlines = new Deadlines();
  readonly #batches: Batches;

  constructor(client: RedisClient, commandTimeout: number) {
    this.client = client;
    this.monitor = ConnectionMonitor.of(client);
    this.#commands = client.withCommandOptions?.(optionsFor(client)) ?? client;
    this.#commandTimeout = commandTimeout;
    // A plain client of node-redis has one connection to one server, as far as it knows.
    this.#batches = new Batches(this.#commands, client.socketEpoch !== undefined);
  }

  /**
   * The connection that commands go over now; `undefined` for a client that has several, or does not say. If the epoch
   * is the same before the first and after the last command, they arrived in order.
   */
  get connectionEpoch(): number | undefined {
    return this.client.socketEpoch;
  }

  /**
   * Grows with every connection that was lost, as far as the client says. A sentinel client repeats by itself a command
   * whose reply was lost with its connection.
   */
  get disruptions(): number {
    return this.client.socketEpoch ?? this.monitor.lostConnections;
  }

  /** On a cluster, what PUBLISH returns inside a script leaves out the listeners on other nodes. */
  get isCluster(): boolean {
    return Array.isArray((this.client as { slots?: unknown }).slots);
  }

  /**
   * Runs a script, together with other calls of it that are made now. Rejects with `CommandTimeoutError` after
   * `timeout` ms, at most the `commandTimeout`; the outcome is unknown then.
   */
  run(script: Script, keys: string[], args: string[], timeout: number): Promise<unknown> {
    return new Promise((resolve, reject) => {
      this.#batches.add(this.#call(script, keys, args, timeout, resolve, reject));
    });
  }

  /**
   * Runs a script alone, and issues its command before this function returns. `asText`: EVAL at once, where the round
   * trip after NOSCRIPT would come too late.
   */
  runNow(script: Script, keys: string[], args: string[], timeout: number, asText: boolean): Promise<unknown> {
    return new Promise((resolve, reject) => {
      const call = this.#call(script, keys, args, timeout, resolve, reject);
      evaluate(this.#commands, script, { keys, arguments: args }, call, asText);
    });
  }

  #call(
    script: Script,
    keys: string[],
    args: string[],
    timeout: number,
    resolve: (reply: unknown) => void,
    reject: (error: unknown) => void,
  ): Call {
    const limit = Math.min(timeout, this.#commandTimeout);
    return new Call(script, keys, args, limit, this.#deadlines, resolve, reject);
  }
}
