import type { Random } from '../../random';
import type { Timeline } from '../timeline';
import { type CommandContext, execute } from './commands';
import { Inbox } from './inbox';
import { Keyspace } from './keyspace';
import type { Reply } from './reply';
import { type ScriptEngine, sha1 } from './script-engine';
import type { SlotMove } from './slot-move';

/** ms of the server's wall clock at the virtual time 0. */
const EPOCH = 1_700_000_000_000;

/** One connection, as the server sees it. */
export interface ServerConnection {
  readonly channels: Set<string>;
  /** Beside those that get a message. */
  readonly isCounted: boolean;
  message(channel: string, message: string): void;
}

export interface ScriptRun {
  readonly source: string;
  readonly keys: readonly string[];
  readonly args: readonly string[];
  readonly reply: Reply;
  readonly connection: ServerConnection;
}

/** To EVALSHA, where it does not know the script. */
export const NO_SCRIPT: Reply = { err: 'NOSCRIPT No matching script. Please use EVAL.' };

/** One Redis server in memory, on virtual time: it executes the scripts of the library, and delivers messages. */
export class RedisServer {
  readonly keys: Keyspace;
  readonly #timeline: Timeline;
  readonly #engine: ScriptEngine;
  readonly #scripts = new Map<string, string>();
  readonly #connections = new Set<ServerConnection>();
  readonly #context: CommandContext;
  readonly #onRun: (run: ScriptRun) => void;
  /** ms by which its clock was set back. */
  #behind = 0;
  #setBackUntil = Number.NEGATIVE_INFINITY;
  /** By key: when it was to end, as its clock was last set back. */
  #endsBefore: ReadonlyMap<string, number | undefined> = new Map();
  /** When its clock goes on within a command. */
  ticks: Random | undefined;
  readonly inbox: Inbox;
  /** It accepts connections. */
  isUp = true;
  /** All of its keys are on their way to another node. */
  move: SlotMove | undefined;

  constructor(timeline: Timeline, engine: ScriptEngine, onRun: (run: ScriptRun) => void) {
    this.#timeline = timeline;
    this.#engine = engine;
    this.#onRun = onRun;
    this.keys = new Keyspace(() => this.time);
    this.inbox = new Inbox(timeline);
    this.#context = {
      keys: this.keys,
      now: () => this.time,
      ticks: () => (this.ticks?.chance(0.5) ? 1 : 0),
      microseconds: () => Math.floor((EPOCH + timeline.now - this.#behind) * 1000),
      publish: (channel, message) => {
        const listeners = this.#listeners(channel);
        for (const connection of listeners) connection.message(channel, message);
        return countOf(listeners);
      },
      listeners: (channel) => countOf(this.#listeners(channel)),
    };
  }

  setBack(ms: number): void {
    this.#behind += ms;
    this.#setBackUntil = this.#timeline.now + this.#behind;
    this.#endsBefore = new Map(this.keys.keys().map((key) => [key, this.keys.expiresAt(key)]));
  }

  /** ms by which its clock was set back. Keys that were there then last for longer by that. */
  get behind(): number {
    return this.#behind;
  }

  /** Its clock has not come to the time again that it showed before it was set back. */
  get isSetBack(): boolean {
    return this.wasSetBackAt(this.#timeline.now);
  }

  /** The same at a time that is over. */
  wasSetBackAt(time: number): boolean {
    return time < this.#setBackUntil;
  }

  /** The key has the end that it had before the clock was set back, though it may have been written since. */
  hasEndOfBefore(key: string): boolean {
    return this.#endsBefore.has(key) && this.#endsBefore.get(key) === this.keys.expiresAt(key);
  }

  /** The server's clock in whole ms. */
  get time(): number {
    return Math.floor(this.exactTime);
  }

  get exactTime(): number {
    return EPOCH + this.#timeline.now - this.#behind;
  }

  connected(connection: ServerConnection): void {
    this.#connections.add(connection);
  }

  closed(connection: ServerConnection): void {
    this.#connections.delete(connection);
  }

  /** Whether EVALSHA runs the script with this digest. */
  knows(sha: string): boolean {
    return this.#scripts.has(sha);
  }

  /**
   * Another server takes its place, which has all that it has. Returns it as it was, with its connections, for as long
   * as it does not know that.
   */
  replaced(onRun: (run: ScriptRun) => void): RedisServer {
    const old = new RedisServer(this.#timeline, this.#engine, onRun);
    old.keys.copy(this.keys);
    old.#behind = this.#behind;
    for (const [sha, source] of this.#scripts) old.#scripts.set(sha, source);
    for (const connection of this.#connections) old.#connections.add(connection);
    this.#connections.clear();
    return old;
  }

  execute(connection: ServerConnection, [name = '', ...args]: readonly string[]): Reply {
    switch (name) {
      case 'EVALSHA':
        return this.#run(connection, this.#scripts.get(args[0] ?? ''), args);
      case 'EVAL':
        this.#scripts.set(sha1(args[0] ?? ''), args[0] ?? '');
        return this.#run(connection, args[0], args);
      case 'SUBSCRIBE':
        for (const channel of args) connection.channels.add(channel);
        return args.length;
      case 'UNSUBSCRIBE':
        for (const channel of args) connection.channels.delete(channel);
        return args.length;
      default:
        return execute(this.#context, [name, ...args]);
    }
  }

  flushScripts(): void {
    this.#scripts.clear();
  }

  /** It stops. The caller closes its connections. */
  stop({ losesData }: { readonly losesData: boolean }): void {
    this.isUp = false;
    this.flushScripts();
    if (losesData) this.keys.clear();
  }

  #run(connection: ServerConnection, source: string | undefined, [, count = '0', ...rest]: readonly string[]): Reply {
    if (source === undefined) return NO_SCRIPT;
    const keys = rest.slice(0, Number(count));
    const args = rest.slice(Number(count));
    const { move } = this;
    const refusal = move?.refusal(keys);
    if (refusal !== undefined) return refusal;
    const isThere = move?.isThere(keys) ?? true;
    const run = (command: readonly string[]): Reply =>
      (isThere ? undefined : move?.refusalInScript(command)) ?? execute(this.#context, command, true);
    const reply = this.#engine.run(source, keys, args, run);
    if (isThere) move?.wrote(keys);
    this.#onRun({ source, keys, args, reply, connection });
    return reply;
  }

  /** Somebody listens to a channel whose name has this text. */
  hears(text: string): boolean {
    return [...this.#connections].some(({ channels }) => [...channels].some((channel) => channel.includes(text)));
  }

  #listeners(channel: string): ServerConnection[] {
    return [...this.#connections].filter(({ channels }) => channels.has(channel));
  }
}

function countOf(connections: readonly ServerConnection[]): number {
  return connections.filter(({ isCounted }) => isCounted).length;
}
