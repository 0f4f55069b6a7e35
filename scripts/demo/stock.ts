import { setTimeout as sleep } from 'node:timers/promises';
import type { Redis } from './connection';

/** The shop: one counter in Redis, and the classic way to get it wrong when several sell at once. */
export class Stock {
  readonly key: string;
  readonly #redis: Redis;

  constructor(redis: Redis, key: string) {
    this.#redis = redis;
    this.key = key;
  }

  fill(pieces: number): Promise<unknown> {
    // Each write sets the expiry anew (KEEPTTL would keep none on a key that is gone): the demo leaves nothing behind.
    return this.#redis.set(this.key, pieces, { expiration: { type: 'PX', value: 30_000 } });
  }

  async left(): Promise<number> {
    return Number(await this.#redis.get(this.key));
  }

  /** One order: read, work, write. False when the stock is sold out. */
  async sellOne(): Promise<boolean> {
    const left = await this.left();
    if (left <= 0) return false;
    await sleep(1 + Math.random() * 2); // payment, invoice, ...: others read the same number meanwhile
    await this.fill(left - 1);
    return true;
  }
}
