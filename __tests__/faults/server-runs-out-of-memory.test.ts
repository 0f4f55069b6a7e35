import { beforeEach, expect, it } from '@jest/globals';
import { machineDelay } from '../support/machine-delay';
import { describePrivate, PrivateRedis } from '../support/private-redis';
import type { TestClient } from '../support/redis';
import { createRegistry, elapsed, lossOf, type TestRegistry } from '../support/test-registry';
import { until } from '../support/until';

describePrivate('the server runs out of memory', () => {
  let redis: PrivateRedis;
  let admin: TestClient;
  let locks: TestRegistry;

  beforeEach(async () => {
    redis = await PrivateRedis.start();
    admin = await redis.connect();
    locks = createRegistry(await redis.connect(), { expireAfter: 1_500, fencing: true });
  });

  it('P1 P7: noeviction: an acquisition rejects at once with OOM; renewal, release and waiting still work', async () => {
    const lease = await locks.registry.obtain('key').lock();
    const given = await locks.registry.obtain('given').lock();
    await admin.configSet({ maxmemory: '1', 'maxmemory-policy': 'noeviction' });
    const locking = locks.registry.obtain('free').lock();
    const rejected = expect(locking).rejects.toMatchObject({
      name: 'CannotAcquireLockError',
      message: expect.stringContaining('OOM'),
      cause: { message: expect.stringMatching(/^OOM /) },
    });
    expect(await elapsed(locking)).toBeLessThan(500 + machineDelay());
    await rejected;
    expect(await admin.exists(locks.nameOf('free'))).toBe(0);
    await lease.renew(10_000);
    expect(lease.remaining).toBeGreaterThan(9_000);
    await given.unlock();
    await lease.unlock();
    expect(await admin.exists([locks.nameOf('key'), locks.nameOf('given')])).toBe(0);
    await admin.configSet('maxmemory', '0');
    await (await locks.registry.obtain('free').lock()).unlock();
    expect(locks.warnings).toEqual([]);
  });

  it.each([true, false])(
    'P1: noeviction: a lock of another owner is refused without an error (fencing: %s)',
    async (fencing) => {
      const { registry, nameOf } = createRegistry(await redis.connect(), { fencing });
      await (await registry.obtain('key').lock()).unlock();
      await admin.set(nameOf('key'), 'another', { PX: 60_000 });
      await admin.configSet('maxmemory', '1');
      expect(await registry.obtain('key').tryLock()).toBeNull();
    },
  );

  it('P6: volatile-ttl: locks are evicted first, and the next renewal detects the loss', async () => {
    const lease = await locks.registry.obtain('key').lock({ ttl: 60_000, renew: true });
    const loss = lossOf(lease);
    await admin.configSet({ 'maxmemory-policy': 'volatile-ttl', maxmemory: '1' });
    await until(async () => {
      await admin.set('filler', 'x').catch(() => undefined);
      return (await admin.exists(locks.nameOf('key'))) === 0;
    });
    await admin.configSet('maxmemory', '0');
    // The watchdog would renew in 20 s; the holder renews explicitly.
    await expect(lease.renew()).rejects.toMatchObject({ name: 'LockLostError', reason: 'expired' });
    expect((await loss).reason).toBe('expired');
    await expect(lease.unlock()).rejects.toMatchObject({ name: 'LockLostError' });
  });
});
