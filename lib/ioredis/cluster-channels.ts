import { clock, inBackground } from '../internal/clock';
import { Backoff } from '../internal/timers';
import { hashSlot } from '../redis/cluster';
import { isFinal, isServerAnswer, isUnknownCommand } from '../redis/failure';
import type { MessageListener } from '../redis/subscriber-connection';
import { Channel, channelId } from './channel';
import { addressOf, type ClusterIoredis, ignore } from './ioredis';
import { OwnConnection } from './own-connection';

/** ms until a channel without a connection is tried again: at first, and at most. */
const FIRST_RETRY = 50;
const LONGEST_RETRY = 1_000;

/** A channel, and the node over whose connection it is subscribed. */
class PlacedChannel extends Channel {
  readonly listeners = new Set<MessageListener>();
  /** `host:port` */
  address: string | undefined;
  isSubscribed = false;

  readonly deliver: MessageListener = (message, channel) => {
    for (const listener of [...this.listeners]) listener(message, channel);
  };
}

/**
 * The channels of a cluster, over connections of our own. A sharded channel is subscribed at the master of its slot,
 * and again where the slot moves to. A plain one is subscribed at any master.
 */
export class ClusterChannels {
  readonly #cluster: ClusterIoredis;
  readonly #onSubscribedAgain: () => void;
  /** By `Channel.id`. */
  readonly #channels = new Map<string, PlacedChannel>();
  /** By `host:port`. */
  readonly #connections = new Map<string, OwnConnection>();
  readonly #backoff = new Backoff(FIRST_RETRY, LONGEST_RETRY);
  #retry: NodeJS.Timeout | undefined;

  /** `onSubscribedAgain`: a channel has another connection than before. Messages may have been missed meanwhile. */
  constructor(cluster: ClusterIoredis, onSubscribedAgain: () => void) {
    this.#cluster = cluster;
    this.#onSubscribedAgain = onSubscribedAgain;
  }

  /** Resolves when Redis has confirmed it. Rejects when Redis refuses it. */
  join(name: string, listener: MessageListener, isSharded: boolean): Promise<void> {
    const id = channelId(name, isSharded);
    let channel = this.#channels.get(id);
    if (channel === undefined) {
      channel = new PlacedChannel(name, isSharded);
      if (this.#channels.size === 0) this.#attach();
      this.#channels.set(id, channel);
    }
    channel.listeners.add(listener);
    inBackground(this.#place);
    return channel.confirmed;
  }

  /** Never rejects. */
  async part(name: string, listener: MessageListener | undefined, isSharded: boolean): Promise<void> {
    const channel = this.#channels.get(channelId(name, isSharded));
    if (channel === undefined) return;
    if (listener !== undefined) channel.listeners.delete(listener);
    if (listener === undefined || channel.listeners.size === 0) await this.#remove(channel);
  }

  #attach(): void {
    this.#cluster.on('refresh', this.#place);
    this.#cluster.on('end', this.#close);
  }

  async #remove(channel: PlacedChannel): Promise<void> {
    const { address } = channel;
    this.#channels.delete(channel.id);
    channel.address = undefined;
    if (this.#channels.size === 0) {
      this.#cluster.off('refresh', this.#place);
      this.#cluster.off('end', this.#close);
      clock.clearTimeout(this.#retry);
      this.#retry = undefined;
    }
    if (address !== undefined) await this.#leave(channel, address);
  }

  /** Unsubscribes it there. A connection without channels is closed. */
  async #leave({ name, isSharded, deliver }: PlacedChannel, address: string): Promise<void> {
    const connection = this.#connections.get(address);
    if (connection === undefined) return;
    if ([...this.#channels.values()].some((other) => other.address === address)) {
      await (isSharded ? connection.sUnsubscribe(name, deliver) : connection.unsubscribe(name, deliver));
      return;
    }
    this.#connections.delete(address);
    connection.destroy();
  }

  /** Subscribes all channels that are not subscribed where they should be. */
  readonly #place = (): void => {
    for (const channel of this.#channels.values()) {
      const address = this.#ownerOf(channel);
      if (address === undefined) this.#tryLater(channel);
      else if (address !== channel.address) void this.#subscribe(channel, address);
    }
  };

  #ownerOf({ name, isSharded, address }: PlacedChannel): string | undefined {
    if (isSharded) return this.#cluster.slots[hashSlot(name)]?.[0];
    const masters = this.#cluster.nodes('master').map(addressOf);
    if (address !== undefined && masters.includes(address)) return address;
    return masters.find((master) => this.#connections.has(master)) ?? masters[0];
  }

  async #subscribe(channel: PlacedChannel, address: string): Promise<void> {
    const { address: before, deliver, isSharded, name } = channel;
    channel.address = address;
    if (before !== undefined) void this.#leave(channel, before);
    try {
      const connection = this.#connectionTo(address);
      await (isSharded ? connection.sSubscribe(name, deliver) : connection.subscribe(name, deliver));
      if (channel.address !== address) return;
      this.#backoff.reset();
      if (channel.isSubscribed) this.#onSubscribedAgain();
      channel.isSubscribed = true;
      channel.confirm();
    } catch (error) {
      if (channel.address !== address) return;
      const isRefused = (isServerAnswer(error) && isFinal(error)) || isUnknownCommand(error);
      if (isRefused || isUnsupported(error)) {
        channel.fail(error);
        await this.#remove(channel);
        return;
      }
      channel.address = undefined;
      this.#tryLater(channel);
    }
  }

  #connectionTo(address: string): OwnConnection {
    let connection = this.#connections.get(address);
    if (connection !== undefined) return connection;
    const node = this.#cluster.nodes('master').find((one) => addressOf(one) === address);
    if (node === undefined) throw new Error(`${address} is no master of the cluster any more`);
    // It does not reconnect: the cluster says whether the node comes back, or another one has its slots.
    connection = new OwnConnection(node, { retryStrategy: null, readOnly: false });
    this.#connections.set(address, connection);
    const made = connection;
    made.on('error', () => {
      if (!made.isOpen) this.#lost(address, made);
    });
    made.connect().catch(ignore);
    return made;
  }

  #lost(address: string, connection: OwnConnection): void {
    if (this.#connections.get(address) !== connection) return;
    this.#connections.delete(address);
    for (const channel of this.#channels.values()) {
      if (channel.address !== address) continue;
      channel.address = undefined;
      this.#tryLater(channel);
    }
  }

  #tryLater({ name }: PlacedChannel): void {
    if (this.#retry !== undefined || this.#channels.size === 0) return;
    this.#retry = clock.setTimeout(() => {
      this.#retry = undefined;
      this.#place();
      // A redirection tells the caller's client where the slot is now.
      void this.#cluster.eval('return 1', 1, name).catch(ignore);
    }, this.#backoff.next());
    this.#retry.unref?.();
  }

  /** The application has closed its client. */
  readonly #close = (): void => {
    for (const connection of this.#connections.values()) connection.destroy();
    this.#connections.clear();
    for (const channel of [...this.#channels.values()]) {
      channel.fail(new Error('the client is closed'));
      void this.#remove(channel);
    }
  };
}

/** Older versions of ioredis have no sharded channels. */
function isUnsupported(error: unknown): boolean {
  return error instanceof TypeError;
}
