import type { EvalOptions, RedisCommands } from './client';
import type { MessageListener, RedisSubscriber } from './subscriber';

/** A channel that is wanted. A plain and a sharded one of the same name are two. */
export class Channel {
  readonly name: string;
  readonly isSharded: boolean;
  readonly listeners = new Set<MessageListener>();
  /** Resolves when Redis has confirmed the first subscription. Rejects when Redis refuses it. */
  readonly confirmed: Promise<void>;
  confirm!: () => void;
  fail!: (error: unknown) => void;
  isSubscribed = false;
  /** On a cluster: the node over whose connection it is subscribed. */
  address: string | undefined;

  constructor(name: string, isSharded: boolean) {
    this.name = name;
    this.isSharded = isSharded;
    this.confirmed = new Promise((resolve, reject) => {
      this.confirm = resolve;
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
export abstract class Channels implements RedisSubscriber {
  protected readonly channels = new Map<string, Channel>();

  /** Subscribes it: confirms it, or drops it. */
  protected abstract added(channel: Channel): void;
  /** Unsubscribes it, if it is subscribed. Never rejects. */
  protected abstract removed(channel: Channel): Promise<void>;

  /** Resolves when Redis has confirmed it. Rejects when Redis refuses it. */
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

  /** Nobody listens to it any more; `error`: it could not be subscribed. */
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
    if (listener !== undefined) channel.listeners.delete(listener);
    if (listener === undefined || channel.listeners.size === 0) await this.drop(channel);
  }
}

function idOf(name: string, isSharded: boolean): string {
  return `${isSharded ? 'sharded' : 'plain'} ${name}`;
}

/** The same for a client that takes commands as lists of words. */
export abstract class WordsClient extends Channels implements RedisCommands {
  /** Rejects with the errors of a server as the server wrote them. */
  protected abstract command(words: string[]): Promise<unknown>;

  eval(script: string, options?: EvalOptions): Promise<unknown> {
    return this.#run('EVAL', script, options);
  }

  evalSha(sha1: string, options?: EvalOptions): Promise<unknown> {
    return this.#run('EVALSHA', sha1, options);
  }

  sendCommand(words: string[]): Promise<unknown> {
    return this.command(words);
  }

  protected async scanPage(cursor: string, { MATCH, COUNT }: { MATCH: string; COUNT: number }) {
    const page = await this.command(['SCAN', cursor, 'MATCH', MATCH, 'COUNT', String(COUNT)]);
    const [next, keys] = page as [cursor: string, keys: string[]];
    return { cursor: next, keys };
  }

  #run(name: string, script: string, { keys = [], arguments: args = [] }: EvalOptions = {}): Promise<unknown> {
    return this.command([name, script, String(keys.length), ...keys, ...args]);
  }
}
