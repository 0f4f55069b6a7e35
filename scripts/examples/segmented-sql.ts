/**
 * A shop with its stock in SQL, one row for each segment, and its locks in Redis.
 *
 *   node -r esbuild-register scripts/examples/segmented-sql.ts      (uses REDIS_URL, an installed or an embedded server)
 *
 * The database is SQLite in WebAssembly; any database with transactions works. An order has exclusive use of its segment
 * while it reads, works and writes, and needs no open transaction while it works. The holder of a lock may be paused just
 * before it writes, for longer than its lease lasts: the fencing token lets the database refuse such a late write.
 */

import { setTimeout as sleep } from 'node:timers/promises';
import { Database } from 'node-sqlite3-wasm';
import { type Part, RedisLockRegistry, type SegmentedLock } from '../../lib';
import { connect, openServer } from '../demo/shop';

const schema = `
  CREATE TABLE stock (
    segment INTEGER PRIMARY KEY,
    pieces INTEGER NOT NULL CHECK (pieces >= 0),
    fence INTEGER NOT NULL DEFAULT 0 -- the highest fencing token that has written
  );
  CREATE TABLE orders (id INTEGER PRIMARY KEY, customer TEXT NOT NULL, pieces INTEGER NOT NULL);`;

export class Shop {
  readonly #db: Database;
  readonly #stock: SegmentedLock;

  constructor(db: Database, stock: SegmentedLock) {
    this.#db = db;
    this.#stock = stock;
  }

  open(pieces: number): void {
    this.#db.exec(schema);
    for (const { index, amount } of this.#stock.split(pieces)) {
      this.#db.run('INSERT INTO stock (segment, pieces) VALUES (?, ?)', [index, amount]);
    }
  }

  /** `false` when the stock cannot serve an order of this size. */
  async order(customer: string, pieces: number): Promise<boolean> {
    const fromOne = await this.#stock.run(async ({ index, lease, exhausted }) => {
      if (this.#piecesIn(index) < pieces) return exhausted;
      await payment();
      this.#write(customer, pieces, [{ index, amount: pieces, lease }]);
      return index;
    });
    if (fromOne.served || pieces === 1) return fromOne.served;

    const fromSeveral = await this.#stock.runAcross(pieces, {
      available: ({ index }) => this.#piecesIn(index),
      commit: async (parts) => {
        await payment();
        this.#write(customer, pieces, parts);
      },
    });
    return fromSeveral.served;
  }

  /** The remaining pieces of each segment, and the number of pieces sold. */
  totals(): { left: number[]; sold: number } {
    const left = this.#db.all('SELECT pieces FROM stock ORDER BY segment').map((row) => Number(row.pieces));
    const sold = Number(this.#db.get('SELECT COALESCE(SUM(pieces), 0) AS sold FROM orders')?.sold);
    return { left, sold };
  }

  #piecesIn(index: number): number {
    return Number(this.#db.get('SELECT pieces FROM stock WHERE segment = ?', index)?.pieces);
  }

  /** One transaction. It fails when a holder with a later token has written to a segment. */
  #write(customer: string, pieces: number, parts: readonly Omit<Part, 'name'>[]): void {
    this.#db.exec('BEGIN IMMEDIATE');
    try {
      for (const { index, amount, lease } of parts) {
        const token = lease.fencingToken as number;
        const { changes } = this.#db.run(
          'UPDATE stock SET pieces = pieces - ?, fence = ? WHERE segment = ? AND fence < ?',
          [amount, token, index, token],
        );
        if (changes !== 1) throw new Error(`Segment ${index} has been written to by a later holder of its lock`);
      }
      this.#db.run('INSERT INTO orders (customer, pieces) VALUES (?, ?)', [customer, pieces]);
      this.#db.exec('COMMIT');
    } catch (error) {
      this.#db.exec('ROLLBACK');
      throw error;
    }
  }
}

const payment = () => sleep(5);

async function main(): Promise<void> {
  const server = await openServer();
  const redis = await connect(server.url);
  const registry = new RedisLockRegistry(redis, { registryKey: 'segmented-sql', fencing: true });
  const db = new Database();
  try {
    const shop = new Shop(db, registry.segmented('product:7', { segments: 8 }));
    shop.open(100);
    const customers = Array.from({ length: 60 }, (_, i) => ({ name: `customer ${i + 1}`, pieces: 1 + (i % 4) }));
    const answers = await Promise.all(customers.map(({ name, pieces }) => shop.order(name, pieces)));
    const { left, sold } = shop.totals();
    console.log(`${answers.filter(Boolean).length} of ${customers.length} orders were served.`);
    console.log(`${sold} pieces sold, ${left.reduce((sum, pieces) => sum + pieces)} left in ${left.length} segments.`);
  } finally {
    await registry.close();
    db.close();
    redis.destroy();
    await server.stop();
  }
}

if (require.main === module) {
  main().catch((error: unknown) => {
    console.error(error);
    process.exitCode = 1;
  });
}
