import { EventEmitter } from 'node:events';
import { ClientClosedError, ClientOfflineError, DisconnectsClientError, SocketClosedUnexpectedlyError } from 'redis';
import type { Reply } from '../server/reply';
import type { ClientDirectory, ClientTraits } from './client-directory';
import { type Command, type ScriptOptions, scriptArguments, toClient } from './command';
import { Connection } from './connection';

type Listener = (message: string, channel: string) => unknown;

/**
 * node-redis' plain client, by what the library needs of it: a queue of commands that are written in the next
 * immediate, replies in order, what was written is rejected when the connection breaks, what was not waits for the next.
 */
export class SimulatedClient extends EventEmitter {
  socketEpoch = 0;
  isOpen = false;
  isReady = false;
  readonly options: { readonly socket: object } = { socket: {} };
  isSubscriber: boolean;
  readonly #directory: ClientDirectory;
  readonly #traits: ClientTraits;
  /** Of the channels that were confirmed. They are subscribed again after a reconnect. */
  readonly #listeners = new Map<string, Listener[]>();
  #toWrite: Command[] = [];
  #waiting: Command[] = [];
  #isWriting = false;
  connection: Connection | undefined;
  #connected: ((error?: unknown) => void) | undefined;
  /** Of what makes a connection: `destroy` ends it, and `connect` begins another one. */
  #opening = 0;
  /** Those in vain. */
  #tries = 0;

  constructor(directory: ClientDirectory, traits: ClientTraits, isSubscriber = false) {
    super();
    this.#directory = directory;
    this.#traits = traits;
    this.isSubscriber = isSubscriber;
    // As every application has: without a listener, an error is thrown.
    this.on('error', () => undefined);
  }

  /** For a connection of the library's own. */
  duplicate(): SimulatedClient {
    this.#directory.duplicated();
    return new SimulatedClient(this.#directory, { ...this.#traits, disableOfflineQueue: false });
  }

  withCommandOptions(): this {
    return this;
  }

  unref(): void {}

  connect(): Promise<void> {
    this.isOpen = true;
    this.#directory.clients.add(this);
    this.#directory.everyClient.add(this);
    this.#open();
    return new Promise((resolve, reject) => {
      this.#connected = (error) => (error === undefined ? resolve() : reject(error));
    });
  }

  destroy(): void {
    if (!this.isOpen) throw new ClientClosedError();
    this.isOpen = false;
    this.isReady = false;
    this.#rejectAll([...this.#waiting.splice(0), ...this.#toWrite.splice(0)], new DisconnectsClientError());
    this.connection?.cut('executed', false);
    this.connection = undefined;
    this.#connected?.(new SocketClosedUnexpectedlyError());
    this.#connected = undefined;
    this.#directory.clients.delete(this);
    this.emit('end');
  }

  evalSha(sha: string, options: ScriptOptions = {}): Promise<unknown> {
    return this.send(['EVALSHA', sha, ...scriptArguments(options)]);
  }

  eval(script: string, options: ScriptOptions = {}): Promise<unknown> {
    return this.send(['EVAL', script, ...scriptArguments(options)]);
  }

  wait(replicas: number, ms: number): Promise<unknown> {
    return this.send(['WAIT', String(replicas), String(ms)]);
  }

  async subscribe(channel: string, listener: Listener): Promise<unknown> {
    this.isSubscriber = true;
    const listeners = this.#listeners.get(channel);
    if (listeners !== undefined) return listeners.push(listener);
    const reply = await this.send(['SUBSCRIBE', channel]);
    this.#listeners.set(channel, [listener]);
    return reply;
  }

  async unsubscribe(channel: string): Promise<unknown> {
    // As in node-redis: a channel whose UNSUBSCRIBE was not answered is subscribed again after a reconnect.
    const reply = await this.send(['UNSUBSCRIBE', channel]);
    this.#listeners.delete(channel);
    return reply;
  }

  get unanswered(): (readonly string[])[] {
    return [...this.#waiting, ...this.#toWrite].map(({ words }) => words);
  }

  /** Commands whose replies have not come. */
  get pending(): number {
    return this.#waiting.length + this.#toWrite.length;
  }

  send(words: readonly string[]): Promise<unknown> {
    if (!this.isOpen) return Promise.reject(new ClientClosedError());
    if (!this.isReady && this.#traits.disableOfflineQueue) return Promise.reject(new ClientOfflineError());
    this.#directory.asked(this, words);
    this.#directory.network.asked(words);
    return new Promise((resolve, reject) => {
      this.#toWrite.push({ words, resolve, reject });
      this.#scheduleWrite();
    });
  }

  #scheduleWrite(): void {
    if (!this.isReady || this.#isWriting) return;
    this.#isWriting = true;
    this.#directory.process.immediate(() => {
      this.#isWriting = false;
      if (this.isReady) this.#write();
    });
  }

  #write(): void {
    for (const command of this.#toWrite.splice(0)) {
      this.#waiting.push(command);
      this.connection?.send(command.words);
    }
  }

  #open(): void {
    const { network, process } = this.#directory;
    const { timeline } = network;
    const { least } = this.#traits.delays;
    const opening = ++this.#opening;
    timeline.after(2 * least, () =>
      process.post('input', () => {
        if (!this.isOpen || opening !== this.#opening) return;
        if (network.server.isUp && timeline.now >= this.#directory.outage.until) this.#opened();
        else this.#refused(new Error('connect ECONNREFUSED'));
      }),
    );
  }

  #opened(): void {
    const { network, process } = this.#directory;
    this.socketEpoch++;
    const connection = new Connection(network, this.#traits.delays, {
      replied: (reply) => process.post('input', () => this.#replied(connection, reply)),
      message: (channel, message) => process.post('input', () => this.#receive(connection, channel, message)),
      closed: () => process.post('input', () => this.#closed(connection)),
      disturbed: () => this.#directory.disturbed(),
      unheard: (message) => this.#directory.unheard(message),
      cameLate: (command, after) => this.#directory.cameLate(command, after),
    });
    connection.hearing = this.#directory.hearing ?? connection.hearing;
    this.connection = connection;
    this.emit('connect');
    // The handshake, and the channels again, before anything else.
    const channels = [...this.#listeners.keys()];
    const greeting: readonly string[] = channels.length > 0 ? ['SUBSCRIBE', ...channels] : ['CLIENT', 'SETINFO'];
    const ready = (): void => this.#ready(connection);
    this.#waiting.push({ words: greeting, isGreeting: true, resolve: ready, reject: () => undefined });
    connection.send(greeting);
  }

  #ready(connection: Connection): void {
    if (this.connection !== connection || !this.isOpen) return;
    this.isReady = true;
    this.#tries = 0;
    this.#connected?.();
    this.#connected = undefined;
    this.emit('ready');
    this.#scheduleWrite();
  }

  #replied(connection: Connection, reply: Reply): void {
    if (this.connection !== connection) return;
    const command = this.#waiting.shift();
    if (!this.isSubscriber) this.#directory.replied(reply);
    const value = toClient(reply);
    if (value instanceof Error && command?.words[0] !== 'CLIENT') command?.reject(value);
    else command?.resolve(value);
  }

  #receive(connection: Connection, channel: string, message: string): void {
    if (this.connection !== connection) return;
    for (const listener of [...(this.#listeners.get(channel) ?? [])]) listener(message, channel);
  }

  #closed(connection: Connection): void {
    if (this.connection !== connection || !this.isOpen) return;
    this.connection = undefined;
    this.isReady = false;
    const error = new SocketClosedUnexpectedlyError();
    const rejected = this.#waiting.splice(0);
    if (this.#traits.repeats) {
      // But not what it sends by itself.
      this.#toWrite.unshift(...rejected.splice(0).filter(({ isGreeting }) => isGreeting !== true));
    }
    if (this.#traits.disableOfflineQueue) rejected.push(...this.#toWrite.splice(0));
    this.#rejectAll(rejected, error);
    this.emit('error', error);
    this.emit('reconnecting');
    this.#reopen(false);
  }

  #refused(error: Error): void {
    const { until, tries } = this.#directory.outage;
    // After the outage nobody would connect it again.
    if (++this.#tries > tries && this.#directory.network.timeline.now < until) {
      this.#giveUp(error);
      return;
    }
    this.emit('error', error);
    this.#reopen(true);
  }

  /** Its reconnectStrategy ends it, until it is connected again. */
  #giveUp(error: Error): void {
    this.isOpen = false;
    this.#tries = 0;
    this.#directory.clients.delete(this);
    this.emit('error', error);
    this.#rejectAll([...this.#waiting.splice(0), ...this.#toWrite.splice(0)], error);
    this.#connected?.(error);
    this.#connected = undefined;
  }

  /** `isAgain`: it has tried before. */
  #reopen(isAgain: boolean): void {
    const { network, process } = this.#directory;
    const opening = this.#opening;
    network.timeline.after(this.#traits.reconnectAfter, () =>
      process.post('timer', () => {
        if (!this.isOpen || opening !== this.#opening) return;
        if (isAgain) this.emit('reconnecting');
        if (this.isOpen) this.#open();
      }),
    );
  }

  #rejectAll(commands: readonly Command[], error: Error): void {
    for (const { reject } of commands) reject(error);
  }
}
