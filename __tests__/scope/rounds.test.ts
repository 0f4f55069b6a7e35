import { expect, it } from '@jest/globals';
import { type Lease, type RedisClient, RedisLockRegistry } from '../../lib';
import { untilCollected } from '../support/collected';

const ROUNDS = 10;

/** Every lock is free. Unlike a mock it keeps nothing: a promise refers to the scope that it was made in. */
const client: RedisClient = { eval: async () => 1, evalSha: async () => 1 };

it.each(['the same key', 'other keys'])(
  'lets a scope go that is over, though the next round of a worker was started inside it (%s)',
  async (keys) => {
    const registry = new RedisLockRegistry(client, { registryKey: 'rounds', cacheCapacity: 2 });
    const leases: WeakRef<Lease>[] = [];
    await new Promise<void>((resolve, reject) => {
      const round = (i: number): void => {
        const task = (lease: Lease): void => {
          leases.push(new WeakRef(lease));
          if (i < ROUNDS) setImmediate(round, i + 1);
          else setImmediate(resolve);
        };
        registry.run(keys === 'the same key' ? 'key' : `key ${i}`, task).catch(reject);
      };
      round(1);
    });
    expect(leases).toHaveLength(ROUNDS);
    await untilCollected(leases[0] as WeakRef<Lease>);
  },
);
