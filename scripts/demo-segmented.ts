/**
 * The story of the hot stock, `npm run demo:segmented`: an order takes 20 ms under its lock, so a single lock sells at
 * most 50 pieces a second, however many processes there are. The same stock in 20 segments sells 20 pieces at a time.
 *
 * It runs against the Redis that REDIS_URL names, else a private instance of the one that is installed (`npm run
 * setup:redis`), else the embedded server, which is too slow to measure the rate with: then the books alone decide.
 *
 * Exit code: 0 when the stock is sold out, the books are right, and the segments sell at 15 times the rate of the single
 * lock or more; 1 when not, or a worker died; 2 when there is no Redis.
 */

import { count, faults, rate, resultTable, sum, verdict } from './demo/report';
import { scenarios } from './demo/scenarios';
import { perform, type Stage, WORKERS } from './demo/stage';
import { howToGetRedis } from './redis-binary';

const PIECES = 1_000;
const SAMPLE = 5_000; // ms in which the single lock shows its rate: for all the pieces it would take more than 20 s
const CLOSING_TIME = 20_000; // ms
const AT_LEAST = 15;

async function tellStory(stage: Stage): Promise<boolean> {
  const { redis, crew } = stage;
  const buyers = WORKERS * scenarios.segmented.buyers;
  console.log(`${WORKERS} worker processes with ${buyers} buyers sell from a stock of ${count(PIECES)} pieces,`);
  console.log(`in ${redis.name}. Each order works for 20 ms under its lock.\n`);
  await crew.ready();
  await stage.rehearse('segmented', PIECES, CLOSING_TIME);

  const oneLock = await stage.sell('oneLock', PIECES, SAMPLE);
  const segmented = await stage.sell('segmented', PIECES, CLOSING_TIME);

  const isSoldOut = sum(segmented.left) === 0;
  const ratio = rate(segmented) / rate(oneLock);
  console.log(`\n${resultTable([oneLock, segmented])}\n`);
  console.log(`${verdict(oneLock)} It was closed after ${SAMPLE / 1_000} s.`);
  console.log(`${verdict(segmented)} The stock was ${isSoldOut ? '' : 'not '}sold out.`);
  console.log(
    `The segments sold at ${ratio.toFixed(1)} times the rate of the single lock; ${AT_LEAST} times is asked for.`,
  );
  if (redis.isEmbedded) console.log(`The embedded server is what limits it: this is no measure. ${howToGetRedis}`);
  const isFast = ratio >= AT_LEAST || redis.isEmbedded;
  return isSoldOut && isFast && [oneLock, segmented].every((result) => faults(result).length === 0);
}

void perform(tellStory, { fast: true });
