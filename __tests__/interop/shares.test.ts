import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, expect, it } from '@jest/globals';
import Table from 'cli-table3';
import { createClient } from 'redis';
import { freePort } from '../../scripts/free-port';
import { type RedisServer, startRedis } from '../../scripts/redis';
import { type ClusterServers, startCluster } from '../support/cluster';
import { machineDelay } from '../support/machine-delay';
import type { Outcome } from './compete';
import { RIVALS, type RivalKind } from './kinds';
import { Peer } from './peer';

/** Who competes, and where. */
interface Scene {
  readonly processes: number;
  /** Callers of each Node process, and threads of the one Java process. */
  readonly node: number;
  readonly java: number;
  /** ms for which each turn has the lock. */
  readonly work: number;
  /** ms that a competition takes, and after which those that poll have been noticed. */
  readonly observed: number;
  readonly settled: number;
  readonly isCluster: boolean;
}

/** With work so long that the lock is hardly ever free. */
const SATURATED: Scene = {
  processes: 1,
  node: 10,
  java: 4,
  work: 20,
  observed: 14_000,
  settled: 7_000,
  isCluster: false,
};
/** With one caller, a lock is free for a moment between two turns, and there is no hand-over that could be left out. */
const SINGLE: Scene = { ...SATURATED, node: 1, java: 1 };
/** Two processes that react faster to each other's releases than Java does. */
const QUICK: Scene = { ...SATURATED, processes: 2, node: 2, work: 1, observed: 6_000, settled: 2_000 };

/** Those that poll, and publish no releases. */
const POLLING: readonly string[] = ['spring-spin', 'redisson-spin'];

interface Competition {
  readonly kind: RivalKind;
  readonly scene: Scene;
}

const COMPETITIONS: readonly Competition[] = [
  ...RIVALS.map((kind) => ({ kind, scene: SATURATED })),
  ...RIVALS.filter(({ rival }) => POLLING.includes(rival)).map((kind) => ({ kind, scene: SINGLE })),
];

/** Beside those that listen, as Node's callers do. */
const QUICK_COMPETITIONS: readonly Competition[] = [false, true].flatMap((isCluster) =>
  RIVALS.filter(({ rival }) => !POLLING.includes(rival)).map((kind) => ({ kind, scene: { ...QUICK, isCluster } })),
);

/** ms; ttl of all leases. */
const TTL = 60_000;

/** ms for which only Node waits, while its requests are counted. */
const WAITING = 3_000;

/** No side has a smaller share, or is without a turn for longer. A busy machine may add to the wait, as each turn takes longer. */
const LEAST_SHARE = 0.1;
const LONGEST_WAIT = 6_000;
const SLACK = 4_000;

/** Competitions at a time: their callers sleep most of the time. */
const AT_A_TIME = 3;

interface Row extends RivalKind {
  readonly scene: Scene;
  readonly node: Outcome;
  readonly java: Outcome;
  /** A second, while the lock is held by another. */
  readonly requests: number;
}

let server: RedisServer;
let cluster: ClusterServers;
let port: number;
const rows: Row[] = [];

beforeAll(async () => {
  port = await freePort();
  server = await startRedis({ port });
  cluster = await startCluster();
});

afterAll(async () => {
  await Promise.all([server.stop(), cluster.stop()]);
  print();
});

/** Scripts a second that a Node process sends whose caller waits for a lock of this name. */
async function requestsWhileWaiting(node: Peer, key: string, registryKey: string | undefined): Promise<number> {
  const connect = () => createClient({ socket: { host: '127.0.0.1', port } }).connect();
  const [admin, listener] = await Promise.all([connect(), connect()]);
  const name = registryKey === undefined ? key : `${registryKey}:${key}`;
  await (registryKey === undefined ? admin.hSet(name, 'another:1', '1') : admin.set(name, 'another'));
  await admin.pExpire(name, TTL);
  let sent = 0;
  await listener.monitor((line) => {
    if (/"evalsha?" .*/i.test(String(line)) && !String(line).includes(' lua]') && String(line).includes(name)) sent++;
  });
  await node.ask('a', TTL, 'tryLock', key, WAITING);
  admin.destroy();
  listener.destroy();
  return sent / (WAITING / 1_000);
}

function isWithinBounds({ node, java }: Row): boolean {
  const shares = [node, java].map(({ turns }) => turns / (node.turns + java.turns));
  const longest = Math.max(node.longestWait, java.longestWait);
  return Math.min(...shares) >= LEAST_SHARE && longest <= LONGEST_WAIT + SLACK + machineDelay();
}

async function competition({ kind, scene }: Competition): Promise<Row> {
  const { ours, rival, isPrefixed } = kind;
  const { processes, isCluster, work, settled, observed } = scene;
  const registryKey = `shares-${randomUUID()}`;
  const key = `key-${randomUUID()}`;
  const at = isCluster ? { cluster: cluster.masters.map(({ address }) => address.port) } : port;
  const [java, ...nodes] = await Promise.all([
    Peer.start('Java', rival, at, registryKey),
    ...Array.from({ length: processes }, () => Peer.start('Node', rival, at, registryKey, ours)),
  ]);
  try {
    // So that both are connected, and the JVM is warm.
    await Promise.all([java, ...nodes].map((peer) => peer.ask('a', TTL, 'compete', `warm-${key}`, 2, 1, 0, 500)));
    const [ofJava, ...ofNodes] = await Promise.all([
      competeAs(java, scene.java),
      ...nodes.map((node) => competeAs(node, scene.node)),
    ]);
    const [first] = nodes as [Peer];
    // Only of one server are the requests watched.
    const name = isPrefixed ? registryKey : undefined;
    const requests = isCluster ? 0 : await requestsWhileWaiting(first, `${key}-held`, name);
    return { ...kind, scene, node: together(ofNodes), java: ofJava, requests };
  } finally {
    await Promise.all([java, ...nodes].map((peer) => peer.kill()));
  }

  async function competeAs(peer: Peer, callers: number): Promise<Outcome> {
    const outcome = await peer.ask('a', TTL, 'compete', key, callers, work, settled, observed);
    const [turns = 0, longestWait = 0, longestSettled = 0, longestOfCaller = 0, violations = 0] = outcome
      .split(',')
      .map(Number);
    return { turns, longestWait, longestSettled, longestOfCaller, violations };
  }
}

/** The outcome of several processes of a side. No wait of the side is longer than the shortest of theirs. */
function together(outcomes: readonly Outcome[]): Outcome {
  const of = (name: keyof Outcome) => outcomes.map((outcome) => outcome[name]);
  const sum = (name: keyof Outcome) => of(name).reduce((total, one) => total + one, 0);
  return {
    turns: sum('turns'),
    longestWait: Math.min(...of('longestWait')),
    longestSettled: Math.min(...of('longestSettled')),
    longestOfCaller: Math.max(...of('longestOfCaller')),
    violations: sum('violations'),
  };
}

async function run(competitions: readonly Competition[], atATime: number): Promise<void> {
  const left = [...competitions];
  const done: Row[] = [];
  const inTurn = async () => {
    for (let next = left.shift(); next !== undefined; next = left.shift()) {
      const row = await competition(next);
      // A JVM that is stopped by a busy machine for longer than a pause does not get its turn: once more.
      done.push(isWithinBounds(row) ? row : await competition(next));
    }
  };
  await Promise.all(Array.from({ length: atATime }, inTurn));
  rows.push(...done);
  for (const row of done) {
    expect({ ...row, violations: row.node.violations + row.java.violations }).toMatchObject({ violations: 0 });
    expect({ ...row, isWithinBounds: isWithinBounds(row) }).toMatchObject({ isWithinBounds: true });
  }
}

it('both sides have their share, and neither is without a turn for long', async () => {
  await run(COMPETITIONS, AT_A_TIME);
}, 420_000);

it('Java has its share beside two quick processes, on a server and on a cluster', async () => {
  await run(QUICK_COMPETITIONS, 1);
}, 420_000);

function print(): void {
  const table = new Table({
    head: [
      'Node',
      'Java',
      'callers',
      'on',
      'share of Node',
      'longest wait: Node',
      'later',
      'of any caller',
      'Java',
      'later',
      'of any thread',
      'requests/s while waiting',
    ],
    style: { head: [], border: [] },
  });
  const seconds = (ms: number) => `${(ms / 1_000).toFixed(1)} s`;
  for (const { ours, rival, scene, node, java, requests } of rows) {
    const share = `${((100 * node.turns) / (node.turns + java.turns)).toFixed(0)} %`;
    const waits = [node, java].flatMap(({ longestWait, longestSettled, longestOfCaller }) =>
      [longestWait, longestSettled, longestOfCaller].map(seconds),
    );
    const callers = `${scene.processes > 1 ? `${scene.processes} x ` : ''}${scene.node}, ${scene.java}`;
    const where = scene.isCluster ? 'a cluster' : 'a server';
    table.push([ours, rival, callers, where, share, ...waits, scene.isCluster ? '' : requests.toFixed(1)]);
  }
  process.stdout.write(`${table}\n`);
}
