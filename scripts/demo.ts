/**
 * `npm run demo`: several worker processes sell from one stock, first without a lock, then with one. Without the lock
 * they sell more than there is.
 *
 * `npm run demo:segmented`: an order takes 20 ms under its lock, so a single lock sells at most 50 pieces a second with
 * any number of processes. The same stock in 20 segments sells 20 pieces at a time.
 *
 * They use the Redis that REDIS_URL names, else a private instance of the installed server, else an embedded server, which
 * is fetched on first use. That one is too slow to measure a rate with.
 *
 * Exit code: 0 when the totals are correct with locks, and the segments sold all and fast; 1 when not, or a worker died;
 * 2 without a Redis; 130 when it was interrupted.
 */

import { type ChildProcess, fork } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import Table from 'cli-table3';
import { RedisLockRegistry } from '../lib';
import { howToGetRedis } from '../support/redis-binary';
import { connect, openServer, type Redis, type ScenarioName, type Server, scenarios } from './demo/shop';
import type { Job, Report } from './demo/worker';

const WORKERS = 4;
const PIECES = 1_000;
/** ms after closing time in which started orders may finish. */
const OVERTIME = 5_000;
/** How many times as fast as one lock the segments are to sell. */
const AT_LEAST = 15;

/** The totals of one run. */
interface Result {
  readonly title: string;
  readonly left: number;
  /** Orders each second. */
  readonly rate: number;
  readonly row: readonly string[];
  /** Empty when every order got its piece. */
  readonly faults: readonly string[];
}

const count = (value: number) => value.toLocaleString('en');
const sum = (numbers: readonly number[]) => numbers.reduce((total, number) => total + number, 0);

function resultOf(title: string, parts: readonly number[], reports: readonly Report[]): Result {
  const [soldByWorker, left] = [reports.map(({ sold }) => sold), sum(parts)];
  const ms = Math.max(...reports.map(({ lastSaleAt }) => lastSaleAt));
  const rate = sum(soldByWorker) / (ms / 1_000);
  const oversold = sum(soldByWorker) + left - PIECES;
  const below = parts.filter((pieces) => pieces < 0).length;
  const refused = sum(reports.map(({ refusedTooEarly }) => refusedTooEarly));
  const faults = [
    ...(oversold > 0 ? [`${count(oversold)} orders were sold for which there was no piece`] : []),
    ...(oversold < 0 ? [`${count(-oversold)} pieces left the stock without an order`] : []),
    ...(below > 0 ? [`${count(below)} part of the stock went below zero`] : []),
    ...(refused > 0 ? [`${count(refused)} orders were refused while a piece was left`] : []),
  ];
  const numbers = [PIECES, sum(soldByWorker), oversold, left].map(count);
  const speed = [`${(ms / 1_000).toFixed(1)} s`, count(Math.round(rate))];
  return { title, left, rate, faults, row: [title, ...numbers, ...speed, soldByWorker.map(count).join(' + ')] };
}

/** Sells until the stock is sold out, or `closingTime` ms are over. */
type Sell = (name: ScenarioName, closingTime: number) => Promise<Result>;

function shopOf(redis: Redis, registryKey: string, workers: readonly ChildProcess[]): Sell {
  const locks = new RedisLockRegistry(redis, { registryKey });
  return async (scenario, closingTime) => {
    const { title, open } = scenarios[scenario];
    const stockKey = `${registryKey}:stock:${scenario}`;
    const stock = open(redis, stockKey, locks);
    await stock.fill(PIECES);
    const late = sleep(closingTime + OVERTIME, undefined, { ref: false }).then(() => {
      throw new Error('The workers did not stop at closing time.');
    });
    const selling = workers.map(async (worker) => {
      worker.send({ scenario, stockKey, closingTime } satisfies Job, () => {}); // it died: that is reported
      const [report] = await once(worker, 'message');
      return report as Report;
    });
    const reports = await Promise.race([Promise.all(selling), late]);
    return resultOf(title, await stock.left(), reports);
  };
}

function print(results: readonly Result[]): void {
  const head = [
    '',
    'pieces\nin stock',
    'orders\nsold',
    'oversold\nby',
    'left in\nstock',
    'time',
    'orders/s',
    'sold per worker',
  ];
  const colAligns = head.map((_, i) => (i === 0 || i === head.length - 1 ? 'left' : 'right') as 'left' | 'right');
  const table = new Table({ head, colAligns, style: { head: [], border: [] } });
  for (const { row } of results) table.push([...row]);
  console.log(`\n${table}\n`);
  for (const { title, faults } of results)
    console.log(`${title}: ${faults.length > 0 ? faults.join('; ') : 'every order got its piece'}.`);
}

async function compareLocks(sell: Sell, server: Server): Promise<boolean> {
  console.log(`${WORKERS} worker processes sell ${count(PIECES)} pieces from one stock, in ${server.name}.`);
  console.log('Each order reads the stock, works for a moment, and writes back one piece less.');
  // No new orders after it, so that a slow Redis cannot make a run long.
  const [unlocked, locked] = [await sell('unlocked', 5_000), await sell('locked', 5_000)];
  print([unlocked, locked]);
  return locked.faults.length === 0;
}

async function compareRates(sell: Sell, server: Server): Promise<boolean> {
  const buyers = WORKERS * scenarios.segmented.buyers;
  console.log(`${WORKERS} worker processes with ${buyers} buyers sell from a stock of ${count(PIECES)} pieces,`);
  console.log(`in ${server.name}. Each order works for 20 ms under its lock.`);
  await sell('segmented', 20_000); // compiled code takes half the processor time
  // All the pieces would take one lock more than 20 s.
  const [oneLock, segmented] = [await sell('oneLock', 5_000), await sell('segmented', 20_000)];
  print([oneLock, segmented]);
  const isSoldOut = segmented.left === 0;
  const ratio = segmented.rate / oneLock.rate;
  console.log(`One lock was closed after 5 s. The segments were ${isSoldOut ? '' : 'not '}sold out.`);
  console.log(`The segments sold at ${ratio.toFixed(1)} times the rate of the single lock; the target is ${AT_LEAST}.`);
  if (server.isEmbedded) console.log(`The embedded server limits this rate: it is no measurement. ${howToGetRedis}`);
  const isFast = ratio >= AT_LEAST || server.isEmbedded === true;
  return isSoldOut && isFast && [oneLock, segmented].every(({ faults }) => faults.length === 0);
}

async function deathOf(worker: ChildProcess): Promise<never> {
  const [code, signal] = await once(worker, 'exit');
  throw new Error(`A worker died (${signal ?? `exit code ${code}`}). Its keys in Redis expire.`);
}

async function runOn(server: Server, redis: Redis): Promise<number> {
  const registryKey = `lock-demo:${randomUUID()}`; // two demos on one Redis do not share a stock
  // In the environment because the URL may contain a password, and arguments are public. fork() passes execArgv on, and
  // with it the TypeScript loader.
  const env = { ...process.env, DEMO_REDIS_URL: server.url, DEMO_REGISTRY_KEY: registryKey };
  const workers = Array.from({ length: WORKERS }, () => fork(join(__dirname, 'demo/worker.ts'), { env }));
  const died = Promise.race(workers.map(deathOf));
  died.catch(() => {}); // at the end nothing awaits it
  const interrupted = Promise.race(['SIGINT', 'SIGTERM'].map((signal) => once(process, signal)));
  const compare = process.argv[2] === 'segmented' ? compareRates : compareLocks;
  const demo = async () => {
    await Promise.all(workers.map((worker) => once(worker, 'message')));
    return (await compare(shopOf(redis, registryKey, workers), server)) ? 0 : 1;
  };
  try {
    return await Promise.race([demo(), died, interrupted.then(() => 130)]);
  } finally {
    for (const worker of workers) worker.kill();
  }
}

async function main(): Promise<number> {
  const server = await openServer();
  try {
    const redis = await connect(server.url).catch((error: NodeJS.ErrnoException) => {
      // Node reports a refused localhost as an AggregateError with a code and no message.
      console.error(`Cannot reach ${server.name}: ${error.message || error.code}`);
      return undefined;
    });
    if (redis === undefined) return 2;
    try {
      return await runOn(server, redis);
    } finally {
      redis.destroy();
    }
  } finally {
    await server.stop();
  }
}

main().then(
  (code) => {
    process.exitCode = code;
  },
  (error: Error) => {
    console.error(error.message);
    process.exitCode = 1;
  },
);
