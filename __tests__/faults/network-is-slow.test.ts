import { beforeAll, beforeEach, expect, it } from '@jest/globals';
import { connectTo, describePrivate, PrivateRedis } from '../support/private-redis';
import type { FaultyProxy } from '../support/proxy';
import type { TestClient } from '../support/redis';
import { until } from '../support/until';
import { createRegistry, type WitnessedRegistry } from '../support/witness';

describePrivate('the network is slow', () => {
  let redis: PrivateRedis;
  let admin: TestClient;
  let proxy: FaultyProxy;
  let site: WitnessedRegistry;

  beforeAll(async () => {
    redis = await PrivateRedis.start();
    admin = await redis.connect();
  });

  beforeEach(async () => {
    proxy = await redis.proxy();
    site = createRegistry(await connectTo(proxy.address), { expireAfter: 3_000, commandTimeout: 2_000 });
    await (await site.registry.obtain('warm-up').lock()).unlock();
  });

  it('P3: the time of the round trip is taken off the lease', async () => {
    proxy.requests.delay = 100;
    proxy.replies.delay = 150;
    const lease = await site.registry.obtain('key').lock();
    expect(lease.remaining).toBeLessThanOrEqual(3_000 - 250);
    expect(lease.remaining).toBeGreaterThan(2_000);
    expect(await admin.pTTL(site.nameOf('key'))).toBeGreaterThan(lease.remaining);
    await lease.unlock();
  });

  it('P3: jitter and single bytes change nothing', async () => {
    proxy.requests.bytewise = true;
    proxy.replies.bytewise = true;
    let noisy = true;
    const noise = (async () => {
      while (noisy) {
        proxy.requests.delay = Math.random() * 20;
        proxy.replies.delay = Math.random() * 20;
        await new Promise(setImmediate);
      }
    })();
    for (let i = 0; i < 5; i++) {
      const lease = await site.registry.obtain('key').lock();
      await lease.renew();
      await lease.unlock();
    }
    noisy = false;
    await noise;
    expect(await admin.exists(site.nameOf('key'))).toBe(0);
    expect(site.warnings).toEqual([]);
  });

  it('P3: a reply that is slower than the ttl is no lease, and leaves no key', async () => {
    proxy.replies.delay = 150;
    await expect(site.registry.obtain('key').tryLock({ ttl: 100 })).rejects.toMatchObject({
      name: 'CannotAcquireLockError',
    });
    await until(async () => (await admin.exists(site.nameOf('key'))) === 0);
  });

  it('P2 P3: a reply that comes after the caller gave up is undone, long before the ttl ends', async () => {
    proxy.replies.hold = true;
    await expect(site.registry.obtain('key').lock({ ttl: 30_000, waitTime: 100 })).rejects.toMatchObject({
      name: 'CannotAcquireLockError',
    });
    expect(await admin.exists(site.nameOf('key'))).toBe(1);
    proxy.replies.hold = false;
    await until(async () => (await admin.exists(site.nameOf('key'))) === 0);
  });

  it('P2: a request that arrives long after the caller gave up is undone', async () => {
    proxy.requests.hold = true;
    await expect(site.registry.obtain('key').lock({ ttl: 30_000, waitTime: 100 })).rejects.toMatchObject({
      name: 'CannotAcquireLockError',
    });
    expect(await admin.exists(site.nameOf('key'))).toBe(0);
    proxy.requests.hold = false;
    // An answer over the same connection comes after all that was held.
    await (await site.registry.obtain('other').lock()).unlock();
    await until(async () => (await admin.exists(site.nameOf('key'))) === 0);
  });

  it('P6: a renewal that is slow is a renewal', async () => {
    const lease = await site.registry.obtain('key').lock();
    proxy.replies.delay = 300;
    await until(() => lease.remaining < 1_900);
    await until(() => lease.remaining > 2_000);
    expect(lease.remaining).toBeLessThanOrEqual(3_000 - 300);
    await lease.unlock();
  });
});
