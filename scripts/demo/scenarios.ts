import type { RedisLockRegistry } from '../../lib';
import type { Redis } from './connection';
import { SegmentedStock } from './segmented-stock';
import { SimpleStock, type Stock } from './stock';

/** One way to place an order. */
export interface Scenario {
  readonly title: string;
  /** Whether the totals must be correct at the end. */
  readonly exact: boolean;
  /** How many buyers each worker process serves at a time. */
  readonly buyers: number;
  open(redis: Redis, stockKey: string, locks: RedisLockRegistry): Stock;
}

const SEGMENTS = 20; // one for each buyer of the four processes, so that all can sell at once

const moment = () => 1 + Math.random() * 2;
const twentyMs = () => 20;

/** The same stock, each order under one lock. */
function locked(stock: Stock, locks: RedisLockRegistry): Stock {
  return {
    fill: (pieces) => stock.fill(pieces),
    left: () => stock.left(),
    sellOne: () => locks.run('stock', () => stock.sellOne()),
  };
}

export const scenarios = {
  unlocked: {
    title: 'without lock',
    exact: false,
    buyers: 3,
    open: (redis, key) => new SimpleStock(redis, key, moment),
  },
  locked: {
    title: 'with lock',
    exact: true,
    buyers: 3,
    open: (redis, key, locks) => locked(new SimpleStock(redis, key, moment), locks),
  },
  oneLock: {
    title: 'one lock',
    exact: true,
    buyers: 5,
    open: (redis, key, locks) => locked(new SimpleStock(redis, key, twentyMs), locks),
  },
  segmented: {
    title: `${SEGMENTS} segments`,
    exact: true,
    buyers: 5,
    open: (redis, key, locks) =>
      new SegmentedStock(redis, key, locks.segmented('segmented-stock', { segments: SEGMENTS }), twentyMs),
  },
} satisfies Record<string, Scenario>;

export type ScenarioName = keyof typeof scenarios;
