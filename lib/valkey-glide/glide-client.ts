import type { EvalOptions, RedisClient } from '../redis/client';
import { ClientClosedError } from '../redis/failure';
import { JoiningSubscriber } from '../redis/joining-subscriber';
import type { MessageListener } from '../redis/subscriber-connection';
import { AS_STRING, type GlideInternals } from './glide';
import { GlideChannels } from './glide-channels';
import { asServerError } from './glide-errors';

/** A client of valkey-glide, as the registry wants one. It has no events: a reconnect is not noticed. */
class GlideAdapter extends JoiningSubscriber implements RedisClient {
  readonly #client: GlideInternals;
  readonly #channels: GlideChannels;

  constructor(client: GlideInternals) {
    super();
    this.#client = client;
    this.#channels = new GlideChannels(client);
  }

  get isOpen(): boolean {
    return this.#client.isClosed !== true;
  }

  eval(script: string, options: EvalOptions = {}): Promise<unknown> {
    return this.#run('EVAL', script, options);
  }

  evalSha(sha1: string, options: EvalOptions = {}): Promise<unknown> {
    return this.#run('EVALSHA', sha1, options);
  }

  protected join(channel: string, listener: MessageListener, isSharded: boolean): Promise<void> {
    return this.#channels.join(channel, listener, isSharded);
  }

  protected part(channel: string, listener: MessageListener | undefined, isSharded: boolean): Promise<void> {
    return this.#channels.part(channel, listener, isSharded);
  }

  #run(name: string, script: string, { keys = [], arguments: args = [] }: EvalOptions): Promise<unknown> {
    return this.command([name, script, String(keys.length), ...keys, ...args]);
  }

  protected async command(command: string[]): Promise<unknown> {
    if (!this.isOpen) throw new ClientClosedError('The client is closed');
    try {
      return await this.#client.customCommand(command, AS_STRING);
    } catch (error) {
      throw asServerError(error);
    }
  }
}

/** `GlideClient`: one server, or a primary with replicas. */
export class SingleGlide extends GlideAdapter {
  async scan(cursor: string, { MATCH, COUNT }: { MATCH: string; COUNT: number }) {
    const command = ['SCAN', cursor, 'MATCH', MATCH, 'COUNT', String(COUNT)];
    const [next, keys] = (await this.command(command)) as [cursor: string, keys: string[]];
    return { cursor: next, keys };
  }
}

/** `GlideClusterClient`. */
export class ClusterGlide extends GlideAdapter {
  /** It marks a cluster. */
  readonly slots: readonly never[] = [];
}
