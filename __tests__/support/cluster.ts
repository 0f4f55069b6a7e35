import { setTimeout as sleep } from 'node:timers/promises';
import { createCluster, type RedisClusterOptions } from 'redis';
import { Node } from './node';
import { until } from './until';

export type TestCluster = ReturnType<typeof newCluster>;

const MASTERS = 3;
export const SLOTS = 16_384;

/** ms without an answer after which a node is taken for dead, while a cluster is formed: that takes longer with more. */
export const NODE_TIMEOUT = 1_000;

/** By default, from then on: a busy machine lets no replica take over. */
const PATIENT = 30_000;

function newCluster(ports: readonly number[], options: Partial<RedisClusterOptions>) {
  const rootNodes = ports.map((port) => ({ socket: { host: '127.0.0.1', port } }));
  const cluster = createCluster({ rootNodes, topologyRefreshOnReconnectionAttemptStrategy: 100, ...options });
  cluster.on('error', () => {});
  return cluster;
}

export interface ClusterServers {
  /** The first masters. */
  readonly masters: readonly Node[];
  /** A replica of each of them, if there are replicas. */
  readonly replicas: readonly Node[];
  /** The first master of a key's slot, and its replica. */
  ownersOf(key: string): Promise<{ readonly slot: number; readonly master: Node; readonly replica: Node | undefined }>;
  connect(options?: Partial<RedisClusterOptions>): Promise<TestCluster>;
  stop(): Promise<void>;
}

/** Starts a cluster of three masters; with replicas, one for each of them, which take over by themselves with a `nodeTimeout`. */
export async function startCluster({
  replicas = false,
  nodeTimeout = undefined as number | undefined,
  args = [] as readonly string[],
} = {}): Promise<ClusterServers> {
  const start = () =>
    Node.start(
      ...['--cluster-enabled', 'yes', '--cluster-config-file', 'nodes.conf'],
      ...['--cluster-node-timeout', String(nodeTimeout ?? NODE_TIMEOUT), '--repl-diskless-sync-delay', '0', ...args],
    );
  const masters = await Promise.all(Array.from({ length: MASTERS }, start));
  const copies = replicas ? await Promise.all(masters.map(start)) : [];
  const nodes = [...masters, ...copies];
  try {
    await formCluster(masters, copies);
    const set = ['CONFIG', 'SET', 'cluster-node-timeout', String(nodeTimeout ?? PATIENT)];
    await Promise.all(nodes.map((node) => node.send(...set)));
  } catch (error) {
    await Promise.all(nodes.map((node) => node.stop()));
    throw error;
  }
  const clusterClients = new Set<TestCluster>();
  return {
    masters,
    replicas: copies,
    async ownersOf(key) {
      const slot = Number(await masters[0]?.send('CLUSTER', 'KEYSLOT', key));
      const owner = masters.findIndex((_, i) => slot < firstSlot(i + 1));
      return { slot, master: masters[owner] as Node, replica: copies[owner] };
    },
    async connect(options = {}) {
      const cluster = newCluster(
        nodes.map(({ address }) => address.port),
        options,
      );
      clusterClients.add(cluster);
      await cluster.connect();
      return cluster;
    },
    async stop() {
      for (const client of clusterClients) if (client.isOpen) client.destroy();
      await Promise.all(nodes.map((node) => node.stop()));
      // One that was just reading the topology has made connections since, which would keep the process alive.
      for (const client of clusterClients) client.destroy();
    },
  };
}

function firstSlot(master: number): number {
  return Math.ceil((master * SLOTS) / MASTERS);
}

async function formCluster(masters: readonly Node[], replicas: readonly Node[]): Promise<void> {
  await Promise.all(
    masters.map(async (node, i) => {
      const slots = Array.from({ length: firstSlot(i + 1) - firstSlot(i) }, (_, slot) => String(firstSlot(i) + slot));
      await node.send('CLUSTER', 'ADDSLOTS', ...slots);
      await node.send('CLUSTER', 'SET-CONFIG-EPOCH', String(i + 1));
    }),
  );
  const all = [...masters, ...replicas];
  const ids = await Promise.all(all.map(async (node) => String(await node.send('CLUSTER', 'MYID'))));
  const meet = async () => {
    for (const { address } of all.slice(1))
      await masters[0]?.send('CLUSTER', 'MEET', address.host, String(address.port));
  };
  await meet();
  for (const node of all) {
    const knowsAll = async () => {
      const known = String(await node.send('CLUSTER', 'NODES'));
      if (ids.every((id) => known.includes(id))) return true;
      // A handshake that takes longer than the node timeout is given up: on a busy machine it is begun again.
      await sleep(NODE_TIMEOUT / 4);
      await meet();
      return false;
    };
    await until(knowsAll, { within: 40_000 });
  }
  await Promise.all(replicas.map((node, i) => node.send('CLUSTER', 'REPLICATE', ids[i] as string)));
  for (const node of all) {
    const isFormed = async () =>
      /cluster_state:ok[\s\S]*cluster_size:3/.test(String(await node.send('CLUSTER', 'INFO')));
    await until(isFormed, { within: 20_000 });
  }
  for (const node of replicas) {
    const isFollowing = async () => String(await node.send('INFO', 'replication')).includes('master_link_status:up');
    await until(isFollowing, { within: 20_000 });
  }
}
