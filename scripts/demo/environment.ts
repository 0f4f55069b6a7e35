import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { RedisLockRegistry } from '../../lib';
import { type DemoRedis, openRedis, RedisUnreachableError } from './redis';
import { type Result, StockBar, sum } from './report';
import { type ScenarioName, scenarios } from './scenarios';
import type { Stock } from './stock';
import { WorkerPool } from './worker-pool';

export const WORKERS = 4;

/** What a demo runs in: a Redis and a pool of worker processes. */
export class DemoEnvironment {
  readonly redis: DemoRedis;
  readonly workers: WorkerPool;
  readonly #keyPrefix: string;

  constructor(redis: DemoRedis, keyPrefix: string) {
    this.redis = redis;
    this.#keyPrefix = keyPrefix;
    this.workers = new WorkerPool(WORKERS, redis.url, keyPrefix);
  }

  /** Sells until the stock is sold out, or `closingTime` ms are over. */
  async sell(name: ScenarioName, pieces: number, closingTime: number): Promise<Result> {
    const bar = new StockBar(scenarios[name].title, pieces);
    const stock = this.#stock(name);
    const draw = async () => bar.show(sum(await stock.left()), this.workers.sold);
    await stock.fill(pieces);
    const timer = setInterval(() => draw().catch(() => {}), 100); // the workers report a lost connection
    try {
      await this.workers.sell({ scenario: name, stockKey: this.#stockKey(name), closingTime });
      await draw();
      const { soldByWorker, refusedTooEarly, lastSaleAt } = this.workers;
      return { name, pieces, left: await stock.left(), soldByWorker, refusedTooEarly, ms: lastSaleAt };
    } finally {
      clearInterval(timer);
      bar.stop();
    }
  }

  /** Sells without a report: compiled code takes half the processor time. */
  async warmUp(name: ScenarioName, pieces: number, closingTime: number): Promise<void> {
    await this.#stock(name).fill(pieces);
    await this.workers.sell({ scenario: name, stockKey: this.#stockKey(name), closingTime });
  }

  #stockKey(name: ScenarioName): string {
    return `${this.#keyPrefix}:stock:${name}`;
  }

  #stock(name: ScenarioName): Stock {
    const locks = new RedisLockRegistry(this.redis.client, { registryKey: this.#keyPrefix });
    return scenarios[name].open(this.redis.client, this.#stockKey(name), locks);
  }
}

/**
 * Runs a demo and sets the exit code of the process: 0 when the demo resolves to true; 1 when it does not, or a worker
 * died; 2 without a Redis; 130 when it was interrupted.
 */
export async function runDemo(demo: (environment: DemoEnvironment) => Promise<boolean>): Promise<void> {
  try {
    process.exitCode = await runOn(await openRedis(), demo);
  } catch (error) {
    console.error((error as Error).message);
    process.exitCode = error instanceof RedisUnreachableError ? 2 : 1;
  }
}

async function runOn(redis: DemoRedis, demo: (environment: DemoEnvironment) => Promise<boolean>): Promise<number> {
  const interrupted = Promise.race(['SIGINT', 'SIGTERM'].map((signal) => once(process, signal)));
  const environment = new DemoEnvironment(redis, `lock-demo:${randomUUID()}`); // two demos on one Redis do not share a stock
  try {
    const finished = demo(environment).then((isCorrect) => (isCorrect ? 0 : 1));
    return await Promise.race([finished, interrupted.then(() => 130)]);
  } finally {
    environment.workers.stop();
    await redis.stop();
  }
}
