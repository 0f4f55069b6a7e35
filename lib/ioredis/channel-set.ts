import { isServerAnswer, isUnknownCommand } from '../redis/failure';
import type { MessageListener } from '../redis/subscriber-connection';
import { Channel, channelId } from './channel';
import { ignore, type SingleIoredis } from './ioredis';

/**
 * The channels that one connection of our own is subscribed to. It subscribes again after a reconnect: ioredis
 * does not handle a refused resubscription, and does not report when it has resubscribed.
 */
export class ChannelSet {
  readonly #redis: SingleIoredis;
  readonly #onMessage: MessageListener;
  /** By `Channel.id`. */
  readonly #channels = new Map<string, Channel>();

  /** `onReady`: called when all channels are subscribed on a new connection. */
  constructor(redis: SingleIoredis, onMessage: MessageListener, onReady: () => void) {
    this.#redis = redis;
    this.#onMessage = onMessage;
    const deliver = (channel: string, message: string): unknown => this.#onMessage(message, channel);
    redis.on('message', deliver as never);
    redis.on('smessage', deliver as never);
    redis.on('ready', () => void this.#subscribeAll().then(onReady));
    redis.on('end', () => this.#fail(new Error('the pub/sub connection is closed for good')));
  }

  get size(): number {
    return this.#channels.size;
  }

  /** Resolves when Redis has confirmed it, on whichever connection. Rejects when Redis refuses it. */
  add(name: string, isSharded: boolean): Promise<void> {
    const id = channelId(name, isSharded);
    let channel = this.#channels.get(id);
    if (channel === undefined) {
      if (isSharded && this.#redis.ssubscribe === undefined) throw new TypeError('the client has no sharded pub/sub');
      channel = new Channel(name, isSharded);
      this.#channels.set(id, channel);
      // Until then it waits for `ready`: what is sent during the handshake may never be settled.
      if (this.#redis.status === 'ready') void this.#subscribe(channel);
    }
    return channel.confirmed;
  }

  /** Never rejects. */
  async remove(name: string, isSharded: boolean): Promise<void> {
    if (!this.#channels.delete(channelId(name, isSharded)) || this.#redis.status !== 'ready') return;
    const sent = isSharded ? this.#redis.sunsubscribe?.(name) : this.#redis.unsubscribe(name);
    await sent?.catch(ignore);
  }

  async #subscribeAll(): Promise<void> {
    await Promise.all([...this.#channels.values()].map((channel) => this.#subscribe(channel)));
  }

  /** Never rejects. */
  async #subscribe(channel: Channel): Promise<void> {
    const { name, isSharded } = channel;
    try {
      await (isSharded ? this.#redis.ssubscribe?.(name) : this.#redis.subscribe(name));
      channel.confirm();
    } catch (error) {
      // It failed with its connection: again on the next one.
      if (!isServerAnswer(error) && !isUnknownCommand(error)) return;
      if (this.#channels.get(channel.id) === channel) this.#channels.delete(channel.id);
      channel.fail(error);
    }
  }

  #fail(error: Error): void {
    for (const channel of this.#channels.values()) channel.fail(error);
  }
}
