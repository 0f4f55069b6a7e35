import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { expect, it } from '@jest/globals';
import { Database } from 'node-sqlite3-wasm';
import { Shop } from '../../scripts/examples/segmented-sql';
import { createRealClient, describeReal } from '../support/redis';
import { createRegistry } from '../support/test-registry';

it('The example with SQL runs, and sells its stock', async () => {
  const script = join(__dirname, '../../scripts/examples/segmented-sql.ts');
  const { REDIS_URL: _, ...env } = process.env;
  const { stdout } = await promisify(execFile)('node', ['-r', require.resolve('esbuild-register'), script], { env });
  const [served, sold, left] = [...stdout.matchAll(/^(\d+) of 60 orders|^(\d+) pieces sold, (\d+) left/gm)]
    .flatMap((match) => match.slice(1))
    .filter(Boolean)
    .map(Number) as [number, number, number];
  expect(served).toBeLessThan(60);
  expect(sold + left).toBe(100);
  // Sixty orders for 150 pieces: the remaining pieces are too few for the largest order.
  expect(left).toBeLessThan(4);
});

describeReal('its shop', () => {
  const openShop = async () => {
    const { registry, nameOf } = createRegistry(await createRealClient(), { fencing: true });
    const db = new Database();
    const shop = new Shop(db, registry.segmented('stock', { segments: 3 }));
    shop.open(10);
    return { shop, db, nameOf };
  };

  it('The shop of the example serves an order that is larger than each segment', async () => {
    const { shop } = await openShop();
    expect(shop.totals()).toEqual({ left: [4, 3, 3], sold: 0 });
    expect(await shop.order('somebody', 9)).toBe(true);
    expect(await shop.order('somebody', 2)).toBe(false);
    expect(shop.totals()).toEqual({ left: [0, 0, 1], sold: 9 });
  });

  it('The shop of the example rejects a write to a segment that a later holder has written to', async () => {
    const { shop, db } = await openShop();
    db.run('UPDATE stock SET fence = ?', 2 ** 53);
    await expect(shop.order('somebody', 1)).rejects.toThrow('later holder');
    expect(shop.totals()).toEqual({ left: [4, 3, 3], sold: 0 });
  });
});
