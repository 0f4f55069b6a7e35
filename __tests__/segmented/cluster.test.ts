import { beforeAll, expect, it } from '@jest/globals';
import { CannotAcquireLockError } from '../../lib';
import { hashSlot } from '../../lib/redis/cluster';
import { startCluster, type TestCluster } from '../support/cluster';
import { DISTINCT_TYPES } from '../support/lock-types';
import { describePrivate, installed } from '../support/private-redis';
import { uniqueKey } from '../support/redis';
import { createRegistry } from '../support/test-registry';

const SEGMENTS = 12;

describePrivate('On a cluster of three masters', () => {
  const cluster = installed(() => startCluster());
  let client: TestCluster;

  beforeAll(async () => {
    client = await cluster().connect();
  });

  it.each(DISTINCT_TYPES)(
    'On a cluster of three masters, the segments of a %s lock are distributed, and sell all pieces',
    async (lockType) => {
      const options = { lockType, fencing: true, registryKey: uniqueKey('cluster') };
      const { registry, nameOf } = createRegistry(client, options);
      // With a hash tag, so that the stock and ledger of a segment share its slot, as a transaction requires.
      const stock = registry.segmented('{product:7}', { segments: SEGMENTS });
      const masters = new Set(stock.names.map((name) => client.slots[hashSlot(nameOf(name))]?.master.address));
      expect(masters.size).toBe(3);

      const piecesOf = (name: string) => nameOf(`pieces:${name}`);
      const ledgerOf = (name: string) => nameOf(`ledger:${name}`);
      await Promise.all(stock.split(30).map(({ name, amount }) => client.set(piecesOf(name), amount)));
      const read = async ({ name }: { readonly name: string }) => Number(await client.get(piecesOf(name)));
      const take = (name: string, amount: number) =>
        client.multi().decrBy(piecesOf(name), amount).incrBy(ledgerOf(name), amount).exec();

      const across = await stock.runAcross(7, {
        available: read,
        commit: (parts) => Promise.all(parts.map(({ name, amount }) => take(name, amount))),
      });
      expect(across).toMatchObject({ served: true, segments: [0, 1, 2] });
      const sell = () =>
        stock.run(async (segment) => ((await read(segment)) > 0 ? take(segment.name, 1) : segment.exhausted));
      // Where the machine stands still, Redis seems silent: then the order is placed again.
      const order = async (): Promise<Awaited<ReturnType<typeof sell>>> => {
        for (const giveUpAt = performance.now() + 60_000; ; ) {
          try {
            return await sell();
          } catch (error) {
            if (!(error instanceof CannotAcquireLockError) || performance.now() > giveUpAt) throw error;
          }
        }
      };
      const answers = await Promise.all(Array.from({ length: 25 }, order));
      expect(answers.filter(({ served }) => served)).toHaveLength(23);
      const sold = await Promise.all(stock.names.map(async (name) => Number(await client.get(ledgerOf(name)))));
      expect(sold).toEqual(stock.split(30).map(({ amount }) => amount));
      expect(await Promise.all(stock.names.map((name) => read({ name })))).toEqual(Array(SEGMENTS).fill(0));
    },
  );
});
