import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createSentinel } from 'redis';
import { spawnGuarded } from '../../scripts/guarded-process';
import { startRedis } from '../../scripts/redis';
import { findRedisBinary } from '../../scripts/redis-binary';
import { freePort } from './free-port';
import { until } from './until';

export type TestSentinel = ReturnType<typeof newSentinel>;

const NAME = 'locks';

/** Maps `host:port` of a node to the address of a proxy in front of it. */
export type NodeAddresses = Record<string, { host: string; port: number }>;

function newSentinel(port: number, nodeAddressMap: NodeAddresses = {}) {
  const sentinel = createSentinel({ name: NAME, sentinelRootNodes: [{ host: '127.0.0.1', port }], nodeAddressMap });
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
  readonly master: { host: string; port: number };
  connect(addresses?: NodeAddresses): Promise<TestSentinel>;
  stop(): Promise<void>;
}

/** Starts one master and one sentinel. */
export async function startSentinel(): Promise<SentinelServers> {
  const [masterPort, port] = [await freePort(), await freePort()];
  const master = { host: '127.0.0.1', port: masterPort };
  const server = await startRedis({ port: masterPort });
  const dir = await mkdtemp(join(tmpdir(), 'sentinel-'));
  const settings = join(dir, 'sentinel.conf'); // a sentinel requires a file, which it rewrites
  await writeFile(
    settings,
    `port ${port}\nbind 127.0.0.1\ndir ${dir}\nsentinel monitor ${NAME} 127.0.0.1 ${masterPort} 1\n`,
  );
  const watcher = await spawnGuarded(findRedisBinary() as string, [settings, '--sentinel']);
  return {
    master,
    async connect(addresses) {
      const sentinel = newSentinel(port, addresses);
      await until(() => isListening(port), { within: 10_000 });
      await sentinel.connect();
      return sentinel;
    },
    async stop() {
      await watcher.stop();
      await server.stop();
      await rm(dir, { recursive: true, force: true });
    },
  };
}
