import { beforeAll, expect, it } from '@jest/globals';
import { array, assert, asyncProperty, boolean, constantFrom, integer, nat, record, uniqueArray } from 'fast-check';
import { LOCK_TYPES, type LockType } from '../../lib/protocols/lock-types';
import { createRealClient, describeReal, realRedis, type TestClient, uniqueKey } from '../support/redis';
import { until } from '../support/until';
import type { Entry, Order, SellerMessage, Shop } from './seller';
import { Seller } from './sellers';

const SCHEDULES = 100;
/** Schedules at a time: most of their time is spent waiting for the locks of killed sellers. */
const STREAMS = 4;
const SELLERS = 2;
/** ms; a killed seller's locks block the others for this time. */
const EXPIRE_AFTER = 800;

interface Schedule {
  readonly lockType: LockType;
  /** The pieces of each segment. */
  readonly pieces: readonly number[];
  readonly orders: readonly (Omit<Order, 'id'> & { readonly seller: number })[];
  /** A seller is killed in its section if the section is the n-th that was entered, for each n in this list. */
  readonly kills: readonly number[];
}

const schedules = record<Schedule>({
  lockType: constantFrom(...LOCK_TYPES),
  pieces: array(nat({ max: 12 }), { minLength: 1, maxLength: 6 }),
  orders: array(
    record({
      amount: integer({ min: 1, max: 8 }),
      across: boolean(),
      work: nat({ max: 4 }),
      seller: nat({ max: SELLERS - 1 }),
    }),
    { minLength: 4, maxLength: 24 },
  ),
  kills: uniqueArray(integer({ min: 1, max: 8 }), { maxLength: 2 }),
});

const sum = (numbers: readonly number[]): number => numbers.reduce((total, number) => total + number, 0);

describeReal(`${SCHEDULES} schedules of orders, with sellers killed in between`, () => {
  let client: TestClient;
  let killed = 0;

  beforeAll(async () => {
    client = await createRealClient();
  });

  /** A stock in Redis, its ledger, and the reported states of its orders. */
  class Stock {
    readonly shop: Shop;
    readonly states = new Map<number, Exclude<SellerMessage, 'ready'>['state']>();
    readonly failures: string[] = [];
    readonly #names: readonly string[];

    constructor({ lockType, pieces }: Schedule) {
      const [registryKey, ledger] = [uniqueKey('killing'), uniqueKey('ledger')];
      const redis = realRedis as Shop['redis'];
      this.shop = { redis, registryKey, lockType, segments: pieces.length, expireAfter: EXPIRE_AFTER, ledger };
      this.#names = pieces.map((_, index) => `${ledger}:stock:${index}`);
    }

    async fill(pieces: readonly number[]): Promise<void> {
      await Promise.all(this.#names.map((name, index) => client.set(name, pieces[index] as number)));
    }

    async left(): Promise<number[]> {
      return (await client.mGet([...this.#names])).map(Number);
    }

    async sold(): Promise<Entry[]> {
      return (await client.lRange(this.shop.ledger, 0, -1)).map((entry) => JSON.parse(entry) as Entry);
    }

    isSettled(id: number): boolean {
      return !['inside', undefined].includes(this.states.get(id));
    }

    record(message: Exclude<SellerMessage, 'ready'>): void {
      this.states.set(message.id, message.state);
      if (message.state === 'failed') this.failures.push(message.why);
    }

    async clear(): Promise<void> {
      await client.del([...this.#names, this.shop.ledger]);
    }
  }

  /** Running sellers without a shop. */
  const idle: Seller[] = [];
  const takeSeller = (): Seller => idle.pop() ?? new Seller();

  async function runSchedule(schedule: Schedule): Promise<void> {
    const stock = new Stock(schedule);
    await stock.fill(schedule.pieces);
    const orders = schedule.orders.map((order, id) => ({ ...order, id }));
    const sellers = Array.from({ length: SELLERS }, takeSeller);
    const alive = new Set(sellers);

    let inside = 0;
    const kills: Promise<void>[] = [];
    const recordFrom = (seller: Seller) => (message: Exclude<SellerMessage, 'ready'>) => {
      if (!alive.has(seller)) return;
      stock.record(message);
      if (message.state !== 'inside' || !schedule.kills.includes(++inside)) return;
      alive.delete(seller);
      kills.push(seller.kill());
    };
    await Promise.all(sellers.map((seller) => seller.open(stock.shop, recordFrom(seller))));
    sellers.forEach((seller, index) => {
      seller.sell(orders.filter((order) => order.seller === index));
    });
    const ordersOfLiving = () => orders.filter(({ seller }) => alive.has(sellers[seller] as Seller));
    await until(() => ordersOfLiving().every(({ id }) => stock.isSettled(id)), { within: 20_000 });
    await Promise.all(kills);
    killed += kills.length;

    await checkTotals(stock, schedule, orders);
    const successor = takeSeller();
    await sellTheRest(stock, schedule, successor);
    await stock.clear();
    idle.push(successor, ...alive);
  }

  async function checkTotals(stock: Stock, { pieces }: Schedule, orders: readonly Order[]): Promise<void> {
    const [left, sold] = [await stock.left(), await stock.sold()];
    expect(stock.failures).toEqual([]);
    expect(sum(sold.map(({ amount }) => amount)) + sum(left)).toBe(sum(pieces));
    expect(Math.min(...left)).toBeGreaterThanOrEqual(0);
    const inLedger = sold.map(({ id }) => id);
    expect(new Set(inLedger).size).toBe(inLedger.length);
    for (const { id, amount, across } of orders) {
      const state = stock.states.get(id);
      if (state === 'sold') expect(inLedger).toContain(id);
      if (state !== 'refused') continue;
      expect(inLedger).not.toContain(id);
      // Pieces are never returned: what is left at the end was there when the order was refused.
      expect(across ? sum(left) : Math.max(...left)).toBeLessThan(amount);
    }
  }

  /** A new seller sells the remaining pieces one by one: all of them are sold, and only one more order is refused. */
  async function sellTheRest(stock: Stock, { pieces }: Schedule, successor: Seller): Promise<void> {
    const rest = sum(await stock.left());
    const orders = Array.from({ length: rest + 1 }, (_, i) => ({ id: 1_000 + i, amount: 1, across: false, work: 0 }));
    // No seller is killed here, and a busy machine must not cost a lease.
    await successor.open({ ...stock.shop, expireAfter: 30_000 }, (message) => stock.record(message));
    successor.sell(orders);
    await until(() => orders.every(({ id }) => stock.isSettled(id)), { within: 20_000 });
    expect(stock.failures).toEqual([]);
    const outcomes = orders.map(({ id }) => stock.states.get(id));
    expect(outcomes.toSorted()).toEqual(['refused', ...Array(rest).fill('sold')]);
    expect(await stock.left()).toEqual(pieces.map(() => 0));
  }

  it('keep the totals correct: pieces sold + pieces left = pieces at the start, never below zero, no order refused too early', async () => {
    const stream = () =>
      assert(asyncProperty(schedules, runSchedule), { numRuns: SCHEDULES / STREAMS, endOnFailure: true });
    await Promise.all(Array.from({ length: STREAMS }, stream));
    expect(killed).toBeGreaterThan(SCHEDULES / 4);
  });
});
