import { expect, it } from '@jest/globals';
import { scan } from '../../lib/redis/cluster';
import { mockRedis } from '../support/mock-redis';

/** A cluster of two servers, the second of which is asked first: their keys, and who has the slots. */
function clusterOf(keysOf: (port: number) => readonly string[], slots: () => unknown) {
  const masters = [2, 1].map((port) => ({ host: 'h', port }));
  const nodeClient = ({ port }: { port: number }) => ({
    scan: async () => ({ cursor: '0', keys: keysOf(port) }),
    sendCommand: async () => slots(),
  });
  const all = Array.from({ length: 16_384 }, (_, slot) => ({ master: masters[slot % 2] }));
  return { ...mockRedis(), slots: all, masters, nodeClient } as never;
}

const slotsOf = (id: string) => [[0, 16_383, ['h', 1, id, []]]];

async function keysIn(client: never): Promise<string[]> {
  const keys: string[] = [];
  for await (const page of scan(client, '*', 10, 1_000)) keys.push(...page);
  return keys;
}

it('Keys that one server handed over to another between the questions to the two are listed all the same', async () => {
  let isMoved = false;
  const keysOf = (port: number) => {
    if (port === 2) return isMoved ? ['key'] : [];
    isMoved = true;
    return [];
  };
  expect(await keysIn(clusterOf(keysOf, () => slotsOf(isMoved ? 'two' : 'one')))).toEqual(['key']);
});

it('Keys of a cluster whose slots move all the time cannot be listed, which says so', async () => {
  let moves = 0;
  const client = clusterOf(
    () => ['key'],
    () => slotsOf(`id-${moves++}`),
  );
  await expect(keysIn(client)).rejects.toThrow('Slots of the cluster moved while its keys were listed');
});

it('Keys are listed once where a client cannot say who has which slots', async () => {
  const client = clusterOf(
    () => ['key'],
    () => Promise.reject(new Error('NOPERM no')),
  );
  expect(await keysIn(client)).toEqual(['key', 'key']);
});
