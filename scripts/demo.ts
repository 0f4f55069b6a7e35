/**
 * The story of the oversold stock, `npm run demo`: several worker processes sell from one stock, first without a lock,
 * then with one. Nothing needs to be installed: an embedded server is started unless REDIS_URL names a real one.
 *
 * Exit code: 0 when the books are right with the lock; 1 when they are not, or a worker died; 2 when there is no Redis.
 */

import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { Crew } from './demo/crew';
import { type DemoRedis, openRedis, RedisUnreachableError } from './demo/redis';
import { count, oversold, type Result, resultTable, StockBar } from './demo/report';
import { type ScenarioName, scenarios } from './demo/scenarios';
import { Stock } from './demo/stock';

const PIECES = 1_000;
const WORKERS = 4;
const CLOSING_TIME = 5_000; // ms; no new orders after it, so that a slow Redis cannot make a run long
const KEY_PREFIX = `lock-demo:${randomUUID()}`; // two demos on one Redis do not share a stock
const CHAPTERS: readonly ScenarioName[] = ['unlocked', 'locked'];

async function main(): Promise<number> {
  const interrupted = Promise.race(['SIGINT', 'SIGTERM'].map((signal) => once(process, signal)));
  const redis = await openRedis();
  const crew = new Crew(WORKERS, redis.url, KEY_PREFIX);
  try {
    return await Promise.race([tellStory(redis, crew), interrupted.then(() => 130)]);
  } finally {
    crew.dismiss();
    await redis.stop();
  }
}

async function tellStory(redis: DemoRedis, crew: Crew): Promise<number> {
  console.log(`${WORKERS} worker processes sell ${count(PIECES)} pieces from one stock, in ${redis.name}.`);
  console.log('Each order reads the stock, works for a moment, and writes back one piece less.\n');
  await crew.ready();

  const results: Result[] = [];
  for (const name of CHAPTERS) {
    results.push(await sellOut(name, crew, new Stock(redis.client, `${KEY_PREFIX}:stock:${name}`)));
  }

  console.log(`\n${resultTable(results)}\n`);
  for (const result of results) console.log(verdict(result));
  return results.every((result) => oversold(result) === 0 || !scenarios[result.name].exact) ? 0 : 1;
}

async function sellOut(name: ScenarioName, crew: Crew, stock: Stock): Promise<Result> {
  await stock.fill(PIECES);
  const bar = new StockBar(scenarios[name].title, PIECES);
  const draw = async () => bar.show(await stock.left(), crew.sold);
  const timer = setInterval(() => draw().catch(() => {}), 100); // that Redis is gone is told by the workers
  try {
    const start = performance.now();
    await crew.sell({ scenario: name, stockKey: stock.key, closingTime: CLOSING_TIME });
    const ms = performance.now() - start;
    await draw();
    return { name, pieces: PIECES, left: await stock.left(), soldByWorker: [...crew.soldByWorker], ms };
  } finally {
    clearInterval(timer);
    bar.stop();
  }
}

function verdict(result: Result): string {
  const { title } = scenarios[result.name];
  const excess = oversold(result);
  if (excess > 0) return `${title}: ${count(excess)} orders were sold for which there was no piece.`;
  if (excess < 0) return `${title}: ${count(-excess)} pieces left the stock without an order.`;
  return `${title}: every order got its piece.`;
}

main().then(
  (code) => {
    process.exitCode = code;
  },
  (error: Error) => {
    console.error(error.message);
    process.exitCode = error instanceof RedisUnreachableError ? 2 : 1;
  },
);
