import type { Random } from '../../random';
import type { RedisServer, ServerConnection } from '../server/redis-server';
import type { Replicas } from '../server/replicas';
import type { Reply } from '../server/reply';
import type { Timeline } from '../timeline';
import type { LostWords } from './lost-words';

/** ms */
const LATEST_REPETITION = 300;

/** What becomes of the commands that are on their way when a connection breaks. */
export type CutMode = 'lost' | 'executed' | 'late';

/** Delays of one direction of a connection, in ms. */
export interface Delays {
  readonly least: number;
  readonly jitter: number;
}

/** One direction: bytes arrive in the order in which they were sent. */
class Direction {
  /** ms on top of the usual delay, during a fault. */
  extra = 0;
  #lastArrival = 0;
  #heldUntil = 0;
  readonly #delays: Delays;
  readonly #timeline: Timeline;
  readonly #random: Random;

  constructor(delays: Delays, timeline: Timeline, random: Random) {
    this.#delays = delays;
    this.#timeline = timeline;
    this.#random = random;
  }

  /** Nothing that is sent from now on arrives before. */
  holdUntil(time: number): void {
    this.#heldUntil = time;
  }

  send(deliver: () => void): void {
    const { least, jitter } = this.#delays;
    const delay = least + jitter * this.#random.unit() ** 3 + this.extra;
    this.#lastArrival = Math.max(this.#lastArrival, this.#heldUntil, this.#timeline.now + delay);
    this.#timeline.at(this.#lastArrival, deliver);
  }
}

export interface ConnectionListener {
  replied(reply: Reply): void;
  message(channel: string, message: string): void;
  /** The client notices that the connection is gone. */
  closed(): void;
  /** A message did not come, or came twice. */
  disturbed(): void;
  /** A message did not come, over a connection that only looks alive. */
  unheard(message: string): void;
  /** A command came to the server after the connection was lost, this many ms after it was sent. */
  cameLate(command: readonly string[], after: number): void;
}

/** Faults that concern messages of pub/sub. */
export interface MessageFaults {
  readonly lost: number;
  readonly doubled: number;
}

/** The network that a simulation's connections share. */
export interface Network {
  readonly timeline: Timeline;
  readonly server: RedisServer;
  readonly random: Random;
  /** When a message comes once more. A stream of its own: so it changes nothing for seeds without such messages. */
  readonly repetitions: Random;
  readonly messageFaults: MessageFaults;
  readonly lostWords: LostWords;
  readonly replicas: Replicas;
  /** The library gives a command to its client. */
  asked(command: readonly string[]): void;
  /** A client wrote a command. */
  sent(connection: Connection, command: readonly string[]): void;
  /** The error that a command is answered with in place of being executed. */
  refusal(connection: Connection, command: readonly string[]): string | undefined;
  /** The server is about to execute a command that was written then. */
  executing(sentAt: number): void;
}

/** Whether the server counts what is subscribed over a connection, and whether messages arrive. */
export interface Hearing {
  readonly isCounted: boolean;
  readonly hears: boolean;
}

/** A TCP connection between a client and the server: two directions, either of which may be slow, until it breaks. */
export class Connection implements ServerConnection {
  readonly channels = new Set<string>();
  readonly up: Direction;
  readonly down: Direction;
  hearing: Hearing = { isCounted: true, hears: true };
  readonly #network: Network;
  readonly #listener: ConnectionListener;
  #server: RedisServer;
  #isOpenToClient = true;
  #isOpenToServer = true;
  /** Commands under way are lost. */
  #losesCommands = false;
  /** Commands under way arrive so much later. */
  #lateBy = 0;
  /** When the server last executed a script that it sent: a greeting writes nothing that a WAIT could be about. */
  #lastWritten = Number.NEGATIVE_INFINITY;
  /** What waits for the end of a WAIT. */
  #behindWait: (() => void)[] | undefined;

  constructor(network: Network, delays: Delays, listener: ConnectionListener) {
    this.#network = network;
    this.#listener = listener;
    this.#server = network.server;
    this.up = new Direction(delays, network.timeline, network.random);
    this.down = new Direction(delays, network.timeline, network.random);
    network.server.connected(this);
  }

  send(command: readonly string[]): void {
    if (!this.#isOpenToClient) return;
    const sentAt = this.#network.timeline.now;
    this.up.send(() => this.#afterCut(() => this.#server.inbox.arrived(() => this.#execute(command, sentAt))));
    this.#network.sent(this, command);
  }

  get isCounted(): boolean {
    return this.hearing.isCounted;
  }

  message(channel: string, message: string): void {
    if (!this.hearing.hears) {
      this.#listener.unheard(message);
      return;
    }
    const { random, messageFaults, lostWords } = this.#network;
    if (lostWords.loses(message)) return;
    const times = random.chance(messageFaults.lost) ? 0 : random.chance(messageFaults.doubled) ? 2 : 1;
    if (times !== 1) this.#listener.disturbed();
    const deliver = (): void => this.#reply(() => this.#listener.message(channel, message));
    if (times > 0) deliver();
    if (times > 1) this.#repeat(deliver);
  }

  /** At once, or when the message is no news any more. */
  #repeat(deliver: () => void): void {
    const { repetitions, timeline } = this.#network;
    if (repetitions.chance(0.5)) deliver();
    else timeline.after(repetitions.between(0, LATEST_REPETITION), deliver);
  }

  /** It breaks; the client notices soon, the server after what still arrives. */
  cut(mode: CutMode, clientNotices: boolean | 'at once' = true): void {
    if (!this.#isOpenToClient) return;
    const { random, timeline } = this.#network;
    this.#isOpenToClient = false;
    this.#losesCommands = mode === 'lost';
    this.#lateBy = mode === 'late' ? random.between(100, 3_000) : 0;
    if (clientNotices === 'at once') this.#listener.closed();
    else if (clientNotices) timeline.after(random.between(0, 3), () => this.#listener.closed());
    // A server that stands still finds what came before first.
    this.up.send(() => this.#afterCut(() => this.#server.inbox.arrived(() => this.#closeToServer())));
  }

  /** It stays with a server that was replaced. */
  stayWith(server: RedisServer): void {
    this.#server = server;
  }

  /** The server is gone, and with it what it was to execute. */
  serverStopped(): void {
    this.#closeToServer();
    this.cut('lost');
  }

  #afterCut(deliver: () => void): void {
    if (this.#lateBy === 0) deliver();
    else this.#network.timeline.after(this.#lateBy, deliver);
  }

  #closeToServer(): void {
    this.#isOpenToServer = false;
    this.#server.closed(this);
  }

  #execute(command: readonly string[], sentAt: number): void {
    if (this.#losesCommands || !this.#isOpenToServer) return;
    if (!this.#isOpenToClient) this.#listener.cameLate(command, this.#network.timeline.now - sentAt);
    if (this.#behindWait !== undefined) {
      this.#behindWait.push(() => this.#execute(command, sentAt));
      return;
    }
    if (command[0] === 'WAIT') {
      this.#wait(command);
      return;
    }
    this.#network.executing(sentAt);
    if (command[0]?.startsWith('EVAL')) this.#lastWritten = this.#network.timeline.now;
    const err = this.#network.refusal(this, command);
    const reply = err === undefined ? this.#server.execute(this, command) : { err };
    this.#reply(() => this.#listener.replied(reply));
  }

  #wait([, replicas, ms]: readonly string[]): void {
    const { timeline, replicas: all } = this.#network;
    const end = timeline.now + Number(ms);
    this.#behindWait = [];
    const look = (): void => {
      const count = all.acknowledging(this.#lastWritten);
      if (count < Number(replicas) && timeline.now < end) {
        timeline.after(1, look);
        return;
      }
      this.#reply(() => this.#listener.replied(count));
      const behind = this.#behindWait ?? [];
      this.#behindWait = undefined;
      for (const execute of behind) execute();
    };
    look();
  }

  #reply(deliver: () => void): void {
    this.down.send(() => {
      if (this.#isOpenToClient) deliver();
    });
  }
}
