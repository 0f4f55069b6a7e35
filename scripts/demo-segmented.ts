/**
 * `npm run demo:segmented`: an order takes 20 ms under its lock, so a single lock sells at most 50 pieces a second with
 * any number of processes. The same stock in 20 segments sells 20 pieces at a time.
 *
 * It uses the Redis that REDIS_URL names, else a private instance of the installed server (`npm run setup:redis`), else
 * the embedded server. That one is too slow to measure the rate with, so only the totals are checked then.
 *
 * Exit code: 0 when the stock is sold out, the totals are correct, and the segments sell at least 15 times as fast as
 * the single lock; 1 when not, or a worker died; 2 without a Redis.
 */

import { howToGetRedis } from '../support/redis-binary';
import { type DemoEnvironment, runDemo, WORKERS } from './demo/environment';
import { count, faults, rate, resultTable, sum, verdict } from './demo/report';
import { scenarios } from './demo/scenarios';

const PIECES = 1_000;
const SAMPLE = 5_000; // ms in which the rate of the single lock is measured: all the pieces would take more than 20 s
const CLOSING_TIME = 20_000; // ms
const AT_LEAST = 15;

async function compareRates(demo: DemoEnvironment): Promise<boolean> {
  const { redis, workers } = demo;
  const buyers = WORKERS * scenarios.segmented.buyers;
  console.log(`${WORKERS} worker processes with ${buyers} buyers sell from a stock of ${count(PIECES)} pieces,`);
  console.log(`in ${redis.name}. Each order works for 20 ms under its lock.\n`);
  await workers.ready();
  await demo.warmUp('segmented', PIECES, CLOSING_TIME);

  const oneLock = await demo.sell('oneLock', PIECES, SAMPLE);
  const segmented = await demo.sell('segmented', PIECES, CLOSING_TIME);

  const isSoldOut = sum(segmented.left) === 0;
  const ratio = rate(segmented) / rate(oneLock);
  console.log(`\n${resultTable([oneLock, segmented])}\n`);
  console.log(`${verdict(oneLock)} It was closed after ${SAMPLE / 1_000} s.`);
  console.log(`${verdict(segmented)} The stock was ${isSoldOut ? '' : 'not '}sold out.`);
  console.log(`The segments sold at ${ratio.toFixed(1)} times the rate of the single lock; the target is ${AT_LEAST}.`);
  if (redis.isEmbedded) console.log(`The embedded server limits this rate: it is no measurement. ${howToGetRedis}`);
  const isFast = ratio >= AT_LEAST || redis.isEmbedded;
  return isSoldOut && isFast && [oneLock, segmented].every((result) => faults(result).length === 0);
}

void runDemo(compareRates);
