import type { EvalOptions, RedisClient } from '../redis/client';
import type { RedisSubscriber } from '../redis/subscriber-connection';
import type { BunInternals, MessageListener } from './bun';
import { BunChannels } from './bun-channels';
import { asServerError } from './bun-errors';

/** Bun's `RedisClient`, as the registry wants a client. */
export class BunClient implements RedisClient, RedisSubscriber {
  readonly #redis: BunInternals;
  readonly #channels: BunChannels;
  readonly #listeners = new Set<() => void>();

  constructor(redis: BunInternals) {
    this.#redis = redis;
    this.#channels = new BunChannels(redis, () => {
      for (const listener of [...this.#listeners]) listener();
    });
  }

  eval(script: string, options: EvalOptions = {}): Promise<unknown> {
    return this.#run('EVAL', script, options);
  }

  evalSha(sha1: string, options: EvalOptions = {}): Promise<unknown> {
    return this.#run('EVALSHA', sha1, options);
  }

  async scan(cursor: string, { MATCH, COUNT }: { MATCH: string; COUNT: number }) {
    const page = await this.#send('SCAN', [cursor, 'MATCH', MATCH, 'COUNT', String(COUNT)]);
    const [next, keys] = page as [cursor: string, keys: string[]];
    return { cursor: next, keys };
  }

  subscribe(channel: string, listener: MessageListener): Promise<void> {
    return this.#channels.join(channel, listener);
  }

  unsubscribe(channel: string, listener?: MessageListener): Promise<void> {
    return this.#channels.part(channel, listener);
  }

  async sSubscribe(): Promise<never> {
    throw new Error("Bun's RedisClient has no sharded pub/sub");
  }

  async sUnsubscribe(): Promise<void> {}

  /** `ready`: the connection for messages was made again. Bun reports the other one to the application only. */
  on(event: string, listener: () => void): void {
    if (event === 'ready') this.#listeners.add(listener);
  }

  off(event: string, listener: () => void): void {
    if (event === 'ready') this.#listeners.delete(listener);
  }

  #run(name: string, script: string, { keys = [], arguments: args = [] }: EvalOptions): Promise<unknown> {
    return this.#send(name, [script, String(keys.length), ...keys, ...args]);
  }

  async #send(command: string, args: string[]): Promise<unknown> {
    try {
      return await this.#redis.send(command, args);
    } catch (error) {
      throw asServerError(error);
    }
  }
}
