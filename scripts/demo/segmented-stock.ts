import { setTimeout as sleep } from 'node:timers/promises';
import type { SegmentedLock } from '../../lib';
import type { Redis } from './connection';
import { STOCK_LIFE, type Stock } from './stock';

/** The same stock, with one counter for each segment of the lock: one order at a time in each. */
export class SegmentedStock implements Stock {
  readonly #redis: Redis;
  readonly #key: string;
  readonly #lock: SegmentedLock;
  readonly #work: () => number;

  /** An order takes `work()` ms. */
  constructor(redis: Redis, key: string, lock: SegmentedLock, work: () => number) {
    this.#redis = redis;
    this.#key = key;
    this.#lock = lock;
    this.#work = work;
  }

  async fill(pieces: number): Promise<void> {
    const expiration = { type: 'PX', value: STOCK_LIFE } as const;
    await Promise.all(
      this.#lock.split(pieces).map(({ name, amount }) => this.#redis.set(this.#part(name), amount, { expiration })),
    );
  }

  async left(): Promise<readonly number[]> {
    return (await this.#redis.mGet(this.#lock.names.map((name) => this.#part(name)))).map(Number);
  }

  /** Read, work, count down: a counter that was sold twice would stay below zero. */
  async sellOne(): Promise<boolean> {
    const answer = await this.#lock.run(async (segment) => {
      const part = this.#part(segment.name);
      if (Number(await this.#redis.get(part)) < 1) return segment.exhausted;
      await sleep(this.#work());
      return this.#redis.decr(part);
    });
    return answer.served;
  }

  #part(name: string): string {
    return `${this.#key}:${name}`;
  }
}
