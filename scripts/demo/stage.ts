import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { RedisLockRegistry } from '../../lib';
import { Crew } from './crew';
import { type DemoRedis, openRedis, RedisUnreachableError } from './redis';
import { type Result, StockBar, sum } from './report';
import { type ScenarioName, scenarios } from './scenarios';
import type { Stock } from './stock';

export const WORKERS = 4;

/** Where a demo is performed: a Redis, and a crew of worker processes. */
export class Stage {
  readonly redis: DemoRedis;
  readonly crew: Crew;
  readonly #keyPrefix: string;

  constructor(redis: DemoRedis, keyPrefix: string) {
    this.redis = redis;
    this.#keyPrefix = keyPrefix;
    this.crew = new Crew(WORKERS, redis.url, keyPrefix);
  }

  /** Sells until the stock is sold out, or `closingTime` ms are over. */
  async sell(name: ScenarioName, pieces: number, closingTime: number): Promise<Result> {
    const bar = new StockBar(scenarios[name].title, pieces);
    const stock = this.#stock(name);
    const draw = async () => bar.show(sum(await stock.left()), this.crew.sold);
    await stock.fill(pieces);
    const timer = setInterval(() => draw().catch(() => {}), 100); // that Redis is gone is told by the workers
    try {
      await this.crew.sell({ scenario: name, stockKey: this.#stockKey(name), closingTime });
      await draw();
      const { soldByWorker, refusedTooEarly, lastSaleAt } = this.crew;
      return { name, pieces, left: await stock.left(), soldByWorker, refusedTooEarly, ms: lastSaleAt };
    } finally {
      clearInterval(timer);
      bar.stop();
    }
  }

  /** The same, and nobody looks: code that has run a few hundred times takes half the processor's time. */
  async rehearse(name: ScenarioName, pieces: number, closingTime: number): Promise<void> {
    await this.#stock(name).fill(pieces);
    await this.crew.sell({ scenario: name, stockKey: this.#stockKey(name), closingTime });
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
 * Performs a story, and ends the process with its exit code: 0 when the story says that all is well; 1 when it does not,
 * or a worker died; 2 when there is no Redis.
 */
export async function perform(
  story: (stage: Stage) => Promise<boolean>,
  redis: { fast?: boolean } = {},
): Promise<void> {
  try {
    process.exitCode = await performOn(await openRedis(redis), story);
  } catch (error) {
    console.error((error as Error).message);
    process.exitCode = error instanceof RedisUnreachableError ? 2 : 1;
  }
}

async function performOn(redis: DemoRedis, story: (stage: Stage) => Promise<boolean>): Promise<number> {
  const interrupted = Promise.race(['SIGINT', 'SIGTERM'].map((signal) => once(process, signal)));
  const stage = new Stage(redis, `lock-demo:${randomUUID()}`); // two demos on one Redis do not share a stock
  try {
    const told = story(stage).then((isWell) => (isWell ? 0 : 1));
    return await Promise.race([told, interrupted.then(() => 130)]);
  } finally {
    stage.crew.dismiss();
    await redis.stop();
  }
}
