import { setTimeout as sleep } from 'node:timers/promises';
import type { Redis } from './connection';

/** ms; each write sets the expiry anew (KEEPTTL would keep none on a key that is gone): the demo leaves nothing behind. */
export const STOCK_LIFE = 30_000;

/** What the demo sells from. */
export interface Stock {
  fill(pieces: number): Promise<unknown>;
  /** The pieces that are left, one number for each part that the stock is kept in. */
  left(): Promise<readonly number[]>;
  /** One order for one piece. False when the stock is sold out. */
  sellOne(): Promise<boolean>;
}

/** One counter in Redis, and the classic way to get it wrong when several sell at once. */
export class SimpleStock implements Stock {
  readonly #redis: Redis;
  readonly #key: string;
  readonly #work: () => number;

  /** An order takes `work()` ms. */
  constructor(redis: Redis, key: string, work: () => number) {
    this.#redis = redis;
    this.#key = key;
    this.#work = work;
  }

  fill(pieces: number): Promise<unknown> {
    return this.#redis.set(this.#key, pieces, { expiration: { type: 'PX', value: STOCK_LIFE } });
  }

  async left(): Promise<readonly number[]> {
    return [Number(await this.#redis.get(this.#key))];
  }

  /** Read, work, write. */
  async sellOne(): Promise<boolean> {
    const [left = 0] = await this.left();
    if (left <= 0) return false;
    await sleep(this.#work()); // payment, invoice, ...: others read the same number meanwhile
    await this.fill(left - 1);
    return true;
  }
}
