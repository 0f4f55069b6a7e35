import { EventEmitter } from 'node:events';
import { type ClusterNode, type ClusterClient as ClusterStructure, hashSlot } from '../../redis/cluster';
import { ClientClosedError, isFinal, isServerAnswer } from '../../redis/failure';
import { type Channel, type Listening, PlacedChannels } from '../common/subscriptions';
import type { ClusterIoredis, SingleIoredis } from './instance';
import { addressOf, ignore, isReady, OwnConnection, SingleClient, sendAlone } from './single';

/** What is listened to in ioredis, and what the registry calls it. */
const EVENTS = [
  ['ready', 'ready'],
  ['end', 'end'],
  // A node is gone.
  ['-node', 'client-error'],
] as const;

/**
 * An instance of ioredis' `Cluster`, as the registry wants a cluster of node-redis. Messages come over connections of our
 * own: a sharded channel is subscribed at the master of its slot, and again where the slot moves to, a plain one at any
 * master.
 */
export class ClusterClient extends PlacedChannels implements ClusterStructure<SingleClient> {
  /** Empty: `masterOf` says it. */
  readonly slots: readonly never[] = [];
  readonly #cluster: ClusterIoredis;
  readonly #events = new EventEmitter().setMaxListeners(0);
  readonly #forwards = EVENTS.map(([name, as]) => [name, () => this.#events.emit(as)] as const);
  /** What ends the listening to a node. */
  readonly #unwatch = new WeakMap<SingleIoredis, () => void>();
  #listeners = 0;
  /** The masters of the last refresh, or when the first listener came; empty until the cluster is connected. */
  #masters = '';
  /** One for each node: it may listen to its events. */
  readonly #nodes = new WeakMap<SingleIoredis, SingleClient>();
  /** With its last channel of one sort, a connection of ioredis drops the messages of the other. */
  protected override readonly mixesChannels = false;

  constructor(cluster: ClusterIoredis) {
    super();
    this.#cluster = cluster;
  }

  get isOpen(): boolean {
    const { status, manuallyClosing } = this.#cluster;
    // After `disconnect` the connection to each node that ends sets the status to `close`, also after `end`; with none,
    // it stays `disconnecting`.
    return status !== 'end' && !(manuallyClosing === true && ['close', 'disconnecting'].includes(status));
  }

  get isReady(): boolean {
    return isReady(this.#cluster);
  }

  get masters(): readonly ClusterNode[] {
    return this.#cluster.nodes('master').map((node) => nodeOf(addressOf(node)));
  }

  masterOf(slot: number): ClusterNode | undefined {
    const address = this.#cluster.slots[slot]?.[0];
    return address === undefined ? undefined : nodeOf(address);
  }

  async nodeClient({ host, port }: ClusterNode): Promise<SingleClient> {
    const address = `${host}:${port}`;
    // ioredis forgets a node whose connection it has lost, until it reads the slots again.
    if (this.#cluster.nodes('master').every((one) => addressOf(one) !== address)) {
      await new Promise<unknown>((resolve) => this.#cluster.refreshSlotsCache(resolve));
    }
    const node = this.#masterAt(address);
    const known = this.#nodes.get(node) ?? new SingleClient(node);
    this.#nodes.set(node, known);
    return known;
  }

  on(event: string, listener: () => void): void {
    this.#events.on(event, listener);
    if (++this.#listeners > 1) return;
    this.#masters = this.isReady ? this.#mastersNow() : '';
    for (const [name, forward] of this.#forwards) this.#cluster.on(name, forward);
    this.#cluster.on('refresh', this.#onRefresh);
    this.#cluster.on('+node', this.#watch);
    this.#cluster.nodes('all').forEach(this.#watch);
  }

  off(event: string, listener: () => void): void {
    this.#events.off(event, listener);
    if (--this.#listeners > 0) return;
    for (const [name, forward] of this.#forwards) this.#cluster.off(name, forward);
    this.#cluster.off('refresh', this.#onRefresh);
    this.#cluster.off('+node', this.#watch);
    for (const node of this.#cluster.nodes('all')) this.#unwatch.get(node)?.();
  }

  onError(listener: (error: unknown) => void): () => void {
    this.#cluster.on('node error', listener as never);
    return () => this.#cluster.off('node error', listener as never);
  }

  readonly #watch = (node: SingleIoredis): void => {
    let isConnected = node.status === 'ready';
    const onReady = (): void => {
      isConnected = true;
      this.#events.emit('node-ready');
    };
    // Each try to connect again that fails ends so, too. What the node had not answered, ioredis sends again by itself.
    const onClose = (): void => {
      if (isConnected) this.#events.emit('node-lost');
      isConnected = false;
    };
    node.on('ready', onReady);
    node.on('close', onClose);
    this.#unwatch.set(node, () => {
      node.off('ready', onReady);
      node.off('close', onClose);
    });
  };

  /** The slots were read again. Other masters mean a failover: its new master may not have all locks. */
  readonly #onRefresh = (): void => {
    const masters = this.#mastersNow();
    if (masters !== this.#masters && this.#masters !== '') this.#events.emit('node-ready');
    this.#masters = masters;
  };

  #mastersNow(): string {
    return this.#cluster.nodes('master').map(addressOf).sort().join();
  }

  protected async command(words: readonly string[]): Promise<unknown> {
    if (!this.isOpen) throw new ClientClosedError('The client is closed');
    return sendAlone(this.#cluster, words);
  }

  #masterAt(address: string): SingleIoredis {
    const node = this.#cluster.nodes('master').find((one) => addressOf(one) === address);
    if (node === undefined) throw new Error(`${address} is no master of the cluster any more`);
    return node;
  }

  // Channels

  protected override added(channel: Channel): void {
    if (this.channels.size === 1) {
      this.#cluster.on('refresh', this.place);
      this.#cluster.on('end', this.#onEnd);
    }
    super.added(channel);
  }

  protected override async removed(channel: Channel): Promise<void> {
    if (this.channels.size === 0) {
      this.#cluster.off('refresh', this.place);
      this.#cluster.off('end', this.#onEnd);
    }
    await super.removed(channel);
  }

  protected addressFor({ name, isSharded, place }: Channel): string | undefined {
    if (isSharded) return this.#cluster.slots[hashSlot(name)]?.[0];
    const masters = this.#cluster.nodes('master').map(addressOf);
    if (place !== undefined && masters.includes(place.address)) return place.address;
    return masters.find((master) => this.hasConnection(master)) ?? masters[0];
  }

  protected async connect(address: string, lost: () => void): Promise<Listening> {
    // The connection does not reconnect: the cluster says whether the node comes back, or another one has its slots.
    const own = new OwnConnection(this.#masterAt(address), { retryStrategy: null, readOnly: false });
    own.on('error', () => {
      if (!own.isOpen) lost();
    });
    own.connect().catch(ignore);
    return {
      subscribe: ({ name, isSharded, deliver }) =>
        isSharded ? own.sSubscribe(name, deliver) : own.subscribe(name, deliver),
      unsubscribe: ({ name, isSharded, deliver }) =>
        isSharded ? own.sUnsubscribe(name, deliver) : own.unsubscribe(name, deliver),
      close: () => own.destroy(),
    };
  }

  /** Older versions of ioredis have no sharded channels. */
  protected override isRefused(error: unknown): boolean {
    return (isServerAnswer(error) && isFinal(error)) || error instanceof TypeError;
  }

  /** A redirection tells the caller's client where the slot is now. */
  protected override retrying({ name }: Channel): void {
    const address = this.#cluster.slots[hashSlot(name)]?.[0];
    const node = this.#cluster.nodes('all').find((one) => addressOf(one) === address);
    // Without a connection ioredis would keep one after the other.
    if (this.isReady && isReady(node ?? this.#cluster)) void this.#cluster.eval('return 1', 1, name).catch(ignore);
  }

  protected restored(): void {
    this.#events.emit('ready');
  }

  /** The application has closed its client. */
  readonly #onEnd = (): void => {
    for (const channel of [...this.channels.values()]) void this.drop(channel, new Error('the client is closed'));
  };
}

function nodeOf(address: string): ClusterNode {
  const colon = address.lastIndexOf(':');
  return { host: address.slice(0, colon), port: Number(address.slice(colon + 1)) };
}
