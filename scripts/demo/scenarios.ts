import type { LockRegistry } from '../../lib';
import type { Stock } from './stock';

/** One way to place an order; the demo runs the same shop with each. */
export interface Scenario {
  readonly title: string;
  /** Whether the books have to be right at the end. */
  readonly exact: boolean;
  /** Resolves to false when there was nothing left to sell. */
  order(stock: Stock, locks: LockRegistry): Promise<boolean>;
}

export const scenarios = {
  unlocked: {
    title: 'without lock',
    exact: false,
    order: (stock) => stock.sellOne(),
  },
  locked: {
    title: 'with lock',
    exact: true,
    order: (stock, locks) => locks.run('stock', () => stock.sellOne()),
  },
} satisfies Record<string, Scenario>;

export type ScenarioName = keyof typeof scenarios;
