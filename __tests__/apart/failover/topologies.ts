import type { RedisClient } from '../../../lib';
import { FaultyProxy } from '../../../support/proxy';
import { NODE_TIMEOUT, startCluster } from '../../support/cluster';
import { connectToNode, Node } from '../../support/node';
import { type NodeAddresses, startSentinel } from '../../support/sentinel';
import { until } from '../../support/until';

/** A part of all names: one node of a cluster has them all. */
const TAG = 'a';

/** ms; a node that is restarted is not replaced. */
const PATIENT = 10_000;

/** What the processes of a load connect to. */
export interface Topology {
  readonly name: string;
  readonly tag: string;
  readonly nodes: readonly Node[];
  /** The first master of the locks. */
  readonly master: Node;
  readonly replicas: readonly Node[];
  /** One for each of two processes. */
  readonly clients: readonly (RedisClient & Writer)[];
  /** For each process: a proxy in front of each node, which its client connects through. */
  readonly links: readonly (readonly FaultyProxy[])[];
  /** Graceful: the master stays alive. */
  failover(): Promise<void>;
  /** The node that takes the place of the master. Resolves when it has. */
  promoted(): Promise<Node>;
  stop(): Promise<void>;
}

interface Writer {
  set(key: string, value: string): Promise<unknown>;
  del(key: string): Promise<unknown>;
  destroy(): unknown;
}

export interface TopologyOptions {
  /** Settings of the servers. */
  readonly args?: readonly string[];
  /** A server that is gone for a moment is not replaced. */
  readonly isPatient?: boolean;
}

export type OpenTopology = (options?: TopologyOptions) => Promise<Topology>;

/** For each of two processes, a proxy in front of each node. */
async function linksTo(nodes: readonly Node[]): Promise<FaultyProxy[][]> {
  return Promise.all([1, 2].map(() => Promise.all(nodes.map((node) => FaultyProxy.start(node.address)))));
}

function stop(links: readonly (readonly FaultyProxy[])[]): void {
  for (const proxy of links.flat()) proxy.stop();
}

function addressesOf(nodes: readonly Node[], proxies: readonly FaultyProxy[]): NodeAddresses {
  return Object.fromEntries(
    proxies.map((proxy, i) => {
      const { host, port } = (nodes[i] as Node).address;
      return [`${host}:${port}`, proxy.address];
    }),
  );
}

async function roleOf(node: Node): Promise<string> {
  return String(await node.send('ROLE')).split(',')[0] as string;
}

const none = (): never => {
  throw new Error('One server has no failover');
};

export const oneServer: OpenTopology = async ({ args = [] } = {}) => {
  const node = await Node.start(...args);
  const links = await linksTo([node]);
  const clients = await Promise.all(links.flat().map(({ address }) => connectToNode(address)));
  return {
    name: 'one server',
    tag: TAG,
    nodes: [node],
    master: node,
    replicas: [],
    clients,
    links,
    failover: none,
    promoted: none,
    async stop() {
      for (const client of clients) client.destroy();
      stop(links);
      await node.stop();
    },
  };
};

export const sentinel: OpenTopology = async ({ args = [], isPatient } = {}) => {
  const servers = await startSentinel({ replicas: 2, args, ...(isPatient && { downAfter: PATIENT }) });
  const { nodes } = servers;
  const links = await linksTo(nodes);
  const clients = await Promise.all(links.map((proxies) => servers.connect(addressesOf(nodes, proxies))));
  const { port } = servers.master;
  return {
    name: 'sentinel',
    tag: TAG,
    nodes,
    master: nodes[0] as Node,
    replicas: nodes.slice(1),
    clients,
    links,
    failover: () => servers.failover(),
    async promoted() {
      await until(async () => (await servers.masterPort()) !== port, { within: 60_000 });
      const promotedPort = await servers.masterPort();
      return nodes.find(({ address }) => address.port === promotedPort) as Node;
    },
    async stop() {
      for (const client of clients) await client.destroy();
      stop(links);
      await servers.stop();
    },
  };
};

export const cluster: OpenTopology = async ({ args = [], isPatient } = {}) => {
  const servers = await startCluster({ replicas: true, args, nodeTimeout: isPatient ? PATIENT : NODE_TIMEOUT });
  const nodes = [...servers.masters, ...servers.replicas];
  const links = await linksTo(nodes);
  const clients = await Promise.all(
    links.map((proxies) =>
      servers.connect({
        rootNodes: proxies.map(({ address }) => ({ socket: address })),
        nodeAddressMap: addressesOf(nodes, proxies),
      }),
    ),
  );
  const { master, replica } = (await servers.ownersOf(`{${TAG}}`)) as { master: Node; replica: Node };
  return {
    name: 'cluster',
    tag: TAG,
    nodes,
    master,
    replicas: [replica],
    clients,
    links,
    async failover() {
      await replica.send('CLUSTER', 'FAILOVER');
    },
    async promoted() {
      await until(async () => (await roleOf(replica)) === 'master', { within: 60_000 });
      return replica;
    },
    async stop() {
      stop(links);
      await servers.stop();
    },
  };
};

const isDone = (): boolean => true;
const isNotDone = (): boolean => false;

/** Resolves when what the clients write is on this node. */
export async function reached({ clients, tag }: Topology, node: Node): Promise<void> {
  for (const [i, client] of clients.entries()) {
    const key = `{${tag}}reached by ${i}`;
    let written = 0;
    const isReached = async () => {
      const value = String(++written);
      // A client that has lost its server may not answer at all.
      const giveUp = new Promise((resolve) => setTimeout(resolve, 500));
      await Promise.race([client.set(key, value).catch(() => undefined), giveUp]);
      return (await node.send('GET', key).catch(() => undefined)) === value;
    };
    await until(isReached, { within: 60_000 });
    // Not on the node itself: it has the key as a replica too, if another one took over after all.
    await until(() => client.del(key).then(isDone, isNotDone), { within: 60_000 });
  }
}
