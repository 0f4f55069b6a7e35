import { inBackground } from '../internal/background';
import type { ReplicationSettings } from '../settings';
import { describeValue, type RedisClient } from './client';
import { type ClusterClient, type ClusterNode, isClusterClient } from './cluster-client';
import { hashSlot } from './hash-slot';
import { type OwnClient, ReplicatingConnection } from './replicating-connection';

/** Where acquisitions that replicas must have are sent. */
export interface ReplicatingConnections {
  /** The connection to the master of this key. Rejects when no master serves the key. */
  to(key: string): Promise<ReplicatingConnection>;
  /**
   * The connection to the node that a cluster redirects to; `undefined`: the node is not known, or there is no cluster.
   */
  redirected(key: string, address: string): Promise<ReplicatingConnection | undefined>;
  close(): void;
}

/** A client that can make a connection of our own: a plain one or a sentinel of node-redis, or one of `fromIoredis`. */
interface Duplicable extends RedisClient {
  duplicate(overrides?: object): OwnClient;
  /** A sentinel. */
  getMasterNode?(): unknown;
}

type Cluster = ClusterClient<Duplicable>;

/** Throws `TypeError` for a client without such a connection: a pool, a foreign client. */
export function replicatingConnections(client: RedisClient, replication: ReplicationSettings): ReplicatingConnections {
  if (isClusterClient<Duplicable>(client)) return new ClusterConnections(client, replication);
  if (isDuplicable(client)) return new OneConnection(client, replication);
  const needed =
    '`client` to be a client, cluster or sentinel of node-redis, or one that fromIoredis made, and no pool';
  const why = `minReplicas ${replication.minReplicas} needs a connection of its own`;
  throw new TypeError(`Expected ${needed}, since ${why}, got ${describeValue(client)}`);
}

/** The sentinel of node-redis 5 has no duplicate(). A pool has one, and is neither. */
function isDuplicable(client: RedisClient): client is Duplicable {
  const { duplicate, getMasterNode, socketEpoch } = client as Partial<Duplicable>;
  return typeof duplicate === 'function' && (socketEpoch !== undefined || typeof getMasterNode === 'function');
}

/** A sentinel with one connection to the master, for all commands, that reports each loss of it. */
const SENTINEL = { masterPoolSize: 1, replicaPoolSize: 0, reserveClient: true, passthroughClientErrorEvents: true };

class OneConnection implements ReplicatingConnections {
  readonly #client: Duplicable;
  readonly #replication: ReplicationSettings;
  #connection: ReplicatingConnection | undefined;
  #isClosed = false;

  constructor(client: Duplicable, replication: ReplicationSettings) {
    this.#client = client;
    this.#replication = replication;
  }

  async to(): Promise<ReplicatingConnection> {
    if (this.#connection === undefined || this.#connection.isClosed)
      this.#connection = inBackground(() => this.#make());
    await this.#connection.open();
    return this.#connection;
  }

  async redirected(): Promise<undefined> {}

  close(): void {
    this.#isClosed = true;
    this.#connection?.close();
  }

  #make(): ReplicatingConnection {
    const client = this.#client;
    const own = client.duplicate(client.getMasterNode === undefined ? undefined : SENTINEL);
    const connection = new ReplicatingConnection(
      own,
      this.#replication,
      () => !this.#isClosed && client.isOpen !== false,
    );
    // A sentinel would stay connected, and keep the process alive, though the application has closed its own.
    client.on?.('end', () => connection.close());
    return connection;
  }
}

/** One connection for each master, made when it is needed. */
class ClusterConnections implements ReplicatingConnections {
  readonly #cluster: Cluster;
  readonly #replication: ReplicationSettings;
  readonly #connections = new Map<string, Promise<ReplicatingConnection>>();
  #isClosed = false;

  constructor(cluster: Cluster, replication: ReplicationSettings) {
    this.#cluster = cluster;
    this.#replication = replication;
  }

  to(key: string): Promise<ReplicatingConnection> {
    const slot = hashSlot(key);
    const cluster = this.#cluster;
    const master = cluster.masterOf === undefined ? cluster.slots[slot]?.master : cluster.masterOf(slot);
    if (master === undefined) return Promise.reject(new Error(`No node serves slot ${slot} of the cluster`));
    return this.#to(master);
  }

  async redirected(key: string, address: string): Promise<ReplicatingConnection | undefined> {
    // The caller's client learns of the new node by being redirected itself.
    void this.#cluster.eval('return 1', { keys: [key] }).catch(() => undefined);
    const master = this.#cluster.masters.find((node) => addressOf(node) === address);
    return master && this.#to(master);
  }

  close(): void {
    this.#isClosed = true;
    for (const connecting of this.#connections.values())
      void connecting.then((one) => one.close()).catch(() => undefined);
    this.#connections.clear();
  }

  async #to(master: ClusterNode): Promise<ReplicatingConnection> {
    const address = addressOf(master);
    let connecting = this.#connections.get(address);
    if (connecting === undefined) {
      connecting = inBackground(() => this.#make(master));
      this.#connections.set(address, connecting);
      connecting.catch(() => this.#connections.delete(address));
    }
    const connection = await connecting;
    if (connection.isClosed) {
      this.#connections.delete(address);
      return this.#to(master);
    }
    await connection.open();
    return connection;
  }

  async #make(master: ClusterNode): Promise<ReplicatingConnection> {
    const client = await this.#cluster.nodeClient(master);
    const isWanted = (): boolean =>
      !this.#isClosed &&
      this.#cluster.isOpen !== false &&
      this.#cluster.masters.some((node) => addressOf(node) === addressOf(master));
    return new ReplicatingConnection(client.duplicate(), this.#replication, isWanted);
  }
}

function addressOf({ host, port }: ClusterNode): string {
  return `${host}:${port}`;
}
