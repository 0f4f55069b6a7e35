/**
 * The story of the oversold stock, `npm run demo`: several worker processes sell from one stock, first without a lock,
 * then with one. Nothing needs to be installed: an embedded server is started unless REDIS_URL names a real one.
 *
 * Exit code: 0 when the books are right with the lock; 1 when they are not, or a worker died; 2 when there is no Redis.
 */

import { count, faults, type Result, resultTable, verdict } from './demo/report';
import { type ScenarioName, scenarios } from './demo/scenarios';
import { perform, type Stage, WORKERS } from './demo/stage';

const PIECES = 1_000;
const CLOSING_TIME = 5_000; // ms; no new orders after it, so that a slow Redis cannot make a run long
const CHAPTERS: readonly ScenarioName[] = ['unlocked', 'locked'];

void perform(async (stage: Stage) => {
  console.log(`${WORKERS} worker processes sell ${count(PIECES)} pieces from one stock, in ${stage.redis.name}.`);
  console.log('Each order reads the stock, works for a moment, and writes back one piece less.\n');
  await stage.crew.ready();

  const results: Result[] = [];
  for (const name of CHAPTERS) results.push(await stage.sell(name, PIECES, CLOSING_TIME));

  console.log(`\n${resultTable(results)}\n`);
  for (const result of results) console.log(verdict(result));
  return results.every((result) => !scenarios[result.name].exact || faults(result).length === 0);
});
