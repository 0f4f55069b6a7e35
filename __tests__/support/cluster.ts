import { createClient, createCluster } from 'redis';
import { startRedis } from '../../scripts/redis';
import { freePort } from './free-port';
import { until } from './until';

export type TestCluster = ReturnType<typeof newCluster>;

const MASTERS = 3;
const SLOTS = 16_384;

function newCluster(ports: readonly number[]) {
  const cluster = createCluster({ rootNodes: ports.map((port) => ({ socket: { host: '127.0.0.1', port } })) });
  cluster.on('error', () => {});
  return cluster;
}

/** Starts a cluster of three masters without replicas. */
export async function startCluster(): Promise<{ connect(): Promise<TestCluster>; stop(): Promise<void> }> {
  const servers = await Promise.all(
    Array.from({ length: MASTERS }, async () => {
      const port = await freePort();
      const args = ['--cluster-enabled', 'yes', '--cluster-config-file', 'nodes.conf'];
      return { port, server: await startRedis({ port, args }) };
    }),
  );
  const ports = servers.map(({ port }) => port);
  await formCluster(ports);
  return {
    async connect() {
      const cluster = newCluster(ports);
      await cluster.connect();
      return cluster;
    },
    async stop() {
      await Promise.all(servers.map(({ server }) => server.stop()));
    },
  };
}

async function formCluster(ports: readonly number[]): Promise<void> {
  const nodes = ports.map((port) => createClient({ socket: { host: '127.0.0.1', port } }));
  await Promise.all(
    nodes.map(async (node, i) => {
      node.on('error', () => {});
      await node.connect();
      const start = Math.ceil((i * SLOTS) / MASTERS);
      const end = Math.ceil(((i + 1) * SLOTS) / MASTERS) - 1;
      const slots = Array.from({ length: end - start + 1 }, (_, slot) => start + slot);
      await node.clusterAddSlots(slots);
      await node.sendCommand(['CLUSTER', 'SET-CONFIG-EPOCH', String(i + 1)]);
    }),
  );
  for (const port of ports.slice(1)) await nodes[0]?.clusterMeet('127.0.0.1', port);
  for (const node of nodes) {
    await until(async () => /cluster_state:ok[\s\S]*cluster_size:3/.test(await node.clusterInfo()), { within: 10_000 });
    node.destroy();
  }
}
