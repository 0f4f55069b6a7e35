/** A worker process of the demo: a few buyers at a time, each placing order after order. */

import { RedisLockRegistry } from '../../lib';
import { connect } from './connection';
import { type Scenario, type ScenarioName, scenarios } from './scenarios';
import { Stock } from './stock';

/** What the demo sends. */
export interface Job {
  readonly scenario: ScenarioName;
  readonly stockKey: string;
  readonly closingTime: number; // ms from now
}

/** What a worker sends back: first when it is ready, then ten times a second, at last when the shop is closed. */
export interface Report {
  readonly sold: number;
  readonly closed: boolean;
}

const BUYERS = 3;

async function main(): Promise<void> {
  const { DEMO_REDIS_URL: url = '', DEMO_REGISTRY_KEY: registryKey = '' } = process.env;
  const redis = await connect(url);
  const locks = new RedisLockRegistry(redis, {
    registryKey,
    expireAfter: 10_000, // what a killed worker leaves is gone soon
    idleBetweenTries: 10, // an order takes 3 ms: at the default of 100, one worker would sell most of the stock
  });

  process.on('message', (job: Job) => {
    sell(scenarios[job.scenario], new Stock(redis, job.stockKey), locks, job.closingTime).catch(fail);
  });
  report({ sold: 0, closed: true });
}

async function sell(scenario: Scenario, stock: Stock, locks: RedisLockRegistry, closingTime: number): Promise<void> {
  const closing = performance.now() + closingTime;
  let sold = 0;
  const buyer = async () => {
    while (performance.now() < closing && (await scenario.order(stock, locks))) sold += 1;
  };
  const timer = setInterval(() => report({ sold, closed: false }), 100);
  await Promise.all(Array.from({ length: BUYERS }, buyer));
  clearInterval(timer);
  report({ sold, closed: true });
}

function report(message: Report): void {
  process.send?.(message);
}

function fail(error: Error): never {
  console.error(`worker ${process.pid}: ${error.message}`);
  process.exit(1);
}

process.on('disconnect', () => process.exit()); // never outlive the demo, however it ended
process.on('SIGINT', () => {}); // Ctrl-C reaches the whole process group: the demo decides what it means
main().catch(fail);
