import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, expect, it } from '@jest/globals';
import Table from 'cli-table3';
import { createClient } from 'redis';
import { freePort } from '../../support/free-port';
import { type RedisServer, startRedis } from '../../support/redis';
import { machineDelay } from '../support/machine-delay';
import type { Outcome } from './compete';
import { RIVALS, type RivalKind } from './kinds';
import { Peer } from './peer';

/** Of both sides; so long that the lock is hardly ever free. */
const WORK = 20;

/** Callers on each side. */
interface Callers {
  readonly node: number;
  readonly java: number;
}

const SATURATED: Callers = { node: 10, java: 4 };
/** With one caller, a lock is free for a moment between two turns, and there is no hand-over that could be left out. */
const SINGLE: Callers = { node: 1, java: 1 };

/** Those that poll, and publish no releases. */
const POLLING: readonly string[] = ['spring-spin', 'redisson-spin'];

const COMPETITIONS = [
  ...RIVALS.map((kind) => ({ kind, callers: SATURATED })),
  ...RIVALS.filter(({ rival }) => POLLING.includes(rival)).map((kind) => ({ kind, callers: SINGLE })),
];

/** ms; ttl of all leases. */
const TTL = 60_000;

/** ms that a competition takes, and after which those that poll have been noticed. */
const OBSERVED = 14_000;
const SETTLED = 7_000;

/** ms for which only Node waits, while its requests are counted. */
const WAITING = 3_000;

/** No side has a smaller share, or is without a turn for longer. A busy machine may add to the wait, as each turn takes longer. */
const LEAST_SHARE = 0.1;
const LONGEST_WAIT = 6_000;
const SLACK = 4_000;

/** Competitions at a time: their callers sleep most of the time. */
const AT_A_TIME = 3;

interface Row {
  readonly ours: string;
  readonly rival: string;
  readonly callers: Callers;
  readonly node: Outcome;
  readonly java: Outcome;
  /** A second, while the lock is held by another. */
  readonly requests: number;
}

let server: RedisServer;
let port: number;
const rows: Row[] = [];

beforeAll(async () => {
  port = await freePort();
  server = await startRedis({ port });
});

afterAll(async () => {
  await server.stop();
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

async function competition({ kind, callers }: { kind: RivalKind; callers: Callers }): Promise<Row> {
  const { ours, rival, isPrefixed } = kind;
  const registryKey = `shares-${randomUUID()}`;
  const key = `key-${randomUUID()}`;
  const [node, java] = await Promise.all([
    Peer.start('Node', rival, port, registryKey, ours),
    Peer.start('Java', rival, port, registryKey),
  ]);
  try {
    // So that both are connected, and the JVM is warm.
    await Promise.all([node, java].map((peer) => peer.ask('a', TTL, 'compete', `warm-${key}`, 2, 1, 0, 500)));
    const outcomes = await Promise.all([
      node.ask('a', TTL, 'compete', key, callers.node, WORK, SETTLED, OBSERVED),
      java.ask('a', TTL, 'compete', key, callers.java, WORK, SETTLED, OBSERVED),
    ]);
    const [ofNode, ofJava] = outcomes.map((outcome) => {
      const numbers = outcome.split(',').map(Number);
      const [turns = 0, longestWait = 0, longestSettled = 0, longestOfCaller = 0, violations = 0] = numbers;
      return { turns, longestWait, longestSettled, longestOfCaller, violations };
    }) as [Outcome, Outcome];
    const requests = await requestsWhileWaiting(node, `${key}-held`, isPrefixed ? registryKey : undefined);
    return { ours, rival, callers, node: ofNode, java: ofJava, requests };
  } finally {
    await Promise.all([node.kill(), java.kill()]);
  }
}

it('both sides have their share, and neither is without a turn for long', async () => {
  const left = [...COMPETITIONS];
  const inTurn = async () => {
    for (let next = left.shift(); next !== undefined; next = left.shift()) {
      const row = await competition(next);
      // A JVM that is stopped by a busy machine for longer than a pause does not get its turn: once more.
      rows.push(isWithinBounds(row) ? row : await competition(next));
    }
  };
  await Promise.all(Array.from({ length: AT_A_TIME }, inTurn));
  for (const row of rows) {
    expect({ ...row, violations: row.node.violations + row.java.violations }).toMatchObject({ violations: 0 });
    expect({ ...row, isWithinBounds: isWithinBounds(row) }).toMatchObject({ isWithinBounds: true });
  }
}, 420_000);

function print(): void {
  const table = new Table({
    head: [
      'Node',
      'Java',
      'callers',
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
  for (const { ours, rival, callers, node, java, requests } of rows) {
    const share = `${((100 * node.turns) / (node.turns + java.turns)).toFixed(0)} %`;
    const waits = [node, java].flatMap(({ longestWait, longestSettled, longestOfCaller }) =>
      [longestWait, longestSettled, longestOfCaller].map(seconds),
    );
    table.push([ours, rival, `${callers.node}, ${callers.java}`, share, ...waits, requests.toFixed(1)]);
  }
  process.stdout.write(`${table}\n`);
}
