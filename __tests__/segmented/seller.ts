/** A process that sells from a segmented stock and may be killed at any moment. It executes the orders of each message. */

import { setTimeout as sleep } from 'node:timers/promises';
import { createClient, type RedisClientOptions } from 'redis';
import { LockLostError, RedisLockRegistry } from '../../lib';
import type { LockType } from '../../lib/protocols/lock-types';

export interface Shop {
  readonly redis: RedisClientOptions;
  readonly registryKey: string;
  readonly lockType: LockType;
  readonly segments: number;
  /** ms; ttl of the locks. */
  readonly expireAfter: number;
  /** Key of the list of sold orders; also the prefix of the keys that count the pieces of each segment. */
  readonly ledger: string;
}

export interface Order {
  readonly id: number;
  readonly amount: number;
  /** Whether it may be served from several segments. */
  readonly across: boolean;
  /** ms between reading and writing. */
  readonly work: number;
}

export type Message = { readonly shop: Shop } | { readonly orders: readonly Order[] };

/** State of an order; `inside`: it has read the stock and is about to write. */
export type SellerMessage =
  | 'ready'
  | { readonly id: number; readonly state: 'inside' | 'sold' | 'refused' | 'lost' }
  | { readonly id: number; readonly state: 'failed'; readonly why: string };

/** An order in the ledger. */
export type Entry = Pick<Order, 'id' | 'amount'>;

const report = (message: SellerMessage): void => {
  process.send?.(message);
};

async function open({ redis, registryKey, lockType, segments, expireAfter, ledger }: Shop) {
  const client = createClient(redis);
  client.on('error', () => {});
  await client.connect();
  const registry = new RedisLockRegistry(client, {
    registryKey,
    lockType,
    expireAfter,
    idleBetweenTries: 5,
    fairLockWaitTimeout: 100, // ms for which a killed waiter of redisson-fair blocks the waiters behind it
  });
  const stock = registry.segmented('stock', { segments });
  const piecesOf = (name: string) => `${ledger}:${name}`;
  const read = async (name: string) => Number(await client.get(piecesOf(name)));

  /** Stock and ledger in one transaction: a killed process has written both or nothing. */
  const write = async ({ id, amount, work }: Order, left: ReadonlyMap<string, number>): Promise<boolean> => {
    report({ id, state: 'inside' });
    await sleep(work);
    const transaction = client.multi().rPush(ledger, JSON.stringify({ id, amount } satisfies Entry));
    for (const [name, pieces] of left) transaction.set(piecesOf(name), pieces, { expiration: 'KEEPTTL' });
    await transaction.exec();
    return true;
  };

  const fromOne = (order: Order) =>
    stock.run(async ({ name, lease, exhausted }) => {
      const pieces = await read(name);
      if (pieces < order.amount) return exhausted;
      lease.assertHeld();
      return write(order, new Map([[name, pieces - order.amount]]));
    });

  const fromSeveral = (order: Order) => {
    const piecesOfSegment = new Map<string, number>();
    return stock.runAcross(order.amount, {
      async available({ name }) {
        const pieces = await read(name);
        piecesOfSegment.set(name, pieces);
        return pieces;
      },
      commit: (parts) =>
        write(order, new Map(parts.map(({ name, amount }) => [name, (piecesOfSegment.get(name) as number) - amount]))),
    });
  };

  const place = async (order: Order): Promise<void> => {
    const { id } = order;
    try {
      const { served } = await (order.across ? fromSeveral(order) : fromOne(order));
      report({ id, state: served ? 'sold' : 'refused' });
    } catch (error) {
      report(error instanceof LockLostError ? { id, state: 'lost' } : { id, state: 'failed', why: String(error) });
    }
  };
  const close = async (): Promise<void> => {
    await registry.close();
    client.destroy();
  };
  return { place, close };
}

let shop: ReturnType<typeof open> | undefined;

async function listen(message: Message): Promise<void> {
  if ('orders' in message) {
    const { place } = (await shop) ?? {};
    await Promise.all(message.orders.map((order) => place?.(order)));
    return;
  }
  const previous = shop;
  shop = open(message.shop);
  await (await previous)?.close();
}

process.on('message', (message: Message) => void listen(message));
process.on('disconnect', () => process.exit()); // ends with the test
report('ready');
