import { NotReplicatedError } from '../api/errors';
import type { ReplicationSettings } from '../api/options';
import { clock, inBackground } from '../internal/clock';
import { describeValue, destroy, type OwnConnection, type RedisClient, type RedisCommands } from './client';
import { addressOf, type ClusterClient, type ClusterNode, hashSlot, isClusterClient, masterOf } from './cluster';
import { type Command, evaluate, type ScriptCommand } from './command';
import { ConnectionMonitor } from './connection';
import {
  ClientClosedError,
  isErrorLike,
  isOfReplica,
  NotSentError,
  redirectionIn,
  UnexpectedReplyError,
} from './failure';
import { handOffs } from './hand-offs';
import type { Line } from './line';
import { ScriptForMany } from './script';

/** A duplicate of a client or sentinel of node-redis, or of a client that `fromIoredis` made. */
interface OwnClient extends OwnConnection, RedisCommands {
  wait(replicas: number, timeout: number): Promise<unknown>;
  withCommandOptions?(options: { timeout: number; typeMapping: Record<never, never> }): OwnCommands;
  sendCommand(args: readonly string[]): Promise<unknown>;
  readonly socketEpoch?: number;
}

type OwnCommands = RedisCommands & Pick<OwnClient, 'sendCommand' | 'wait'>;

/** A client that can make a connection of our own: a plain one or a sentinel of node-redis, or one of `fromIoredis`. */
interface Duplicable extends RedisClient {
  duplicate(overrides?: object): OwnClient;
  /** A sentinel. */
  getMasterNode?(): unknown;
}

/** The sentinel of node-redis 5 has no duplicate(). A pool has one, and is neither. */
function isDuplicable(client: RedisClient): client is Duplicable {
  const { duplicate, getMasterNode, socketEpoch } = client as Partial<Duplicable>;
  return typeof duplicate === 'function' && (socketEpoch !== undefined || typeof getMasterNode === 'function');
}

/** With a hand-off, WAIT would be about another connection than the write. Without one the connection is lost. */
const NO_HAND_OFFS = { maintNotifications: 'disabled' };

/** A sentinel with one connection to the master, for all commands, that reports each loss of it. */
const SENTINEL = { masterPoolSize: 1, replicaPoolSize: 0, reserveClient: true, passthroughClientErrorEvents: true };

/** After one of these a sentinel client may have another connection to the master than before. */
const SENTINEL_LOST = ['error', 'client-error', 'topology-change'];

/** How many replicas have what was written; and why not more, where that is known. */
interface Acknowledged {
  readonly replicas: number;
  readonly options?: ErrorOptions;
}

const replies = new WeakMap<Error, unknown>();

/** What the script replied whose grant too few replicas have: it may have ended another lease too. */
export function replyOfNotReplicated(error: unknown): unknown {
  return error instanceof NotReplicatedError ? replies.get(error) : undefined;
}

/**
 * A connection over which locks are acquired, and replicas waited for. WAIT is about what its own connection has seen:
 * on a new one, or on a new master, it would count replicas that have not got the lock.
 */
class ReplicatingConnection {
  readonly commands: OwnCommands;
  readonly #client: OwnClient;
  readonly #replication: ReplicationSettings;
  /** The WAIT that is about to be sent, for all acquisitions whose replies came at the same time. */
  #next: Promise<Acknowledged> | undefined;
  #connecting: Promise<unknown> | undefined;
  #lost = 0;
  #isOver = false;

  /** `isWanted`: asked when the connection is lost; it is not made again otherwise. `onLost`: see `disruptions`. */
  constructor(client: OwnClient, replication: ReplicationSettings, isWanted: () => boolean, onLost: () => void) {
    this.#client = client;
    this.#replication = replication;
    this.commands = client.withCommandOptions?.({ timeout: 0, typeMapping: {} }) ?? client;
    for (const event of SENTINEL_LOST) {
      client.on(event, () => {
        this.#lost++;
        onLost();
      });
    }
    // Else the client would try to connect for ever, and keep the process alive; or look where its server was before a move.
    const madeAt = handOffs.epoch;
    client.on('reconnecting', () => {
      if (!isWanted() || handOffs.epoch !== madeAt) this.close();
    });
    // node-redis leaves a socket open that connects after `destroy`.
    client.on('ready', () => {
      if (this.#isOver) this.close();
    });
    client.unref?.();
  }

  get isClosed(): boolean {
    return this.#connecting !== undefined && this.#client.isOpen === false;
  }

  /** Resolves when commands may be sent. */
  async open(): Promise<void> {
    this.#connecting ??= inBackground(() => this.#client.connect());
    await this.#connecting;
  }

  close(): void {
    this.#isOver = true;
    void destroy(this.#client);
  }

  /**
   * Resolves when enough replicas have what this connection has written so far, or to what makes the error of each grant
   * that too few have. To be called when the reply of what was written has just arrived. Rejects with an error that
   * leaves the outcome unknown.
   */
  async replicated(): Promise<((reply: unknown) => NotReplicatedError) | undefined> {
    const { minReplicas, replicaTimeout } = this.#replication;
    const before = this.#epoch;
    this.#next ??= Promise.resolve().then(() => {
      this.#next = undefined;
      return this.#wait();
    });
    const { replicas, options } = await this.#next;
    if (this.#epoch !== before) throw new Error('The connection was lost before the replicas acknowledged the lock');
    if (replicas >= minReplicas) return undefined;
    return (reply) => {
      const error = new NotReplicatedError(minReplicas, replicas, replicaTimeout, options);
      replies.set(error, reply);
      return error;
    };
  }

  get #epoch(): number {
    return (this.#client.socketEpoch ?? this.#lost) + handOffs.epoch;
  }

  async #wait(): Promise<Acknowledged> {
    const { minReplicas, replicaTimeout } = this.#replication;
    try {
      const reply = await this.commands.wait(minReplicas, Math.ceil(replicaTimeout));
      if (!(Number(reply) >= 0)) throw new UnexpectedReplyError('WAIT', reply);
      return { replicas: Number(reply) };
    } catch (cause) {
      // The master became a replica, before WAIT or during it.
      if (isOfReplica(cause)) return { replicas: 0, options: { cause } };
      throw cause;
    }
  }
}

/**
 * Runs scripts that acquire locks, and answers for a grant only when enough replicas have it. WAIT holds up what else
 * is sent over its connection, so this has connections of its own: one to each master, made when it is needed. One WAIT
 * serves a batch, and all replies that come at the same time.
 */
export class ReplicatedScripts {
  readonly #client: RedisClient;
  /** The client, where it is one of a cluster. */
  readonly #cluster: ClusterClient<Duplicable> | undefined;
  readonly #replication: ReplicationSettings;
  /** By the address of a master; by an empty text where there is no cluster. */
  readonly #connections = new Map<string, Promise<ReplicatingConnection>>();
  /** How often a connection was lost, as far as its client says. That of a sentinel repeats what was in flight then. */
  disruptions = 0;
  #isClosed = false;
  /** Ends the listening to the end of the client. */
  #stopWatching: (() => void) | undefined;

  /** Throws `TypeError` for a client without such a connection: a pool, a foreign client. */
  constructor(client: RedisClient, replication: ReplicationSettings) {
    this.#client = client;
    this.#cluster = isClusterClient<Duplicable>(client) ? client : undefined;
    this.#replication = replication;
    if (this.#cluster === undefined && !isDuplicable(client)) {
      const needed =
        '`client` to be a client, cluster or sentinel of node-redis, or one that fromIoredis made, and no pool';
      const why = `minReplicas ${replication.minReplicas} needs a connection of its own`;
      throw new TypeError(`Expected ${needed}, since ${why}, got ${describeValue(client)}`);
    }
  }

  run(command: Command, line: Line<ScriptCommand>): void {
    // Our own connections would be made again, and what is acquired over them could not be released.
    if (!this.#isOpen) {
      command.fail(new ClientClosedError('The client is closed'));
      return;
    }
    const sentAt = clock.now();
    // The connection may be long in the making.
    line.asked(1, sentAt);
    this.#connectionFor(command.options.keys[0] as string).then(
      (connection) => {
        line.dropped(1);
        // The time of the call is over, and what it acquires would be nobody's.
        if (command.isOver) command.fail(new NotSentError(clock.now() - sentAt));
        else this.#send(connection, command, line);
      },
      (error: unknown) => {
        line.dropped(1);
        command.fail(error);
      },
    );
  }

  close(): void {
    this.#isClosed = true;
    this.#closeAll();
  }

  get #isOpen(): boolean {
    return !this.#isClosed && this.#client.isOpen !== false;
  }

  /** `redirection`: where it was sent to another node before. */
  #send(
    connection: ReplicatingConnection,
    command: Command,
    line: Line<ScriptCommand>,
    redirection?: { isAsked: boolean },
  ): void {
    const { script, options } = command;
    const replicated: Command = {
      script,
      options,
      get isOver() {
        return command.isOver;
      },
      answer: (reply) => void answer(connection, command, reply),
      fail: (error) => {
        if (redirection === undefined) void this.#redirect(command, line, error);
        else command.fail(error);
      },
    };
    const isAsked = redirection?.isAsked === true;
    // ASKING is about the next command only: so that is an EVAL. After an EVALSHA it might take another one.
    if (isAsked) connection.commands.sendCommand(['ASKING']).catch(() => undefined);
    evaluate(connection.commands, replicated, line, isAsked);
  }

  /** Sends it to the node that a cluster redirects to, where the error says so, and the client knows that node. */
  async #redirect(command: Command, line: Line<ScriptCommand>, error: unknown): Promise<void> {
    const redirection = redirectionIn(error);
    const cluster = redirection && this.#cluster;
    try {
      if (cluster !== undefined) void this.#learn(command.options.keys[0] as string);
      const master = cluster?.masters.find((node) => addressOf(node) === redirection?.to);
      const connection = master && (await this.#open(master));
      if (connection === undefined || command.isOver) command.fail(error);
      else this.#send(connection, command, line, redirection);
    } catch (cause) {
      command.fail(cause);
    }
  }

  /** The caller's client learns which node has the key, by being redirected itself. Never rejects. */
  async #learn(key: string): Promise<void> {
    await this.#cluster?.eval('return 1', { keys: [key] }).catch(() => undefined);
  }

  /** The connection to the master of this key. Rejects when no master serves the key. */
  async #connectionFor(key: string): Promise<ReplicatingConnection> {
    if (this.#cluster === undefined) return this.#open();
    const slot = hashSlot(key);
    // A client may connect with its first command: that of ioredis with `lazyConnect`.
    if (masterOf(this.#cluster, slot) === undefined) await this.#learn(key);
    const master = masterOf(this.#cluster, slot);
    if (master === undefined) throw new Error(`No node serves slot ${slot} of the cluster`);
    try {
      return await this.#open(master);
    } catch (error) {
      // A cluster of ioredis reads the slots again when a command of its own fails.
      void this.#learn(key);
      throw error;
    }
  }

  /** Without a master: the connection to the only one. */
  async #open(master?: ClusterNode): Promise<ReplicatingConnection> {
    const address = addressOf(master);
    let connecting = this.#connections.get(address);
    if (connecting === undefined) {
      connecting = inBackground(() => this.#make(master));
      this.#connections.set(address, connecting);
      connecting.catch(() => this.#connections.delete(address));
    }
    const connection = await connecting;
    if (connection.isClosed) {
      // Another call may have made the next one.
      if (this.#connections.get(address) === connecting) this.#connections.delete(address);
      return this.#open(master);
    }
    await connection.open();
    // node-redis: this resolves also when the connection was closed before its next try.
    if (connection.isClosed) throw new Error('The connection was closed while it was made');
    return connection;
  }

  async #make(master: ClusterNode | undefined): Promise<ReplicatingConnection> {
    const client = (await (master && this.#cluster?.nodeClient(master))) ?? (this.#client as Duplicable);
    if (!this.#isOpen) throw new ClientClosedError('The client is closed');
    // They would stay connected, a sentinel keep the process alive, though the application has closed its own.
    this.#stopWatching ??= ConnectionMonitor.of(this.#client).onClose(this.#closeAll);
    const own = client.duplicate(client.getMasterNode === undefined ? NO_HAND_OFFS : SENTINEL);
    const isKnown = (): boolean =>
      master === undefined || this.#cluster?.masters.some((node) => addressOf(node) === addressOf(master)) === true;
    const isWanted = (): boolean => this.#isOpen && isKnown();
    return new ReplicatingConnection(own, this.#replication, isWanted, () => this.disruptions++);
  }

  readonly #closeAll = (): void => {
    this.#stopWatching?.();
    this.#stopWatching = undefined;
    for (const connecting of this.#connections.values()) {
      void connecting.then((connection) => connection.close()).catch(() => undefined);
    }
    this.#connections.clear();
  };
}

async function answer(connection: ReplicatingConnection, command: Command, reply: unknown): Promise<void> {
  const isGrant = (one: unknown): boolean => !isErrorLike(one) && command.script.grants?.(one) !== false;
  const many = command.script instanceof ScriptForMany && Array.isArray(reply) ? (reply as unknown[]) : undefined;
  let notReplicated: ((reply: unknown) => NotReplicatedError) | undefined;
  try {
    if (many?.some(isGrant) ?? isGrant(reply)) notReplicated = await connection.replicated();
  } catch (error) {
    command.fail(error);
    return;
  }
  if (notReplicated === undefined) command.answer(reply);
  else if (many === undefined) command.fail(notReplicated(reply));
  // Others of the batch were refused: that stays true.
  else command.answer(many.map((one) => (isGrant(one) ? notReplicated(one) : one)));
}
