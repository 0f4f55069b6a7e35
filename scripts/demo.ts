/**
 * `npm run demo`: several worker processes sell from one stock, first without a lock, then with one. Without the lock
 * they sell more than there is. It uses the Redis that REDIS_URL names, else a private instance of the installed server,
 * else an embedded server, which is fetched on first use.
 *
 * Exit code: 0 when the totals are correct with the lock; 1 when they are not, or a worker died; 2 without a Redis.
 */

import { type DemoEnvironment, runDemo, WORKERS } from './demo/environment';
import { count, faults, type Result, resultTable, verdict } from './demo/report';
import { type ScenarioName, scenarios } from './demo/scenarios';

const PIECES = 1_000;
const CLOSING_TIME = 5_000; // ms; no new orders after it, so that a slow Redis cannot make a run long
const SCENARIOS: readonly ScenarioName[] = ['unlocked', 'locked'];

void runDemo(async (demo: DemoEnvironment) => {
  console.log(`${WORKERS} worker processes sell ${count(PIECES)} pieces from one stock, in ${demo.redis.name}.`);
  console.log('Each order reads the stock, works for a moment, and writes back one piece less.\n');
  await demo.workers.ready();

  const results: Result[] = [];
  for (const name of SCENARIOS) results.push(await demo.sell(name, PIECES, CLOSING_TIME));

  console.log(`\n${resultTable(results)}\n`);
  for (const result of results) console.log(verdict(result));
  return results.every((result) => !scenarios[result.name].exact || faults(result).length === 0);
});
