import { randomUUID } from 'node:crypto';
import { expect } from '@jest/globals';
import Table from 'cli-table3';
import { createClient } from 'redis';
import { after, isWithinBounds, outcomeOf, ROUNDS, type Sides } from './bounds';
import type { Outcome } from './compete';
import type { RivalKind } from './kinds';
import { type At, Peer, REGISTRY_KEY } from './peer';

/** Who competes, and where. */
export interface Scene {
  readonly processes: number;
  /** Callers of each Node process, and threads of the one Java process. */
  readonly node: number;
  readonly java: number;
  /** ms for which each turn has the lock. */
  readonly work: number;
  /** ms that a round takes. */
  readonly observed: number;
}

/** With work so long that the lock is hardly ever free. */
export const SATURATED: Scene = { processes: 1, node: 10, java: 4, work: 20, observed: 14_000 };

/** Those that poll, and publish no releases. */
export const POLLING: readonly string[] = ['spring-spin', 'redisson-spin'];

export interface Competition {
  readonly kind: RivalKind;
  readonly scene: Scene;
}

/** ms; ttl of all leases. */
const TTL = 60_000;

/** ms for which only Node waits, while its requests are counted. */
const WAITING = 3_000;

interface Row extends Omit<RivalKind, 'rival'>, Sides {
  /** The lock of Java. */
  readonly lock: string;
  readonly scene: Scene;
  readonly at: At;
  /** A second, while the lock is held by another. Of one server only. */
  readonly requests: number | undefined;
}

/** Scripts a second that a Node process sends whose caller waits for a lock of this name. */
async function requestsWhileWaiting(node: Peer, port: number, key: string, kind: RivalKind): Promise<number> {
  const connect = () => createClient({ socket: { host: '127.0.0.1', port } }).connect();
  const [admin, listener] = await Promise.all([connect(), connect()]);
  const isSpring = kind.rival.startsWith('spring');
  const name = isSpring ? `${REGISTRY_KEY}:${key}` : key;
  await (isSpring ? admin.set(name, 'another') : admin.hSet(name, 'another:1', '1'));
  await admin.pExpire(name, TTL);
  let sent = 0;
  await listener.monitor((line) => {
    if (/"evalsha?" .*/i.test(String(line)) && !String(line).includes(' lua]') && String(line).includes(name)) sent++;
  });
  await node.ask(`${kind.rival}/${kind.ours}`, key, TTL, 'tryLock', key, WAITING);
  admin.destroy();
  listener.destroy();
  return sent / (WAITING / 1_000);
}

async function hold({ kind, scene }: Competition, at: At, java: Peer, nodes: readonly Peer[]): Promise<Row> {
  const { ours, rival } = kind;
  const key = `key-${randomUUID()}`;
  const sides = [
    { peers: [java], lock: rival, callers: scene.java },
    { peers: nodes.slice(0, scene.processes), lock: `${rival}/${ours}`, callers: scene.node },
  ] as const;
  const compete = async (of: string, ms: number, limit: { callers?: number; work?: number } = {}) =>
    Promise.all(
      sides.map(async ({ peers, lock, callers }) => {
        const { callers: most = callers, work = scene.work } = limit;
        const asked = peers.map((peer) => peer.ask(lock, key, TTL, 'compete', of, most, work, ms));
        return together((await Promise.all(asked)).map(outcomeOf));
      }),
    ) as Promise<[Outcome, Outcome]>;
  // So that both are connected, and the JVM is warm.
  await compete(`warm-${key}`, 500, { callers: 2, work: 1 });
  let row: Row | undefined;
  for (let round = 0; round < ROUNDS && !(row && isWithinBounds(row)); round++) {
    const [ofJava, ofNode] = await compete(key, scene.observed);
    const sides = { node: after(row?.node, ofNode), rival: after(row?.rival, ofJava) };
    row = { ours, lock: rival, scene, at, ...sides, requests: undefined };
  }
  const requests =
    typeof at === 'number' ? await requestsWhileWaiting(nodes[0] as Peer, at, `${key}-held`, kind) : undefined;
  return { ...(row as Row), requests };
}

/** The outcome of several processes of a side. No wait of the side is longer than the shortest of theirs. */
function together(outcomes: readonly Outcome[]): Outcome {
  const of = (name: keyof Outcome) => outcomes.map((outcome) => outcome[name]);
  const sum = (name: keyof Outcome) => of(name).reduce((total, one) => total + one, 0);
  return { turns: sum('turns'), longestWait: Math.min(...of('longestWait')), violations: sum('violations') };
}

/** Holds them, so many at a time, and asserts that each is within the bounds. */
export async function holdAll(competitions: readonly Competition[], at: At, atATime: number): Promise<void> {
  const left = [...competitions];
  const processes = Math.max(...competitions.map(({ scene }) => scene.processes));
  const [java, ...nodes] = await Promise.all([
    Peer.start('Java', at),
    ...Array.from({ length: processes }, () => Peer.start('Node', at)),
  ]);
  const rows: Row[] = [];
  const inTurn = async () => {
    for (let next = left.shift(); next !== undefined; next = left.shift()) {
      rows.push(await hold(next, at, java, nodes));
    }
  };
  try {
    await Promise.all(Array.from({ length: atATime }, inTurn));
  } finally {
    await Promise.all([java, ...nodes].map((peer) => peer.kill()));
  }
  print(rows);
  for (const row of rows) {
    expect({ ...row, violations: row.node.violations + row.rival.violations }).toMatchObject({ violations: 0 });
    expect({ ...row, isWithinBounds: isWithinBounds(row) }).toMatchObject({ isWithinBounds: true });
  }
}

function print(rows: readonly Row[]): void {
  const table = new Table({
    head: ['Node', 'Java', 'callers', 'on', 'share of Node', 'longest wait: Node', 'Java', 'requests/s while waiting'],
    style: { head: [], border: [] },
  });
  const seconds = (ms: number) => `${(ms / 1_000).toFixed(1)} s`;
  for (const { ours, lock, scene, at, node, rival, requests } of rows) {
    const share = `${((100 * node.turns) / (node.turns + rival.turns)).toFixed(0)} %`;
    const waits = [node, rival].map(({ longestWait }) => seconds(longestWait));
    const callers = `${scene.processes > 1 ? `${scene.processes} x ` : ''}${scene.node}, ${scene.java}`;
    const where = typeof at === 'number' ? 'a server' : 'a cluster';
    table.push([ours, lock, callers, where, share, ...waits, requests?.toFixed(1) ?? '']);
  }
  process.stdout.write(`${table}\n`);
}
