/** A worker process of the demos: a few buyers at a time, each placing order after order. */

import { RedisLockRegistry } from '../../lib';
import { connect } from './connection';
import { type Scenario, type ScenarioName, scenarios } from './scenarios';
import type { Stock } from './stock';

/** What the demo sends. */
export interface Job {
  readonly scenario: ScenarioName;
  readonly stockKey: string;
  readonly closingTime: number; // ms from now
}

/** What a worker sends back: first when it is ready, then ten times a second, at last when the shop is closed. */
export interface Report {
  readonly sold: number;
  readonly lastSaleAt: number; // ms from the job on
  readonly refusedTooEarly: number; // orders that were refused although a piece was left
  readonly closed: boolean;
}

async function main(): Promise<void> {
  const { DEMO_REDIS_URL: url = '', DEMO_REGISTRY_KEY: registryKey = '' } = process.env;
  const redis = await connect(url);
  const locks = new RedisLockRegistry(redis, {
    registryKey,
    expireAfter: 10_000, // what a killed worker leaves is gone soon
    idleBetweenTries: 10, // an order takes 3 ms: at the default of 100, one worker would sell most of the stock
  });

  process.on('message', ({ scenario, stockKey, closingTime }: Job) => {
    const { open, buyers }: Scenario = scenarios[scenario];
    sell(open(redis, stockKey, locks), buyers, closingTime).catch(fail);
  });
  report({ sold: 0, lastSaleAt: 0, refusedTooEarly: 0, closed: true });
}

async function sell(stock: Stock, buyers: number, closingTime: number): Promise<void> {
  const opening = performance.now();
  const books = { sold: 0, lastSaleAt: 0, refusedTooEarly: 0 };
  const buyer = async () => {
    while (performance.now() < opening + closingTime) {
      if (!(await stock.sellOne())) {
        if ((await stock.left()).some((pieces) => pieces > 0)) books.refusedTooEarly += 1;
        return;
      }
      books.sold += 1;
      books.lastSaleAt = performance.now() - opening;
    }
  };
  const timer = setInterval(() => report({ ...books, closed: false }), 100);
  await Promise.all(Array.from({ length: buyers }, buyer));
  clearInterval(timer);
  report({ ...books, closed: true });
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
