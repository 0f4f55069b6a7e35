import { beforeEach, expect, it } from '@jest/globals';
import { machineDelay } from '../support/machine-delay';
import { describePrivate, PrivateRedis } from '../support/private-redis';
import { createRegistry, lossOf, type TestRegistry } from '../support/test-registry';
import { until } from '../support/until';

const TTL = 1_800;
const NEXT_RENEWAL = TTL / 3 + 250;

describePrivate('keys are changed by hand', () => {
  const redis = PrivateRedis.install();
  let locks: TestRegistry;
  let name: string;

  beforeEach(async () => {
    locks = createRegistry(await redis.connect(), { expireAfter: TTL });
    name = locks.nameOf('key');
  });

  const changes: Record<string, { apply: () => Promise<unknown>; reason: string }> = {
    DEL: { apply: () => redis.admin.del(name), reason: 'expired' },
    FLUSHALL: { apply: () => redis.admin.flushAll(), reason: 'expired' },
    'SET, by another owner': { apply: () => redis.admin.set(name, 'another', { PX: 60_000 }), reason: 'stolen' },
    'SET, of another type': {
      apply: () => redis.admin.multi().del(name).hSet(name, 'a', 'b').pExpire(name, 60_000).exec(),
      reason: 'stolen',
    },
    'EXPIRE, at once': { apply: () => redis.admin.pExpire(name, 1), reason: 'expired' },
  };

  it.each(Object.keys(changes))('P6: %s: lost at the next renewal', async (command) => {
    const { apply, reason } = changes[command] as { apply: () => Promise<unknown>; reason: string };
    const startedAt = performance.now();
    const lease = await locks.registry.obtain('key').lock();
    const spared = await locks.registry.obtain('spared').lock();
    await apply();
    const loss = await lossOf(lease);
    expect(loss.reason).toBe(reason);
    expect(loss.at - startedAt).toBeLessThan(NEXT_RENEWAL + machineDelay());
    expect(lease.remaining).toBe(0);
    await expect(lease.unlock()).rejects.toMatchObject({ name: 'LockLostError', reason });
    // The key of another owner is not touched.
    if (reason === 'stolen') expect(await redis.admin.exists(name)).toBe(1);
    await redis.admin.del(name);
    // One changed key in a batch does not affect the others.
    if (command !== 'FLUSHALL') {
      expect(spared.signal.aborted).toBe(false);
      await spared.unlock();
    }
  });

  it('P6: EXPIRE: the next renewal restores a shorter ttl; a longer one is kept and does not extend the lease', async () => {
    const lease = await locks.registry.obtain('key').lock();
    await redis.admin.pExpire(name, TTL / 2);
    await until(async () => (await redis.admin.pTTL(name)) > TTL / 2, { within: NEXT_RENEWAL });
    await redis.admin.pExpire(name, 60_000);
    await until(() => lease.remaining > TTL);
    expect(await redis.admin.pTTL(name)).toBeGreaterThan(lease.remaining);
    await lease.unlock();
    expect(await redis.admin.exists(name)).toBe(0);
  });
});
