import { ChannelListeners } from '../redis/channel-listeners';
import type { MessageListener } from '../redis/subscriber-connection';
import type { GlideInternals, GlideMessage, GlideSubscriberClient } from './glide';
import { asServerError } from './glide-errors';

/** ms that Redis has to confirm a channel. */
const CONFIRMING = 5_000;

/**
 * The channels of a registry over a client of our own. The callback for messages can only be given when a client is
 * made, so the caller's own client cannot be asked. It is closed when it has no channels.
 */
export class GlideChannels {
  readonly #original: GlideInternals;
  readonly #listeners = new ChannelListeners();
  #client: Promise<GlideSubscriberClient> | undefined;

  constructor(original: GlideInternals) {
    this.#original = original;
  }

  async join(channel: string, listener: MessageListener, isSharded: boolean): Promise<void> {
    this.#listeners.add(channel, listener);
    try {
      const client = await this.#get();
      const command = isSharded ? client.ssubscribe : client.subscribe;
      if (command === undefined) throw new Error(`this version of valkey-glide cannot subscribe to ${channel} later`);
      await command.call(client, [channel], CONFIRMING);
    } catch (error) {
      await this.part(channel, listener, isSharded);
      throw asServerError(error);
    }
  }

  /** Never rejects. */
  async part(channel: string, listener: MessageListener | undefined, isSharded: boolean): Promise<void> {
    if (!this.#listeners.remove(channel, listener)) return;
    const connecting = this.#client;
    const isLast = this.#listeners.isEmpty;
    if (isLast) this.#client = undefined;
    try {
      const client = await connecting;
      if (isLast) client?.close();
      else await (isSharded ? client?.sunsubscribe : client?.unsubscribe)?.call(client, [channel], CONFIRMING);
    } catch {} // it ends with its connection
  }

  #get(): Promise<GlideSubscriberClient> {
    this.#client ??= this.#connect();
    return this.#client;
  }

  async #connect(): Promise<GlideSubscriberClient> {
    const { config, constructor: Client } = this.#original;
    if (config === undefined || Client.createClient === undefined) {
      throw new Error('this version of valkey-glide does not say what the client was made with');
    }
    const callback = ({ channel, message }: GlideMessage): void => {
      this.#listeners.deliver(String(message), String(channel));
    };
    const client = await Client.createClient({
      ...config,
      lazyConnect: false,
      protocol: undefined, // RESP 3, which its subscriptions need
      pubsubSubscriptions: { channelsAndPatterns: {}, callback },
    });
    client.socket?.unref?.();
    return client;
  }
}
