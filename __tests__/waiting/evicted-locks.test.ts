import { expect, it } from '@jest/globals';
import type { Lease, RedisLockRegistry } from '../../lib';
import { DISTINCT_TYPES } from '../support/lock-types';
import { Oracle } from '../support/oracle';
import { describePrivate, PrivateRedis } from '../support/private-redis';
import { uniqueKey } from '../support/redis';
import { createRegistry } from '../support/test-registry';
import { until } from '../support/until';

const PROCESSES = 3;
const CALLERS = 4;
const TURNS = 40;
const KEYS = ['a', 'b'];

describePrivate.each(DISTINCT_TYPES)('A registry that forgets its %s locks again and again', (lockType) => {
  const redis = PrivateRedis.install();

  /** Some callers give up while they wait, and their lock may be forgotten at once. */
  const acquire = async (registry: RedisLockRegistry, key: string, givesUp: boolean): Promise<Lease | null> => {
    if (!givesUp) return registry.obtain(key).lock();
    const abort = new AbortController();
    setTimeout(() => abort.abort('left'), 3);
    return registry
      .obtain(key)
      .lock({ signal: abort.signal })
      .catch((reason: unknown) => {
        expect(reason).toBe('left');
        return null;
      });
  };

  it('excludes as before, serves each caller, and leaves nothing', async () => {
    const registryKey = uniqueKey('evicted');
    const options = { registryKey, lockType, fencing: true, idleBetweenTries: 5 };
    const registries = await Promise.all(
      Array.from({ length: PROCESSES }, async () => createRegistry(await redis.connect(), options).registry),
    );
    const oracles = new Map(KEYS.map((key) => [key, new Oracle(redis.admin)]));
    let outcomes = 0;
    const call = async (process: number, caller: number) => {
      const registry = registries[process] as (typeof registries)[number];
      for (let turn = 0; turn < TURNS; turn++) {
        const key = KEYS[(caller + turn) % KEYS.length] as string;
        const oracle = oracles.get(key) as Oracle;
        registry.expireUnusedOlderThan(-1);
        const lease = await acquire(registry, key, (caller + turn) % 3 === 0);
        outcomes++;
        if (lease === null) continue;
        await oracle.section(() => {
          oracle.write(lease.fencingToken);
          registry.expireUnusedOlderThan(-1);
        });
        lease.assertHeld();
        await lease.unlock();
      }
    };
    const calls = registries.flatMap((_, process) =>
      Array.from({ length: CALLERS }, (_, caller) => call(process, caller)),
    );
    await Promise.all(calls);
    expect(outcomes).toBe(PROCESSES * CALLERS * TURNS);
    for (const { violations, entered } of oracles.values()) {
      expect(violations).toEqual([]);
      expect(entered).toBeGreaterThan((PROCESSES * CALLERS * TURNS) / 4);
    }
    for (const registry of registries) registry.expireUnusedOlderThan(-1);
    expect(registries.map(({ size }) => size)).toEqual(registries.map(() => 0));
    const left = async () => (await redis.admin.exists(KEYS.map((key) => `${registryKey}:${key}`))) === 0;
    await until(left);
  });
});
