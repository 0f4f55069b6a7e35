import { isServerAnswer, isUnknownCommand } from './failure';
import type { RedisSubscriber, SubscriberConnection } from './subscriber-connection';
import type { Subscription } from './subscription';

/** One channel, and the subscriptions that get its messages. */
class Channel {
  readonly subscriptions = new Set<Subscription>();
  isSubscribed = false;
  /** The last command about it. */
  traffic: Promise<void> = Promise.resolve();

  // `unknown` since node-redis' type allows buffers. No listener of ours asks for them.
  readonly deliver = (message: unknown): void => {
    for (const subscription of [...this.subscriptions]) subscription.onMessage(String(message));
  };
}

/** The channels of a registry on its pub/sub connection, counted by reference. */
export class Channels {
  readonly #connection: SubscriberConnection;
  /** Sharded channels, on a cluster: only their PUBLISH inside a script can say how many listen. */
  #isSharded: boolean;
  /** Where the server has no sharded channels, plain ones are used. */
  readonly #orPlain: boolean;
  readonly #all = new Map<string, Channel>();

  constructor(connection: SubscriberConnection, isSharded: boolean, orPlain: boolean) {
    this.#connection = connection;
    this.#isSharded = isSharded;
    this.#orPlain = orPlain;
  }

  get isAnySubscribed(): boolean {
    return [...this.#all.values()].some(({ isSubscribed }) => isSubscribed);
  }

  /** Resolves when the channel is subscribed. */
  join(name: string, subscription: Subscription): Promise<void> {
    let channel = this.#all.get(name);
    if (channel === undefined) {
      channel = new Channel();
      this.#all.set(name, channel);
    }
    channel.subscriptions.add(subscription);
    return this.#adjust(name, channel);
  }

  /** Never rejects. */
  part(name: string, subscription: Subscription): Promise<void> {
    const channel = this.#all.get(name);
    channel?.subscriptions.delete(subscription);
    return channel === undefined ? Promise.resolve() : this.#adjust(name, channel).catch(() => undefined);
  }

  /** The connection has ended, and its subscriptions with it. */
  forget(): void {
    for (const channel of this.#all.values()) {
      channel.isSubscribed = false;
      channel.subscriptions.clear();
    }
    this.#all.clear();
  }

  /**
   * Subscribes or unsubscribes the channel, depending on whether a subscription needs it. One command at a time for
   * each channel: in node-redis a `subscribe` that meets the `unsubscribe` of the same channel resolves, and then
   * delivers nothing.
   */
  #adjust(name: string, channel: Channel): Promise<void> {
    const adjusted = channel.traffic.then(async () => {
      const isWanted = channel.subscriptions.size > 0;
      if (isWanted === channel.isSubscribed) return;
      const connection = await this.#connection.get();
      try {
        await this.#command(connection, isWanted, name, channel);
      } catch (error) {
        const isAnswer = isServerAnswer(error) || isUnknownCommand(error);
        if (isAnswer || channel.subscriptions.size === 0) throw error;
        // It failed with its connection: once more, on the next one.
        await this.#command(await this.#connection.get(), isWanted, name, channel);
      }
      channel.isSubscribed = isWanted;
    });
    channel.traffic = adjusted
      .catch(() => undefined)
      .then(() => {
        const isIdle = channel.subscriptions.size === 0 && !channel.isSubscribed;
        if (isIdle && this.#all.get(name) === channel) this.#all.delete(name);
      });
    return adjusted;
  }

  async #command(connection: RedisSubscriber, isWanted: boolean, name: string, channel: Channel): Promise<unknown> {
    const { deliver } = channel;
    if (!this.#isSharded) return isWanted ? connection.subscribe(name, deliver) : connection.unsubscribe(name, deliver);
    const { sSubscribe, sUnsubscribe } = connection;
    if (sSubscribe === undefined || sUnsubscribe === undefined) throw new Error('the client has no sharded pub/sub');
    try {
      return await (isWanted ? sSubscribe : sUnsubscribe).call(connection, name, deliver);
    } catch (error) {
      if (!this.#orPlain || !isUnknownCommand(error)) throw error;
      this.#isSharded = false; // the server is older than 7
      return this.#command(connection, isWanted, name, channel);
    }
  }
}
