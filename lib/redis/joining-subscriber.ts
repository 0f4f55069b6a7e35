import type { MessageListener, RedisSubscriber } from './subscriber-connection';

/** The four methods of a subscriber, made of two: plain and sharded channels are joined and left in the same way. */
export abstract class JoiningSubscriber implements RedisSubscriber {
  /** Resolves when Redis has confirmed it. */
  protected abstract join(channel: string, listener: MessageListener, isSharded: boolean): Promise<void>;
  /** `undefined`: all listeners of the channel. */
  protected abstract part(channel: string, listener: MessageListener | undefined, isSharded: boolean): Promise<void>;

  subscribe(channel: string, listener: MessageListener): Promise<void> {
    return this.join(channel, listener, false);
  }

  unsubscribe(channel: string, listener?: MessageListener): Promise<void> {
    return this.part(channel, listener, false);
  }

  sSubscribe(channel: string, listener: MessageListener): Promise<void> {
    return this.join(channel, listener, true);
  }

  sUnsubscribe(channel: string, listener?: MessageListener): Promise<void> {
    return this.part(channel, listener, true);
  }
}
