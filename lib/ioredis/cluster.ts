import { EventEmitter } from 'node:events';
import { clock, inBackground } from '../internal/clock';
import { Backoff } from '../internal/timers';
import { type Channel, Channels } from '../redis/channels';
import type { EvalOptions } from '../redis/client';
import { type ClusterNode, type ClusterClient as ClusterStructure, hashSlot } from '../redis/cluster';
import { ClientClosedError, isFinal, isServerAnswer, isUnknownCommand } from '../redis/failure';
import { OwnConnection, SingleClient } from './client';
import { addressOf, type ClusterIoredis, ignore, run, type SingleIoredis } from './ioredis';

/** ms until a channel without a connection is tried again: at first, and at most. */
const FIRST_RETRY = 50;
const LONGEST_RETRY = 1_000;

/** What is listened to in ioredis, and what the registry calls it. */
const EVENTS = [
  ['ready', 'ready'],
  ['end', 'end'],
  // A node is gone. ioredis sends again by itself what it had not answered.
  ['-node', 'client-error'],
] as const;

/**
 * An instance of ioredis' `Cluster`, as the registry wants a cluster of node-redis. Messages come over connections of our
 * own: a sharded channel is subscribed at the master of its slot, and again where the slot moves to, a plain one at any
 * master.
 */
export class ClusterClient extends Channels implements ClusterStructure<SingleClient> {
  /** Empty: `masterOf` says it. */
  readonly slots: readonly never[] = [];
  readonly #cluster: ClusterIoredis;
  readonly #events = new EventEmitter().setMaxListeners(0);
  readonly #forwards = EVENTS.map(([name, as]) => [name, () => this.#events.emit(as)] as const);
  #listeners = 0;
  #masters = '';
  /** One for each node: it may listen to its events. */
  readonly #nodes = new WeakMap<SingleIoredis, SingleClient>();
  /** Those for messages, by the address of the node. */
  readonly #connections = new Map<string, OwnConnection>();
  readonly #backoff = new Backoff(FIRST_RETRY, LONGEST_RETRY);
  #retry: NodeJS.Timeout | undefined;

  constructor(cluster: ClusterIoredis) {
    super();
    this.#cluster = cluster;
  }

  get isOpen(): boolean {
    return this.#cluster.status !== 'end';
  }

  get isReady(): boolean {
    return this.#cluster.status === 'ready';
  }

  get masters(): readonly ClusterNode[] {
    return this.#cluster.nodes('master').map((node) => nodeOf(addressOf(node)));
  }

  masterOf(slot: number): ClusterNode | undefined {
    const address = this.#cluster.slots[slot]?.[0];
    return address === undefined ? undefined : nodeOf(address);
  }

  nodeClient({ host, port }: ClusterNode): SingleClient {
    const node = this.#masterAt(`${host}:${port}`);
    const known = this.#nodes.get(node) ?? new SingleClient(node);
    this.#nodes.set(node, known);
    return known;
  }

  eval(script: string, options?: EvalOptions): Promise<unknown> {
    return this.#run('eval', script, options);
  }

  evalSha(sha1: string, options?: EvalOptions): Promise<unknown> {
    return this.#run('evalsha', sha1, options);
  }

  on(event: string, listener: () => void): void {
    this.#events.on(event, listener);
    if (++this.#listeners > 1) return;
    for (const [name, forward] of this.#forwards) this.#cluster.on(name, forward);
    this.#cluster.on('refresh', this.#onRefresh);
  }

  off(event: string, listener: () => void): void {
    this.#events.off(event, listener);
    if (--this.#listeners > 0) return;
    for (const [name, forward] of this.#forwards) this.#cluster.off(name, forward);
    this.#cluster.off('refresh', this.#onRefresh);
  }

  onError(listener: (error: unknown) => void): () => void {
    this.#cluster.on('node error', listener as never);
    return () => this.#cluster.off('node error', listener as never);
  }

  /** The slots were read again. Other masters mean a failover: its new master may not have all locks. */
  readonly #onRefresh = (): void => {
    const masters = this.#cluster.nodes('master').map(addressOf).sort().join();
    if (masters !== this.#masters && this.#masters !== '') this.#events.emit('node-ready');
    this.#masters = masters;
  };

  #run(command: 'eval' | 'evalsha', script: string, options?: EvalOptions): Promise<unknown> {
    if (!this.isOpen) return Promise.reject(new ClientClosedError('The client is closed'));
    return run(this.#cluster, command, script, options);
  }

  #masterAt(address: string): SingleIoredis {
    const node = this.#cluster.nodes('master').find((one) => addressOf(one) === address);
    if (node === undefined) throw new Error(`${address} is no master of the cluster any more`);
    return node;
  }

  // Channels

  protected added(): void {
    if (this.channels.size === 1) {
      this.#cluster.on('refresh', this.#place);
      this.#cluster.on('end', this.#closeConnections);
    }
    inBackground(this.#place);
  }

  protected async removed(channel: Channel): Promise<void> {
    const { address } = channel;
    channel.address = undefined;
    if (this.channels.size === 0) {
      this.#cluster.off('refresh', this.#place);
      this.#cluster.off('end', this.#closeConnections);
      clock.clearTimeout(this.#retry);
      this.#retry = undefined;
    }
    if (address !== undefined) await this.#leave(channel, address);
  }

  /** Unsubscribes it there. A connection without channels is closed. */
  async #leave({ name, isSharded, deliver }: Channel, address: string): Promise<void> {
    const connection = this.#connections.get(address);
    if (connection === undefined) return;
    if ([...this.channels.values()].some((other) => other.address === address)) {
      await (isSharded ? connection.sUnsubscribe(name, deliver) : connection.unsubscribe(name, deliver));
      return;
    }
    this.#connections.delete(address);
    connection.destroy();
  }

  /** Subscribes all channels that are not subscribed where they should be. */
  readonly #place = (): void => {
    for (const channel of this.channels.values()) {
      const address = this.#ownerOf(channel);
      if (address === undefined) this.#tryLater(channel);
      else if (address !== channel.address) void this.#subscribe(channel, address);
    }
  };

  #ownerOf({ name, isSharded, address }: Channel): string | undefined {
    if (isSharded) return this.#cluster.slots[hashSlot(name)]?.[0];
    const masters = this.#cluster.nodes('master').map(addressOf);
    if (address !== undefined && masters.includes(address)) return address;
    return masters.find((master) => this.#connections.has(master)) ?? masters[0];
  }

  async #subscribe(channel: Channel, address: string): Promise<void> {
    const { address: before, deliver, isSharded, name } = channel;
    channel.address = address;
    if (before !== undefined) void this.#leave(channel, before);
    try {
      const connection = this.#connectionTo(address);
      await (isSharded ? connection.sSubscribe(name, deliver) : connection.subscribe(name, deliver));
      if (channel.address !== address) return;
      this.#backoff.reset();
      // Messages may have been missed on the way from another connection.
      if (channel.isSubscribed) this.#events.emit('ready');
      channel.isSubscribed = true;
      channel.confirm();
    } catch (error) {
      if (channel.address !== address) return;
      const isRefused = (isServerAnswer(error) && isFinal(error)) || isUnknownCommand(error);
      // Older versions of ioredis have no sharded channels.
      if (isRefused || error instanceof TypeError) {
        await this.drop(channel, error);
        return;
      }
      channel.address = undefined;
      this.#tryLater(channel);
    }
  }

  #connectionTo(address: string): OwnConnection {
    const known = this.#connections.get(address);
    if (known !== undefined) return known;
    // It does not reconnect: the cluster says whether the node comes back, or another one has its slots.
    const made = new OwnConnection(this.#masterAt(address), { retryStrategy: null, readOnly: false });
    this.#connections.set(address, made);
    made.on('error', () => {
      if (!made.isOpen) this.#lost(address, made);
    });
    made.connect().catch(ignore);
    return made;
  }

  #lost(address: string, connection: OwnConnection): void {
    if (this.#connections.get(address) !== connection) return;
    this.#connections.delete(address);
    for (const channel of this.channels.values()) {
      if (channel.address !== address) continue;
      channel.address = undefined;
      this.#tryLater(channel);
    }
  }

  #tryLater({ name }: Channel): void {
    if (this.#retry !== undefined || this.channels.size === 0) return;
    this.#retry = clock.setTimeout(() => {
      this.#retry = undefined;
      this.#place();
      // A redirection tells the caller's client where the slot is now.
      void this.#cluster.eval('return 1', 1, name).catch(ignore);
    }, this.#backoff.next());
    this.#retry.unref?.();
  }

  /** The application has closed its client. */
  readonly #closeConnections = (): void => {
    for (const connection of this.#connections.values()) connection.destroy();
    this.#connections.clear();
    for (const channel of [...this.channels.values()]) void this.drop(channel, new Error('the client is closed'));
  };
}

function nodeOf(address: string): ClusterNode {
  const colon = address.lastIndexOf(':');
  return { host: address.slice(0, colon), port: Number(address.slice(colon + 1)) };
}
