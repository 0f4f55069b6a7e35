import { beforeAll, beforeEach, expect, it } from '@jest/globals';
import { CLIENT_KINDS, clientKinds, describePrivate, PrivateRedis } from '../support/private-redis';
import type { FaultyProxy } from '../support/proxy';
import type { TestClient } from '../support/redis';
import { until } from '../support/until';
import { createRegistry, lossOf, type WitnessedRegistry } from '../support/witness';

const TTL = 1_000;

describePrivate.each(CLIENT_KINDS)('%s loses its connection while it renews', (kind) => {
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
    site = createRegistry(await clientKinds[kind](proxy.address), { expireAfter: TTL, fencing: true });
    const lease = await site.registry.obtain('warm-up').lock();
    await lease.renew();
    await lease.unlock();
  });

  it.each(['loseReply', 'loseRequest'] as const)(
    'P6: %s: unknown, tried again, renewed; the holder does not notice',
    async (lose) => {
      const lease = await site.registry.obtain('key').lock();
      await proxy[lose](site.nameOf('key'));
      const before = lease.remaining;
      await until(() => lease.remaining > before);
      expect(lease.signal.aborted).toBe(false);
      expect(await admin.pTTL(site.nameOf('key'))).toBeGreaterThan(lease.remaining - 5);
      await lease.unlock();
      expect(site.warnings).toEqual([]);
    },
  );

  it('P4 P6: every time: unconfirmed by the deadline, and not before', async () => {
    const startedAt = performance.now();
    const lease = await site.registry.obtain('key').lock();
    const loss = lossOf(lease);
    let over = false;
    const cutting = (async () => {
      while (!over) await Promise.race([proxy.loseRequest(site.nameOf('key')), loss]);
    })();
    const { reason, at } = await loss;
    over = true;
    await cutting;
    expect(reason).toBe('unconfirmed');
    expect(at - startedAt).toBeGreaterThan(TTL - 10);
    expect(at - startedAt).toBeLessThan(TTL + 200);
    await expect(lease.unlock()).rejects.toMatchObject({ name: 'LockLostError', reason: 'unconfirmed' });
  });

  it('P6: a renewal on request says that it is unknown, and leaves `remaining` as it was', async () => {
    const lease = await site.registry.obtain('key').lock({ ttl: 10_000 });
    const lost = proxy.loseReply(site.nameOf('key'));
    await expect(lease.renew(20_000)).rejects.toMatchObject({ name: 'CannotAcquireLockError' });
    await lost;
    expect(lease.remaining).toBeLessThan(10_000);
    expect(lease.remaining).toBeGreaterThan(5_000);
    await lease.renew(20_000);
    expect(lease.remaining).toBeGreaterThan(15_000);
    await lease.unlock();
  });
});
