import { beforeAll, beforeEach, expect, it } from '@jest/globals';
import { describePrivate, PrivateRedis } from '../support/private-redis';
import type { TestClient } from '../support/redis';
import { createRegistry, lossOf, type TestRegistry } from '../support/test-registry';
import { until } from '../support/until';

const TTL = 900;
const NEXT_RENEWAL = TTL / 3 + 250;

describePrivate('somebody uses redis-cli', () => {
  let redis: PrivateRedis;
  let admin: TestClient;
  let locks: TestRegistry;
  let name: string;

  beforeAll(async () => {
    redis = await PrivateRedis.start();
    admin = await redis.connect();
  });

  beforeEach(async () => {
    locks = createRegistry(await redis.connect(), { expireAfter: TTL });
    name = locks.nameOf('key');
  });

  const damages: Record<string, { what: () => Promise<unknown>; reason: string }> = {
    DEL: { what: () => admin.del(name), reason: 'expired' },
    FLUSHALL: { what: () => admin.flushAll(), reason: 'expired' },
    'SET, by another owner': { what: () => admin.set(name, 'another', { PX: 60_000 }), reason: 'stolen' },
    'SET, of another type': {
      what: () => admin.multi().del(name).hSet(name, 'a', 'b').pExpire(name, 60_000).exec(),
      reason: 'stolen',
    },
    'EXPIRE, at once': { what: () => admin.pExpire(name, 1), reason: 'expired' },
  };

  it.each(Object.keys(damages))('P6: %s: lost at the next renewal', async (command) => {
    const { what, reason } = damages[command] as { what: () => Promise<unknown>; reason: string };
    const startedAt = performance.now();
    const lease = await locks.registry.obtain('key').lock();
    const spared = await locks.registry.obtain('spared').lock();
    await what();
    const loss = await lossOf(lease);
    expect(loss.reason).toBe(reason);
    expect(loss.at - startedAt).toBeLessThan(NEXT_RENEWAL);
    expect(lease.remaining).toBe(0);
    await expect(lease.unlock()).rejects.toMatchObject({ name: 'LockLostError', reason });
    // What stands there now is not ours.
    if (reason === 'stolen') expect(await admin.exists(name)).toBe(1);
    await admin.del(name);
    // One bad key in a batch harms no other.
    if (command !== 'FLUSHALL') {
      expect(spared.signal.aborted).toBe(false);
      await spared.unlock();
    }
  });

  it.each(Object.keys(damages))('P7: %s: told by unlock, when no renewal came before', async (command) => {
    const { what, reason } = damages[command] as { what: () => Promise<unknown>; reason: string };
    const lease = await locks.registry.obtain('key').lock({ ttl: 5_000 });
    await what();
    if (command.startsWith('EXPIRE')) await until(async () => (await admin.exists(name)) === 0);
    await expect(lease.unlock()).rejects.toMatchObject({ name: 'LockLostError', reason });
    expect(lease.signal.aborted).toBe(true);
    await lease.unlock();
    expect(await admin.exists(name)).toBe(reason === 'stolen' ? 1 : 0);
    await admin.del(name);
  });

  it('P6: PERSIST: the next renewal gives the key its time to live again', async () => {
    const lease = await locks.registry.obtain('key').lock();
    await admin.persist(name);
    await until(async () => (await admin.pTTL(name)) > 0, { within: NEXT_RENEWAL });
    expect(lease.signal.aborted).toBe(false);
    await lease.unlock();
  });

  it('P6: EXPIRE, shorter: the next renewal restores it; longer: it is not shortened, nor believed beyond its word', async () => {
    const lease = await locks.registry.obtain('key').lock();
    await admin.pExpire(name, TTL / 2);
    await until(async () => (await admin.pTTL(name)) > TTL / 2, { within: NEXT_RENEWAL });
    await admin.pExpire(name, 60_000);
    await until(() => lease.remaining > TTL);
    expect(await admin.pTTL(name)).toBeGreaterThan(lease.remaining);
    await lease.unlock();
    expect(await admin.exists(name)).toBe(0);
  });

  it('P1: a key without a time to live that nobody holds: waiters keep asking, and enter when it is deleted', async () => {
    await admin.set(name, 'nobody');
    expect(await locks.registry.obtain('key').tryLock()).toBeNull();
    await expect(locks.registry.obtain('key').lock({ waitTime: 300 })).rejects.toMatchObject({
      name: 'LockTimeoutError',
    });
    const locking = locks.registry.obtain('key').lock();
    await admin.del(name);
    await (await locking).unlock();
  });
});
