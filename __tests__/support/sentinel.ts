import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createSentinel } from 'redis';
import { freePort } from '../../support/free-port';
import { spawnGuarded } from '../../support/guarded-process';
import { findRedisBinary } from '../../support/redis-binary';
import { connectToNode, Node } from './node';
import { until } from './until';

export type TestSentinel = ReturnType<typeof newSentinel>;

const NAME = 'locks';

/** ms without an answer after which the sentinel takes the master for dead, by default. */
const DOWN_AFTER = 500;

/** Maps `host:port` of a node to the address of a proxy in front of it. */
export type NodeAddresses = Record<string, { host: string; port: number }>;

function newSentinel(port: number, nodeAddressMap: NodeAddresses = {}, masterPoolSize = 1) {
  const sentinelRootNodes = [{ host: '127.0.0.1', port }];
  const sentinel = createSentinel({ name: NAME, sentinelRootNodes, nodeAddressMap, masterPoolSize });
  sentinel.on('error', () => {});
  return sentinel;
}

function isListening(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1', () => {
      socket.destroy();
      resolve(true);
    });
    socket.on('error', () => resolve(false));
  });
}

export interface SentinelServers {
  /** The address of the sentinel, and the name that it has for the master. */
  readonly sentinel: { readonly host: string; readonly port: number };
  /** That of the sentinel, with `tls`. */
  readonly tlsPort: number | undefined;
  readonly name: string;
  /** The address of the first master. */
  readonly master: { readonly host: string; readonly port: number };
  /** The first master, then its replicas. */
  readonly nodes: readonly Node[];
  /** The port of the master that the sentinel names now. */
  masterPort(): Promise<number>;
  /** A graceful failover, to a replica of the sentinel's choice. */
  failover(): Promise<void>;
  connect(addresses?: NodeAddresses, masterPoolSize?: number): Promise<TestSentinel>;
  stop(): Promise<void>;
}

/** Starts one master with replicas, and one sentinel. `tls`: settings of both, which then speak TLS to clients too. */
export async function startSentinel({
  replicas = 0,
  downAfter = DOWN_AFTER,
  args = [] as readonly string[],
  tls = [] as readonly (readonly [name: string, value: string])[],
} = {}): Promise<SentinelServers> {
  const [tlsPort, tlsPortOfMaster] = tls.length > 0 ? [await freePort(), await freePort()] : [];
  const tlsOfMaster = tlsPortOfMaster === undefined ? [] : [['tls-port', String(tlsPortOfMaster)] as const, ...tls];
  const settingsOfAll = ['--repl-diskless-sync-delay', '0', ...args];
  const master = await Node.start(...settingsOfAll, ...tlsOfMaster.flatMap(([name, value]) => [`--${name}`, value]));
  const { host, port: masterPort } = master.address;
  const nodes = [master];
  for (let i = 0; i < replicas; i++) {
    nodes.push(await Node.start('--replicaof', host, String(masterPort), ...settingsOfAll));
  }
  await until(async () => String(await master.send('INFO', 'replication')).split('state=online').length > replicas);
  const port = await freePort();
  const dir = await mkdtemp(join(tmpdir(), 'sentinel-'));
  const settings = join(dir, 'sentinel.conf'); // a sentinel requires a file, which it rewrites
  const lines = [
    `port ${port}`,
    `bind ${host}`,
    `dir ${dir}`,
    ...(tlsPort === undefined ? [] : [`tls-port ${tlsPort}`, ...tls.map((setting) => setting.join(' '))]),
    `sentinel monitor ${NAME} ${host} ${tlsPortOfMaster ?? masterPort} 1`,
    `sentinel down-after-milliseconds ${NAME} ${downAfter}`,
    `sentinel failover-timeout ${NAME} 5000`,
  ];
  await writeFile(settings, `${lines.join('\n')}\n`);
  const watcher = await spawnGuarded(findRedisBinary() as string, [settings, '--sentinel']);
  await until(() => isListening(port), { within: 10_000 });
  const asking = await connectToNode({ host, port });
  const ask = (...args: string[]) => asking.sendCommand(['SENTINEL', ...args]) as Promise<unknown>;
  await until(async () => ((await ask('REPLICAS', NAME)) as unknown[]).length >= replicas, { within: 20_000 });
  return {
    sentinel: { host, port },
    tlsPort,
    name: NAME,
    master: master.address,
    nodes,
    async masterPort() {
      const [, named] = (await ask('GET-MASTER-ADDR-BY-NAME', NAME)) as [string, string];
      return Number(named);
    },
    async failover() {
      await ask('FAILOVER', NAME);
    },
    async connect(addresses, masterPoolSize) {
      const sentinel = newSentinel(port, addresses, masterPoolSize);
      await sentinel.connect();
      return sentinel;
    },
    async stop() {
      asking.destroy();
      await watcher.stop();
      await Promise.all(nodes.map((node) => node.stop()));
      await rm(dir, { recursive: true, force: true });
    },
  };
}
