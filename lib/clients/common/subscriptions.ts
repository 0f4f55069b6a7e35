import type { MessageListener, RedisSubscriber } from '../../api/options';
import { clock, inBackground } from '../../internal/clock';
import { Backoff } from '../../internal/timers';
import type { EvalOptions, RedisCommands } from '../../redis/client';
import { type Page, type ScanOptions, scanPage } from '../../redis/cluster';
import { isServerAnswer } from '../../redis/failure';

/** A client that takes commands as lists of words. */
export abstract class WordsClient implements RedisCommands {
  /** Rejects with the errors of a server as the server wrote them. */
  protected abstract command(words: readonly string[]): Promise<unknown>;

  eval(script: string, options?: EvalOptions): Promise<unknown> {
    return this.#run('EVAL', script, options);
  }

  evalSha(sha1: string, options?: EvalOptions): Promise<unknown> {
    return this.#run('EVALSHA', sha1, options);
  }

  sendCommand(words: readonly string[]): Promise<unknown> {
    return this.command(words);
  }

  protected scanPage(cursor: string, options: ScanOptions): Promise<Page> {
    return scanPage((words) => this.command(words), cursor, options);
  }

  #run(name: string, script: string, { keys = [], arguments: args = [] }: EvalOptions = {}): Promise<unknown> {
    return this.command([name, script, String(keys.length), ...keys, ...args]);
  }
}

/** A channel that is wanted. A plain and a sharded one of the same name are two. */
export class Channel {
  readonly name: string;
  readonly isSharded: boolean;
  readonly listeners = new Set<MessageListener>();
  /** Resolves when Redis has confirmed the first subscription. Rejects when Redis refuses it. */
  readonly confirmed: Promise<void>;
  confirm!: () => void;
  fail!: (error: unknown) => void;
  /** A channel of `PlacedChannels`: where it is subscribed, or being subscribed. */
  place: Place | undefined;
  wasConfirmed = false;

  constructor(name: string, isSharded: boolean) {
    this.name = name;
    this.isSharded = isSharded;
    this.confirmed = new Promise((resolve, reject) => {
      this.confirm = () => {
        this.wasConfirmed = true;
        resolve();
      };
      this.fail = reject;
    });
    this.confirmed.catch(() => undefined);
  }

  /** A listener may subscribe or unsubscribe others. */
  readonly deliver: MessageListener = (message, name) => {
    for (const listener of [...this.listeners]) listener(message, name);
  };
}

/** A subscriber that keeps the listeners of each channel: the client below subscribes a channel once. */
export abstract class Channels extends WordsClient implements RedisSubscriber {
  protected readonly channels = new Map<string, Channel>();

  /** Subscribes the channel, and confirms or drops it. */
  protected abstract added(channel: Channel): void;
  /** Unsubscribes the channel, if it is subscribed. Never rejects. */
  protected abstract removed(channel: Channel): Promise<void>;

  /** Resolves when Redis has confirmed the channel. Rejects when Redis refuses it. */
  subscribe(name: string, listener: MessageListener): Promise<void> {
    return this.#join(name, listener, false);
  }

  /** Without a listener: all of the channel. Never rejects. */
  unsubscribe(name: string, listener?: MessageListener): Promise<void> {
    return this.#part(name, listener, false);
  }

  sSubscribe(name: string, listener: MessageListener): Promise<void> {
    return this.#join(name, listener, true);
  }

  sUnsubscribe(name: string, listener?: MessageListener): Promise<void> {
    return this.#part(name, listener, true);
  }

  /** Forgets a channel that nobody listens to any more; `error`: that could not be subscribed. */
  protected async drop(channel: Channel, error?: unknown): Promise<void> {
    const id = idOf(channel.name, channel.isSharded);
    if (this.channels.get(id) === channel) this.channels.delete(id);
    channel.fail(error);
    await this.removed(channel);
  }

  protected readonly deliver: MessageListener = (message, name) => {
    for (const isSharded of [false, true]) this.channels.get(idOf(name, isSharded))?.deliver(message, name);
  };

  #join(name: string, listener: MessageListener, isSharded: boolean): Promise<void> {
    const id = idOf(name, isSharded);
    const known = this.channels.get(id);
    const channel = known ?? new Channel(name, isSharded);
    channel.listeners.add(listener);
    if (known === undefined) {
      this.channels.set(id, channel);
      this.added(channel);
    }
    return channel.confirmed;
  }

  async #part(name: string, listener: MessageListener | undefined, isSharded: boolean): Promise<void> {
    const channel = this.channels.get(idOf(name, isSharded));
    if (channel === undefined) return;
    if (listener === undefined) channel.listeners.clear();
    else channel.listeners.delete(listener);
    if (channel.listeners.size === 0) await this.drop(channel);
  }
}

function idOf(name: string, isSharded: boolean): string {
  return `${isSharded} ${name}`;
}

/** A connection of our own that listens. */
export interface Listening {
  subscribe(channel: Channel): Promise<unknown>;
  unsubscribe(channel: Channel): Promise<unknown>;
  close(): void;
}

/** A server that channels are subscribed at, and the connection to it. */
interface Place {
  readonly id: string;
  readonly address: string;
  readonly listening: Promise<Listening>;
}

/** ms that Redis has to confirm a channel. */
export const CONFIRMING = 5_000;

/** ms until a channel without a connection is tried again: at first, and at most. */
const FIRST_RETRY = 50;
const LONGEST_RETRY = 1_000;

/**
 * Channels over connections of our own: to one server, or to nodes of a cluster. A channel is subscribed again when its
 * connection was lost, or when its slot has moved. A connection would keep the process alive, so it is closed when it has
 * no channels.
 */
export abstract class PlacedChannels extends Channels {
  readonly #places = new Map<string, Place>();
  /** Whether a connection takes plain and sharded channels. */
  protected readonly mixesChannels: boolean = true;
  /** Channels that are not subscribed now, or not yet. */
  readonly #missing = new Set<Channel>();
  readonly #backoff = new Backoff(FIRST_RETRY, LONGEST_RETRY);
  #retry: NodeJS.Timeout | undefined;
  #missed: Promise<void> | undefined;

  /** The server that the channel belongs to; `undefined`: not known now. */
  protected abstract addressFor(channel: Channel): string | undefined;
  /** `lost`: to be called when the connection has ended. */
  protected abstract connect(address: string, lost: () => void): Promise<Listening>;
  /** Channels were subscribed again: messages may have been missed. */
  protected abstract restored(): void;

  /** Whether another try cannot help a channel that was never subscribed. */
  protected isRefused(_error: unknown): boolean {
    return true;
  }

  /** Called at each retry. */
  protected retrying(_channel: Channel): void {}

  /** Every channel is subscribed: the server counts them. */
  get isListening(): boolean {
    return this.#missing.size === 0;
  }

  /** No message arrives, though the connections seem to be open: others take their place. */
  renewConnections(): void {
    for (const place of [...this.#places.values()]) this.#lost(place);
  }

  protected hasConnection(address: string): boolean {
    return this.#places.has(this.#idOf(address, false));
  }

  protected added(channel: Channel): void {
    inBackground(() => this.#place(channel));
  }

  protected async removed(channel: Channel): Promise<void> {
    const { place } = channel;
    channel.place = undefined;
    this.#missing.delete(channel);
    if (this.channels.size === 0) {
      clock.clearTimeout(this.#retry);
      this.#retry = undefined;
      // Also those at which the last try failed.
      for (const each of [...this.#places.values()]) this.#end(each);
    } else if (place !== undefined) await this.#leave(channel, place);
  }

  /** Subscribes all channels that are not subscribed where they should be. */
  protected readonly place = (): void => {
    for (const channel of this.channels.values()) this.#place(channel);
  };

  #place(channel: Channel): void {
    const address = this.addressFor(channel);
    if (address === undefined) this.#tryLater(channel);
    else if (address !== channel.place?.address) void this.#subscribe(channel, address);
  }

  async #subscribe(channel: Channel, address: string): Promise<void> {
    const before = channel.place;
    const place = this.#placeAt(address, channel.isSharded);
    channel.place = place;
    this.#missing.add(channel);
    if (before !== undefined) void this.#leave(channel, before);
    try {
      await (await place.listening).subscribe(channel);
      if (channel.place !== place) return;
      this.#backoff.reset();
      this.#missing.delete(channel);
      if (channel.wasConfirmed) this.#noteMissed();
      channel.confirm();
    } catch (error) {
      if (channel.place !== place) return;
      // What server or client refuse is about this channel only. Otherwise the connection has failed, for all of its channels.
      if (!isServerAnswer(error) && !(error instanceof TypeError)) this.#lost(place);
      // A listener of a channel that was subscribed relies on it.
      if (!channel.wasConfirmed && this.isRefused(error)) await this.drop(channel, error);
      else {
        channel.place = undefined;
        this.#tryLater(channel);
      }
    }
  }

  #idOf(address: string, isSharded: boolean): string {
    return idOf(address, isSharded && !this.mixesChannels);
  }

  #placeAt(address: string, isSharded: boolean): Place {
    const id = this.#idOf(address, isSharded);
    const known = this.#places.get(id);
    if (known !== undefined) return known;
    const listening = inBackground(() => this.connect(address, () => this.#lost(place)));
    const place: Place = { id, address, listening };
    this.#places.set(id, place);
    return place;
  }

  /** Unsubscribes the channel there. Never rejects. */
  async #leave(channel: Channel, place: Place): Promise<void> {
    const isNeeded = [...this.channels.values()].some((other) => other.place === place);
    if (!isNeeded) this.#end(place);
    // A channel that cannot be unsubscribed ends with its connection.
    else await place.listening.then((one) => one.unsubscribe(channel)).catch(() => undefined);
  }

  #lost(place: Place): void {
    this.#end(place);
    for (const channel of this.channels.values()) {
      if (channel.place !== place) continue;
      channel.place = undefined;
      this.#tryLater(channel);
    }
  }

  #end(place: Place): void {
    if (this.#places.get(place.id) !== place) return;
    this.#places.delete(place.id);
    place.listening.then((one) => one.close()).catch(() => undefined);
  }

  #tryLater(channel: Channel): void {
    if (channel.place === undefined) this.#missing.add(channel);
    if (this.#retry !== undefined) return;
    this.#retry = clock.setTimeout(() => {
      this.#retry = undefined;
      this.place();
      this.retrying(channel);
    }, this.#backoff.next());
    this.#retry.unref?.();
  }

  /** Calls `restored` once for all channels whose confirmations arrive together. */
  #noteMissed(): void {
    this.#missed ??= clock.immediate().then(() => {
      this.#missed = undefined;
      this.restored();
    });
  }
}
