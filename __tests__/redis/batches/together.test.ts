import { beforeEach, expect, it } from '@jest/globals';
import type { Lease, RedisLockRegistry, RedisLockRegistryOptions } from '../../../lib';
import { LOCK_TYPES } from '../../support/lock-types';
import { describePrivate, PrivateRedis } from '../../support/private-redis';
import { scriptsRun } from '../../support/server-load';
import { createRegistry } from '../../support/test-registry';

const MANY = 60;

/** It is sent twice if the server does not know its script yet. */
const MOST_COMMANDS = 2;

const keys = Array.from({ length: MANY }, (_, i) => `key-${i}`);

/** Lets the registry learn that all of its keys are on one server. */
async function warmUp(registry: RedisLockRegistry): Promise<void> {
  await Promise.all(keys.map((key) => registry.run(`first ${key}`, () => undefined)));
}

const unlockAll = (leases: readonly Lease[]): Promise<unknown> => Promise.all(leases.map((lease) => lease.unlock()));

describePrivate.each(LOCK_TYPES)('many %s locks at the same time', (lockType) => {
  const redis = PrivateRedis.install();

  beforeEach(() => redis.admin.flushAll());

  const start = async (options: Partial<RedisLockRegistryOptions> = {}) => {
    const { admin } = redis;
    const created = createRegistry(await redis.connect(), { lockType, ...options });
    await warmUp(created.registry);
    const counted = async (act: () => Promise<unknown>): Promise<number> => {
      const before = await scriptsRun(admin);
      await act();
      return (await scriptsRun(admin)) - before;
    };
    return { ...created, admin, counted };
  };

  it('Many locks at the same time are acquired and released by a script for many, each with its own owner, ttl and token', async () => {
    const { admin, registry, nameOf, counted } = await start({ fencing: true });
    let leases: Lease[] = [];
    const ttls = keys.map((_, i) => 60_000 * (i + 2));
    const toLock = await counted(async () => {
      leases = await Promise.all(keys.map((key, i) => registry.obtain(key).lock({ ttl: ttls[i] as number })));
    });
    const lives = await Promise.all(keys.map((key) => admin.pTTL(nameOf(key))));
    expect(lives.map((life) => Math.ceil(life / 60_000) * 60_000)).toEqual(ttls);
    const owners = await Promise.all(
      keys.map(async (key) =>
        (await admin.type(nameOf(key))) === 'hash'
          ? Object.keys(await admin.hGetAll(nameOf(key))).join()
          : await admin.get(nameOf(key)),
      ),
    );
    expect(new Set(owners).size).toBe(MANY);
    expect(leases.every((lease) => (lease.fencingToken ?? 0) > 0 && lease.remaining > 0)).toBe(true);
    const toUnlock = await counted(() => unlockAll(leases));
    for (const key of keys) expect(await admin.exists(nameOf(key))).toBe(0);
    expect(toLock).toBeLessThanOrEqual(MOST_COMMANDS);
    expect(toUnlock).toBeLessThanOrEqual(MOST_COMMANDS);
    const again = await Promise.all(keys.map((key) => registry.obtain(key).lock()));
    again.forEach((lease, i) => {
      expect(lease.fencingToken).toBeGreaterThan(leases[i]?.fencingToken ?? Number.POSITIVE_INFINITY);
    });
    await unlockAll(again);
  });

  it('Many locks at the same time are refused and lost individually', async () => {
    const { admin, registry, registryKey, nameOf } = await start();
    const other = createRegistry(await redis.connect(), { lockType, registryKey });
    const held = keys.filter((_, i) => i % 7 === 0);
    const holders = await Promise.all(held.map((key) => other.registry.obtain(key).lock()));
    const outcomes = await Promise.all(keys.map((key) => registry.obtain(key).tryLock()));
    expect(keys.filter((_, i) => outcomes[i] === null)).toEqual(held);
    await unlockAll(holders);
    const leases = outcomes.filter((lease) => lease !== null);
    const lost = leases.filter((_, i) => i % 5 === 0);
    for (const lease of lost) await admin.del(nameOf(lease.key));
    const unlocked = await Promise.allSettled(leases.map((lease) => lease.unlock()));
    expect(leases.filter((_, i) => unlocked[i]?.status === 'rejected')).toEqual(lost);
    expect((await admin.keys('*')).filter((key) => keys.includes(key.slice(nameOf('').length)))).toEqual([]);
  });
});
