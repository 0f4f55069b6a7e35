import type { ReplicationSettings } from '../api/options';
import { clock } from '../internal/clock';
import { commandsOf, type RedisClient, type RedisCommands } from './client';
import { addressOf, hashSlot, isClusterClient, masterOf } from './cluster';
import { Batch, type Command, Deadlines, evaluate, ScriptCommand } from './command';
import { type Connection, ConnectionMonitor } from './connection';
import { answered, isFinal, isServerAnswer, noteErrorReply, says } from './failure';
import { handOffs } from './hand-offs';
import { KeyPlacement } from './key-placement';
import { Line } from './line';
import { isPool, PooledCommands } from './pool';
import { ReplicatedScripts } from './replicas';
import { LockScript, type Run, type Script } from './script';
import { Silence } from './silence';
import { MAYBE_REPLACED_AFTER, WARNED_AFTER } from './silence-times';

/** At most this many runs go into one command: it occupies the server for a fraction of a millisecond. */
const LARGEST = 100;

/** The digest of no script. */
const NO_SCRIPT = '0'.repeat(40);

/** Calls back before the client writes to its socket. */
const SOON = Promise.resolve();

/** Errors about keys that cannot be used in one command, though each of them can. All but the first one pass. */
const SPLIT = ['crossSlot', 'tryAgain', 'moved', 'ask'] as const;

/**
 * The caller's client, with a deadline of our own for each command. node-redis does not time out a command that was
 * written to the socket, and its default timeout for the others costs several times the throughput. So its timeout is
 * switched off, and every command settles here.
 *
 * Runs of one script that are made at the same time, about several locks, go to Redis as one command: a command costs
 * client and server more than the work in it. "At the same time" is before the client writes to its socket, so no run
 * waits for another. Only those that acquire wait once, for the first answer to where the keys are.
 */
export class Redis implements Connection {
  readonly client: RedisClient;
  readonly monitor: ConnectionMonitor;
  isClosed = false;
  /** On a cluster, what PUBLISH returns inside a script leaves out the listeners on other nodes. */
  readonly isCluster: boolean;
  readonly #commands: RedisCommands;
  readonly #commandTimeout: number;
  readonly #deadlines = new Deadlines(() => this.#noticeSilence());
  #onSilence: () => void = () => undefined;
  readonly #silence: Silence;
  /** By the address of the server. Of what is not a cluster, or does not say which server has a key, there is one. */
  readonly #lines = new Map<string, Line<ScriptCommand>>();
  readonly #placement: KeyPlacement;
  readonly #pool: PooledCommands | undefined;
  /** Whether scripts that acquire may go together: over a client with one connection to one server, and on a cluster. */
  readonly #mayAcquireTogether: boolean;
  /** Runs scripts that acquire, with `minReplicas`. */
  readonly #replicated: ReplicatedScripts | undefined;
  /** Runs that are made now. */
  #together: ScriptCommand[] = [];
  /** What groups the runs that `allOrNone` makes now. */
  #group: object | undefined;

  /**
   * `registryKey`: keys that begin with it may be written. Throws `TypeError` with a `replication` for which the client
   * cannot have a connection of our own.
   */
  constructor(client: RedisClient, registryKey: string, commandTimeout: number, replication?: ReplicationSettings) {
    this.client = client;
    this.monitor = ConnectionMonitor.of(client);
    this.isCluster = Array.isArray((client as { slots?: unknown }).slots);
    this.#pool = isPool(client) ? new PooledCommands(client) : undefined;
    this.#commands = this.#pool ?? commandsOf(client);
    this.#commandTimeout = commandTimeout;
    // A plain client, of node-redis or adapted, has one connection to one server, as far as it knows.
    const isPlain = client.socketEpoch !== undefined;
    this.#mayAcquireTogether = isPlain || this.isCluster;
    if (replication !== undefined && replication.minReplicas > 0) {
      this.#replicated = new ReplicatedScripts(client, replication);
    }
    this.#silence = new Silence(isPlain && this.#replicated === undefined);
    this.#placement = new KeyPlacement(registryKey, commandTimeout, this.isCluster, (script, keys, args) =>
      this.runNow({ script, keys, args, timeout: commandTimeout, now: clock.now(), read: (reply) => reply }, true),
    );
  }

  /** Grants count only when replicas have them. */
  get isReplicated(): boolean {
    return this.#replicated !== undefined;
  }

  /** Ends the connections of our own. */
  close(): void {
    this.isClosed = true;
    this.#replicated?.close();
    this.#deadlines.close();
  }

  /** See `Connection`. Acquisitions that replicas must have go over a connection of their own. */
  get connectionEpoch(): number | undefined {
    const { socketEpoch } = this.client;
    if (socketEpoch === undefined || this.#replicated !== undefined) return undefined;
    return socketEpoch + handOffs.epoch;
  }

  /** See `Connection`. A sentinel client repeats by itself a command whose reply was lost with its connection. */
  get disruptions(): number {
    const lost = this.client.socketEpoch ?? this.monitor.lostConnections;
    return lost + (this.#replicated?.disruptions ?? 0) + handOffs.epoch;
  }

  get isClientClosed(): boolean {
    return this.client.isOpen === false;
  }

  isDisconnected(key: string): boolean {
    const { client, isCluster } = this;
    if (this.isClientClosed) return false;
    if (this.#pool !== undefined) return this.#pool.isDisconnected;
    const { getMasterNode } = client as { getMasterNode?(): unknown };
    // A sentinel client calls itself ready until it has been given a command.
    if (getMasterNode !== undefined) return getMasterNode.call(client) === undefined;
    return client.isReady === false || (isCluster && masterOf(client, hashSlot(key))?.client?.isReady === false);
  }

  get connectsUnasked(): boolean {
    return this.client.socketEpoch !== undefined || isClusterClient(this.client);
  }

  mayBeOutdated(sentAt: number, key?: string): boolean {
    const silentSince = key === undefined ? undefined : this.unansweredSince(key);
    return (
      sentAt < this.#silence.outdatedUntil ||
      (silentSince !== undefined && clock.now() - silentSince > MAYBE_REPLACED_AFTER)
    );
  }

  get lastError(): unknown {
    // A pool does not say when it has connected again.
    return this.#pool?.isDisconnected === false ? undefined : this.monitor.lastError;
  }

  unansweredSince(key: string): number | undefined {
    return this.#lineTo(key).unansweredSince;
  }

  rejectionOf(key: string): unknown {
    return this.#lineTo(key).rejection;
  }

  /** See `LockBackend`. */
  onSilence(listener: () => void): () => void {
    this.#onSilence = listener;
    return () => (this.#onSilence = () => undefined);
  }

  #noticeSilence(): void {
    const long = clock.now() - WARNED_AFTER;
    const isSilent = ({ unansweredSince: since }: Line<ScriptCommand>): boolean => since !== undefined && since <= long;
    if ([...this.#lines.values()].some(isSilent)) this.#onSilence();
  }

  slotOf(key: string): number | undefined {
    return this.isCluster ? hashSlot(key) : undefined;
  }

  areTogether(names: readonly string[]): boolean {
    return this.#mayAcquireTogether && names.length <= LARGEST && this.#placement.areTogether(names);
  }

  allOrNone(ask: () => void): void {
    this.#group = {};
    if (this.#mayAcquireTogether) this.#placement.isNeeded();
    try {
      ask();
    } finally {
      this.#group = undefined;
    }
  }

  /**
   * Runs a script, together with other runs of it that are made now. Resolves to what `read` makes of the reply.
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
    return new Promise<T>((resolve, reject) => {
      this.send({ script, keys, args, timeout, read, now }, resolve, reject);
    });
  }

  /** Does what `run` does, without a promise: for renewals, of which there may be thousands at a time. */
  send<T>(run: Run<T>, resolve: (value: T) => void, reject: (error: unknown) => void): void {
    const command = new ScriptCommand(run, this.#commandTimeout, this.#deadlines, resolve, reject);
    command.group = this.#group;
    if (this.#lineTo(run.keys[0] as string).holdsBack(command, run.now)) return;
    if (this.#together.push(command) === 1) void SOON.then(this.#sendTogether);
  }

  /**
   * Runs a script alone, and issues its command before this function returns. `asText`: EVAL at once, where the round
   * trip after NOSCRIPT would come too late.
   */
  runNow<T>(run: Run<T>, asText: boolean): Promise<T> {
    return new Promise<T>((resolve, reject) => {
      this.#issue(new ScriptCommand(run, this.#commandTimeout, this.#deadlines, resolve, reject), asText);
    });
  }

  /**
   * Learns the class that the client gives to errors of the server, by asking for a digest that no script has. Waits no
   * longer than `timeout` ms. Needed for the first error that a script raises by itself: its text says nothing, and the
   * server may never have answered NOSCRIPT.
   */
  async learnErrorReplies(key: string, timeout: number): Promise<void> {
    try {
      await answered(this.#commands.evalSha(NO_SCRIPT, { keys: [key], arguments: [] }), timeout);
    } catch (error) {
      if (isServerAnswer(error)) noteErrorReply(error);
    }
  }

  #lineTo(key: string): Line<ScriptCommand> {
    const address = this.isCluster ? addressOf(masterOf(this.client, hashSlot(key))) : '';
    let line = this.#lines.get(address);
    if (line === undefined) {
      line = new Line<ScriptCommand>(this.#silence, (runs) => {
        for (const run of runs) this.#together.push(run);
        this.#sendTogether();
      });
      this.#lines.set(address, line);
    }
    return line;
  }

  readonly #sendTogether = (): void => {
    const runs = this.#together;
    // Mostly there is one. A new array for each would be as large as the run.
    if (runs.length <= 1) {
      const run = runs.pop();
      if (run !== undefined) this.#issue(run);
      return;
    }
    this.#together = [];
    const answer = this.#placement.made(runs.length);
    if (answer === undefined || !this.#mayAcquireTogether) {
      this.#sendAll(runs);
      return;
    }
    this.#sendAll(runs.filter(({ script }) => !script.mayAcquire));
    // Nobody waits any more for some of them: what they acquire would be nobody's.
    void answer.then(() => this.#sendAll(runs.filter(({ script, isOver }) => script.mayAcquire && !isOver)));
  };

  #sendAll(runs: readonly ScriptCommand[]): void {
    for (const group of this.#groups(runs)) {
      const first = group[0] as ScriptCommand;
      this.#issue(group.length === 1 ? first : new Batch(group, first.script as LockScript, this.#batchFailed));
    }
  }

  /** Runs of one script that fit together, in the order in which the first run of each group was made. */
  #groups(runs: readonly ScriptCommand[]): ScriptCommand[][] {
    const groups: ScriptCommand[][] = [];
    // What goes alone is under `undefined`, where nobody looks.
    const bySlot = new Map<string | undefined, ScriptCommand[][]>();
    for (const run of runs) {
      const mayGoTogether = run.script instanceof LockScript && (this.#mayAcquireTogether || !run.script.mayAcquire);
      const slot = mayGoTogether ? this.#placement.groupOf(run.options.keys[0] as string) : undefined;
      const open = (slot === undefined ? undefined : bySlot.get(slot)) ?? [];
      const like = open.findLast((group) => group.length < LARGEST && areLike(group[0] as ScriptCommand, run));
      if (like !== undefined) {
        like.push(run);
        continue;
      }
      const started = [run];
      groups.push(started);
      open.push(started);
      bySlot.set(slot, open);
    }
    return groups;
  }

  #issue(command: Command, asText = false): void {
    if (command instanceof ScriptCommand) command.isSent = true;
    const line = this.#lineTo(command.options.keys[0] as string);
    if (this.#replicated === undefined || command.script.grants === undefined) {
      evaluate(this.#commands, command, line, asText);
    } else {
      this.#replicated.run(command, line);
    }
  }

  readonly #batchFailed = (runs: readonly ScriptCommand[], error: unknown): void => {
    if (says(error, 'crossSlot')) this.#placement.crossSlot();
    // The server may refuse all of them because of one.
    const tryAlone = says(error, ...SPLIT) || (isServerAnswer(error) && isFinal(error));
    for (const run of runs) {
      if (tryAlone && !run.isOver) this.#issue(run);
      else run.fail(error);
    }
  };
}

/** The scripts of one command have the same number of keys and of arguments. */
function areLike({ script, options, group }: ScriptCommand, other: ScriptCommand): boolean {
  return (
    script === other.script &&
    group === other.group &&
    options.keys.length === other.options.keys.length &&
    options.arguments.length === other.options.arguments.length
  );
}
