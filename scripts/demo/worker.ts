/** A worker process of the demos: concurrent buyers, each of which places one order after another. */

import { RedisLockRegistry } from '../../lib';
import { connect, type Scenario, type ScenarioName, scenarios } from './shop';

/** Message from the demo to a worker. */
export interface Job {
  readonly scenario: ScenarioName;
  readonly stockKey: string;
  readonly closingTime: number; // ms from now
}

/** Message from a worker, when it is ready and when it has closed. */
export interface Report {
  readonly sold: number;
  readonly lastSaleAt: number; // ms since the job began
  readonly refusedTooEarly: number; // orders that were refused although a piece was left
}

function report(message: Report): void {
  process.send?.(message);
}

function fail(error: Error): never {
  console.error(`worker ${process.pid}: ${error.message}`);
  process.exit(1);
}

async function main(): Promise<void> {
  const { DEMO_REDIS_URL: url = '', DEMO_REGISTRY_KEY: registryKey = '' } = process.env;
  const redis = await connect(url);
  const locks = new RedisLockRegistry(redis, {
    registryKey,
    expireAfter: 10_000, // the lock of a killed worker expires soon
    idleBetweenTries: 10, // an order takes 3 ms: at the default of 100, one worker would sell most of the stock
  });
  const sell = async ({ scenario, stockKey, closingTime }: Job) => {
    const { buyers, open }: Scenario = scenarios[scenario];
    const stock = open(redis, stockKey, locks);
    const opening = performance.now();
    const totals = { sold: 0, lastSaleAt: 0, refusedTooEarly: 0 };
    const buyer = async () => {
      while (performance.now() < opening + closingTime) {
        if (!(await stock.sellOne())) {
          if ((await stock.left()).some((pieces) => pieces > 0)) totals.refusedTooEarly += 1;
          return;
        }
        totals.sold += 1;
        totals.lastSaleAt = performance.now() - opening;
      }
    };
    await Promise.all(Array.from({ length: buyers }, buyer));
    report(totals);
  };
  process.on('message', (job: Job) => void sell(job).catch(fail));
  report({ sold: 0, lastSaleAt: 0, refusedTooEarly: 0 });
}

process.on('disconnect', () => process.exit()); // never outlive the demo, however it ended
process.on('SIGINT', () => {}); // Ctrl-C reaches the whole process group: the demo decides what it means
main().catch(fail);
