import type { ReplicationSettings } from '../api/options';
import { clock } from '../internal/clock';
import { Batches } from './batches';
import { Call, evaluate, type Receiver, type ScriptRun } from './call';
import type { EvalOptions, RedisClient, RedisCommands } from './client';
import { commandsOf } from './client-commands';
import { addressOf, masterOf } from './cluster-client';
import type { Connection } from './connection';
import { ConnectionMonitor } from './connection-monitor';
import { Deadlines } from './deadlines';
import { hashSlot } from './hash-slot';
import { KeyPlacement } from './key-placement';
import { Line } from './line';
import { ReplicatedScripts } from './replicated-scripts';
import type { Script } from './script';
import { Silence } from './silence';

/**
 * The caller's client, with a deadline of our own for each command. node-redis does not time out a command that was
 * written to the socket, and its default timeout for the others costs several times the throughput. So its timeout is
 * switched off, and every command settles here.
 */
export class Redis implements Connection {
  readonly client: RedisClient;
  readonly monitor: ConnectionMonitor;
  /** As Connection. */
  isClosed = false;
  readonly #commands: RedisCommands;
  readonly #commandTimeout: number;
  readonly #deadlines = new Deadlines();
  readonly #batches: Batches;
  readonly #silence: Silence;
  /** By the address of the server. Of what is not a cluster, or does not say which server has a key, there is one. */
  readonly #lines = new Map<string, Line>();
  /** Runs scripts that acquire, with `minReplicas`. */
  readonly #replicated: ReplicatedScripts | undefined;

  /**
   * `registryKey`: keys that begin with it may be written. Throws `TypeError` with a `replication` for which the client
   * cannot have a connection of our own.
   */
  constructor(client: RedisClient, registryKey: string, commandTimeout: number, replication?: ReplicationSettings) {
    this.client = client;
    this.monitor = ConnectionMonitor.of(client);
    this.#commands = commandsOf(client);
    this.#commandTimeout = commandTimeout;
    // A plain client, of node-redis or adapted, has one connection to one server, as far as it knows.
    const mayAcquireTogether = client.socketEpoch !== undefined || this.isCluster;
    const isReplicated = replication !== undefined && replication.minReplicas > 0;
    this.#silence = new Silence(client.socketEpoch !== undefined && !isReplicated);
    const placement = new KeyPlacement(registryKey, commandTimeout, this.isCluster, (script, keys, args) =>
      this.runNow(script, keys, args, commandTimeout, true, (reply) => reply),
    );
    this.#batches = new Batches({ run: this.#issue }, placement, mayAcquireTogether);
    if (isReplicated) {
      this.#replicated = new ReplicatedScripts(client, replication, this.#silence);
    }
  }

  /** Grants count only when replicas have them. */
  get isReplicated(): boolean {
    return this.#replicated !== undefined;
  }

  /** Ends the connections of our own. */
  close(): void {
    this.isClosed = true;
    this.#replicated?.close();
  }

  /**
   * The connection that commands go over now; `undefined` for a client that has several, or does not say, and where
   * acquisitions have one of their own. If the epoch is the same before the first and after the last command, they
   * arrived in order.
   */
  get connectionEpoch(): number | undefined {
    return this.#replicated === undefined ? this.client.socketEpoch : undefined;
  }

  /**
   * Grows with every connection that was lost, as far as the client says. A sentinel client repeats by itself a command
   * whose reply was lost with its connection.
   */
  get disruptions(): number {
    return this.client.socketEpoch ?? this.monitor.lostConnections;
  }

  /** As Connection. */
  mayBeOutdated(sentAt: number): boolean {
    return this.#silence.mayBeOutdated(sentAt);
  }

  /** As Connection: the last error that the client emitted. */
  get lastError(): unknown {
    return this.monitor.lastError;
  }

  /** On a cluster, what PUBLISH returns inside a script leaves out the listeners on other nodes. */
  get isCluster(): boolean {
    return Array.isArray((this.client as { slots?: unknown }).slots);
  }

  /** On a cluster, the slot of a key, for error messages. */
  slotOf(key: string): number | undefined {
    return this.isCluster ? hashSlot(key) : undefined;
  }

  /**
   * Runs a script, together with other calls of it that are made now. Resolves to what `read` makes of the reply.
   * Rejects with what `read` throws, or with `CommandTimeoutError` after `timeout` ms, at most the `commandTimeout`;
   * the outcome is unknown then. `now`: for a caller that has read the clock just now.
   */
  run<T>(
    script: Script,
    keys: string[],
    args: string[],
    timeout: number,
    read: (reply: unknown) => T,
    now = clock.now(),
  ): Promise<T> {
    const promise = new Promise<T>(capture);
    this.send(script, keys, args, timeout, read, captured.resolve as (value: T) => void, captured.reject, now);
    return promise;
  }

  /** As `run`, without a promise: for renewals, of which there may be thousands at a time. */
  send<T>(
    script: Script,
    keys: string[],
    args: string[],
    timeout: number,
    read: (reply: unknown) => T,
    resolve: (value: T) => void,
    reject: (error: unknown) => void,
    now = clock.now(),
  ): void {
    const call = this.#call(script, keys, args, timeout, read, resolve, reject, now);
    this.#lineTo(keys[0]).add(call, now);
  }

  /**
   * Runs a script alone, and issues its command before this function returns. `asText`: EVAL at once, where the round
   * trip after NOSCRIPT would come too late.
   */
  runNow<T>(
    script: Script,
    keys: string[],
    args: string[],
    timeout: number,
    asText: boolean,
    read: (reply: unknown) => T,
  ): Promise<T> {
    return new Promise((resolve, reject) => {
      const call = this.#call(script, keys, args, timeout, read, resolve, reject);
      call.isSent = true;
      this.#issue(script, { keys, arguments: args }, call, asText);
    });
  }

  readonly #issue = (script: Script, options: EvalOptions, receiver: Receiver, asText = false): void => {
    const line = this.#lineTo(options.keys?.[0]);
    if (this.#replicated === undefined || script.grants === undefined) {
      evaluate(this.#commands, script, options, receiver, this.#silence, line, asText);
    } else {
      this.#replicated.run(script, options, receiver, line);
    }
  };

  #lineTo(key = ''): Line {
    const address = this.isCluster ? addressOf(masterOf(this.client, hashSlot(key))) : '';
    let line = this.#lines.get(address);
    if (line === undefined) {
      line = new Line((call: ScriptRun) => this.#batches.add(call));
      this.#lines.set(address, line);
    }
    return line;
  }

  #call<T>(
    script: Script,
    keys: string[],
    args: string[],
    timeout: number,
    read: (reply: unknown) => T,
    resolve: (value: T) => void,
    reject: (error: unknown) => void,
    now = clock.now(),
  ): Call<T> {
    const limit = Math.min(timeout, this.#commandTimeout);
    return new Call(script, keys, args, limit, now, this.#deadlines, read, resolve, reject);
  }
}

/**
 * The functions that settle the promise that was made last. A function for each promise would be allocated each time.
 */
const captured = { resolve: ignore as (value: never) => void, reject: ignore as (error: unknown) => void };

function capture(resolve: (value: never) => void, reject: (error: unknown) => void): void {
  captured.resolve = resolve;
  captured.reject = reject;
}

function ignore(): void {}
