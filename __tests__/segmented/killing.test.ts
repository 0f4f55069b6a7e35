import { beforeAll, expect, it } from '@jest/globals';
import { array, assert, asyncProperty, boolean, constantFrom, integer, nat, record, uniqueArray } from 'fast-check';
import { LOCK_TYPES, type LockType } from '../../lib/strategies';
import { createRealClient, describeReal, realRedis, type TestClient, uniqueKey } from '../support/redis';
import { until } from '../support/until';
import type { Entry, News, Order, Shop } from './seller';
import { Seller } from './sellers';

const SCHEDULES = 100;
/** So many at a time: most of their time passes waiting for the locks of the dead. */
const STREAMS = 4;
const SELLERS = 2;
/** ms; far longer than a section takes, so that the living lose no lock on a machine that is busy. */
const EXPIRE_AFTER = 800;

interface Schedule {
  readonly lockType: LockType;
  /** In each segment. */
  readonly pieces: readonly number[];
  readonly orders: readonly (Omit<Order, 'id'> & { readonly seller: number })[];
  /** Whose order is the so many-th to be inside of its section is killed there. */
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

  /** A stock in Redis, its ledger, and what its sellers tell. */
  class Stock {
    readonly shop: Shop;
    readonly told = new Map<number, Exclude<News, 'ready'>['state']>();
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
      return !['inside', undefined].includes(this.told.get(id));
    }

    listen(news: Exclude<News, 'ready'>): void {
      this.told.set(news.id, news.state);
      if (news.state === 'failed') this.failures.push(news.why);
    }

    async clear(): Promise<void> {
      await client.del([...this.#names, this.shop.ledger]);
    }
  }

  /** Those who are free to work for a shop. */
  const idle: Seller[] = [];
  const hire = (): Seller => idle.pop() ?? new Seller();

  async function perform(schedule: Schedule): Promise<void> {
    const stock = new Stock(schedule);
    await stock.fill(schedule.pieces);
    const orders = schedule.orders.map((order, id) => ({ ...order, id }));
    const sellers = Array.from({ length: SELLERS }, hire);
    const alive = new Set(sellers);

    let inside = 0;
    const deaths: Promise<void>[] = [];
    const listenTo = (seller: Seller) => (news: Exclude<News, 'ready'>) => {
      if (!alive.has(seller)) return;
      stock.listen(news);
      if (news.state !== 'inside' || !schedule.kills.includes(++inside)) return;
      alive.delete(seller);
      deaths.push(seller.kill());
    };
    await Promise.all(sellers.map((seller) => seller.open(stock.shop, listenTo(seller))));
    sellers.forEach((seller, index) => {
      seller.sell(orders.filter((order) => order.seller === index));
    });
    const ofTheLiving = () => orders.filter(({ seller }) => alive.has(sellers[seller] as Seller));
    await until(() => ofTheLiving().every(({ id }) => stock.isSettled(id)), { within: 20_000 });
    await Promise.all(deaths);
    killed += deaths.length;

    await checkBooks(stock, schedule, orders);
    const heir = hire();
    await sellTheRest(stock, schedule, heir);
    await stock.clear();
    idle.push(heir, ...alive);
  }

  async function checkBooks(stock: Stock, { pieces }: Schedule, orders: readonly Order[]): Promise<void> {
    const [left, sold] = [await stock.left(), await stock.sold()];
    expect(stock.failures).toEqual([]);
    expect(sum(sold.map(({ amount }) => amount)) + sum(left)).toBe(sum(pieces));
    expect(Math.min(...left)).toBeGreaterThanOrEqual(0);
    const inLedger = sold.map(({ id }) => id);
    expect(new Set(inLedger).size).toBe(inLedger.length);
    for (const { id, amount, across } of orders) {
      const state = stock.told.get(id);
      if (state === 'sold') expect(inLedger).toContain(id);
      if (state !== 'refused') continue;
      expect(inLedger).not.toContain(id);
      // Nothing comes back to this stock: what is there at the end was there when the order was refused.
      expect(across ? sum(left) : Math.max(...left)).toBeLessThan(amount);
    }
  }

  /** Somebody new sells piece by piece: every one that is left finds its order, the last too, and only the next is refused. */
  async function sellTheRest(stock: Stock, { pieces }: Schedule, heir: Seller): Promise<void> {
    const rest = sum(await stock.left());
    const orders = Array.from({ length: rest + 1 }, (_, i) => ({ id: 1_000 + i, amount: 1, across: false, work: 0 }));
    await heir.open(stock.shop, (news) => stock.listen(news));
    heir.sell(orders);
    await until(() => orders.every(({ id }) => stock.isSettled(id)), { within: 20_000 });
    expect(stock.failures).toEqual([]);
    const states = orders.map(({ id }) => stock.told.get(id));
    expect(states.toSorted()).toEqual(['refused', ...Array(rest).fill('sold')]);
    expect(await stock.left()).toEqual(pieces.map(() => 0));
  }

  it('leave the books right: pieces sold + pieces left = pieces at the start, never below zero, none refused too early', async () => {
    const stream = () =>
      assert(asyncProperty(schedules, perform), { numRuns: SCHEDULES / STREAMS, endOnFailure: true });
    await Promise.all(Array.from({ length: STREAMS }, stream));
    expect(killed).toBeGreaterThan(SCHEDULES / 4);
  }, 180_000);
});
