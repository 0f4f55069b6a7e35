import { randomUUID } from 'node:crypto';
import { expect } from '@jest/globals';
import Table from 'cli-table3';
import { createClient } from 'redis';
import { machineDelay } from '../support/machine-delay';
import type { Outcome } from './compete';
import type { RivalKind } from './kinds';
import { type At, Peer } from './peer';

/** Who competes, and where. */
export interface Scene {
  readonly processes: number;
  /** Callers of each Node process, and threads of the one Java process. */
  readonly node: number;
  readonly java: number;
  /** ms for which each turn has the lock. */
  readonly work: number;
  /** ms that a competition takes. */
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

/** No side has a smaller share, or is without a turn for longer. A busy machine may add to the wait, as each turn takes longer. */
const LEAST_SHARE = 0.1;
const LONGEST_WAIT = 6_000;
const SLACK = 4_000;

interface Row extends RivalKind {
  readonly scene: Scene;
  readonly at: At;
  readonly node: Outcome;
  readonly java: Outcome;
  /** A second, while the lock is held by another. Of one server only. */
  readonly requests: number | undefined;
}

/** Scripts a second that a Node process sends whose caller waits for a lock of this name. */
async function requestsWhileWaiting(
  node: Peer,
  port: number,
  key: string,
  registryKey: string | undefined,
): Promise<number> {
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

async function hold({ kind, scene }: Competition, at: At): Promise<Row> {
  const { ours, rival, isPrefixed } = kind;
  const { processes, work, observed } = scene;
  const registryKey = `shares-${randomUUID()}`;
  const key = `key-${randomUUID()}`;
  const [java, ...nodes] = await Promise.all([
    Peer.start('Java', rival, at, registryKey),
    ...Array.from({ length: processes }, () => Peer.start('Node', rival, at, registryKey, ours)),
  ]);
  try {
    // So that both are connected, and the JVM is warm.
    await Promise.all([java, ...nodes].map((peer) => peer.ask('a', TTL, 'compete', `warm-${key}`, 2, 1, 500)));
    const [ofJava, ...ofNodes] = await Promise.all([
      competeAs(java, scene.java),
      ...nodes.map((node) => competeAs(node, scene.node)),
    ]);
    const [first] = nodes as [Peer];
    const name = isPrefixed ? registryKey : undefined;
    const requests = typeof at === 'number' ? await requestsWhileWaiting(first, at, `${key}-held`, name) : undefined;
    return { ...kind, scene, at, node: together(ofNodes), java: ofJava, requests };
  } finally {
    await Promise.all([java, ...nodes].map((peer) => peer.kill()));
  }

  async function competeAs(peer: Peer, callers: number): Promise<Outcome> {
    const outcome = await peer.ask('a', TTL, 'compete', key, callers, work, observed);
    const [turns = 0, longestWait = 0, violations = 0] = outcome.split(',').map(Number);
    return { turns, longestWait, violations };
  }
}

/** The outcome of several processes of a side. No wait of the side is longer than the shortest of theirs. */
function together(outcomes: readonly Outcome[]): Outcome {
  const of = (name: keyof Outcome) => outcomes.map((outcome) => outcome[name]);
  const sum = (name: keyof Outcome) => of(name).reduce((total, one) => total + one, 0);
  return {
    turns: sum('turns'),
    longestWait: Math.min(...of('longestWait')),
    violations: sum('violations'),
  };
}

/** Holds them, so many at a time, and asserts that each is within the bounds. */
export async function holdAll(competitions: readonly Competition[], at: At, atATime: number): Promise<void> {
  const left = [...competitions];
  const rows: Row[] = [];
  const inTurn = async () => {
    for (let next = left.shift(); next !== undefined; next = left.shift()) {
      const row = await hold(next, at);
      // A JVM that is stopped by a busy machine for longer than a pause does not get its turn: once more.
      rows.push(isWithinBounds(row) ? row : await hold(next, at));
    }
  };
  await Promise.all(Array.from({ length: atATime }, inTurn));
  print(rows);
  for (const row of rows) {
    expect({ ...row, violations: row.node.violations + row.java.violations }).toMatchObject({ violations: 0 });
    expect({ ...row, isWithinBounds: isWithinBounds(row) }).toMatchObject({ isWithinBounds: true });
  }
}

function print(rows: readonly Row[]): void {
  const table = new Table({
    head: ['Node', 'Java', 'callers', 'on', 'share of Node', 'longest wait: Node', 'Java', 'requests/s while waiting'],
    style: { head: [], border: [] },
  });
  const seconds = (ms: number) => `${(ms / 1_000).toFixed(1)} s`;
  for (const { ours, rival, scene, at, node, java, requests } of rows) {
    const share = `${((100 * node.turns) / (node.turns + java.turns)).toFixed(0)} %`;
    const waits = [node, java].map(({ longestWait }) => seconds(longestWait));
    const callers = `${scene.processes > 1 ? `${scene.processes} x ` : ''}${scene.node}, ${scene.java}`;
    const where = typeof at === 'number' ? 'a server' : 'a cluster';
    table.push([ours, rival, callers, where, share, ...waits, requests?.toFixed(1) ?? '']);
  }
  process.stdout.write(`${table}\n`);
}
