import { setTimeout as sleep } from 'node:timers/promises';
import type { Redis } from './connection';

/** ms; every write sets it, so that a demo leaves no keys behind. KEEPTTL would keep no expiry on a missing key. */
export const STOCK_LIFE = 30_000;

/** The stock that a demo sells from. */
export interface Stock {
  fill(pieces: number): Promise<unknown>;
  /** The remaining pieces, one number for each part of the stock. */
  left(): Promise<readonly number[]>;
  /** Sells one piece; false when the stock is sold out. */
  sellOne(): Promise<boolean>;
}

/** One counter in Redis, with a read-modify-write that loses updates unless it is locked. */
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
    await sleep(this.#work()); // payment, invoice, ...: other workers read the same number meanwhile
    await this.fill(left - 1);
    return true;
  }
}
