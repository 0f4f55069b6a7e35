import { EventEmitter } from 'node:events';
import type { EvalOptions } from '../redis/client';
import type { ClusterNode, ClusterClient as ClusterStructure } from '../redis/cluster';
import { ClientClosedError } from '../redis/failure';
import { JoiningSubscriber } from '../redis/joining-subscriber';
import type { MessageListener } from '../redis/subscriber-connection';
import { ClusterChannels } from './cluster-channels';
import { addressOf, type ClusterIoredis, type SingleIoredis } from './ioredis';
import { SingleClient } from './single-client';

/** What is listened to in ioredis, and what the registry calls it. */
const EVENTS = [
  ['ready', 'ready'],
  ['end', 'end'],
  // A node is gone. ioredis sends again by itself what it had not answered.
  ['-node', 'client-error'],
] as const;

/** An instance of ioredis' `Cluster`, as the registry wants a cluster of node-redis. */
export class ClusterClient extends JoiningSubscriber implements ClusterStructure<SingleClient> {
  /** Empty: `masterOf` says it. */
  readonly slots: readonly never[] = [];
  readonly #cluster: ClusterIoredis;
  readonly #events = new EventEmitter().setMaxListeners(0);
  readonly #channels: ClusterChannels;
  /** One for each node: it may listen to its events. */
  readonly #nodes = new WeakMap<SingleIoredis, SingleClient>();
  #masters = '';
  #listeners = 0;
  readonly #forwards = EVENTS.map(([name, as]) => [name, () => this.#events.emit(as)] as const);

  constructor(cluster: ClusterIoredis) {
    super();
    this.#cluster = cluster;
    this.#channels = new ClusterChannels(cluster, () => this.#events.emit('ready'));
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
    const node = this.#cluster.nodes('master').find((one) => addressOf(one) === `${host}:${port}`);
    if (node === undefined) throw new Error(`${host}:${port} is no master of the cluster any more`);
    const known = this.#nodes.get(node) ?? new SingleClient(node);
    this.#nodes.set(node, known);
    return known;
  }

  eval(script: string, { keys = [], arguments: args = [] }: EvalOptions = {}): Promise<unknown> {
    return this.#send(() => this.#cluster.eval(script, keys.length, ...keys, ...args));
  }

  evalSha(sha1: string, { keys = [], arguments: args = [] }: EvalOptions = {}): Promise<unknown> {
    return this.#send(() => this.#cluster.evalsha(sha1, keys.length, ...keys, ...args));
  }

  protected join(channel: string, listener: MessageListener, isSharded: boolean): Promise<void> {
    return this.#channels.join(channel, listener, isSharded);
  }

  protected part(channel: string, listener: MessageListener | undefined, isSharded: boolean): Promise<void> {
    return this.#channels.part(channel, listener, isSharded);
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

  #send(send: () => Promise<unknown>): Promise<unknown> {
    if (this.#cluster.status === 'end') return Promise.reject(new ClientClosedError('The client is closed'));
    return send();
  }
}

function nodeOf(address: string): ClusterNode {
  const colon = address.lastIndexOf(':');
  return { host: address.slice(0, colon), port: Number(address.slice(colon + 1)) };
}
