import { beforeAll, beforeEach, expect, it } from '@jest/globals';
import { CLIENT_KINDS, clientKinds, describePrivate, PrivateRedis } from '../support/private-redis';
import type { FaultyProxy } from '../support/proxy';
import type { TestClient } from '../support/redis';
import { until } from '../support/until';
import { createRegistry, elapsed, lossOf, type WitnessedRegistry } from '../support/witness';

describePrivate.each(CLIENT_KINDS)('the network of %s is a black hole', (kind) => {
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
    site = createRegistry(await clientKinds[kind](proxy.address), {
      expireAfter: 1_000,
      commandTimeout: 400,
      unavailableAfter: 700,
    });
    await (await site.registry.obtain('warm-up').lock()).unlock();
  });

  it('P1: acquisitions settle by their deadlines: waitTime, commandTimeout, unavailableAfter', async () => {
    proxy.blackHole = true;
    const acquisitions = {
      lockFor200: site.registry.obtain('a').lock({ waitTime: 200 }),
      tryLock: site.registry.obtain('b').tryLock(),
      lock: site.registry.obtain('c').lock(),
      queued: site.registry.obtain('c').lock({ waitTime: 300 }),
    };
    const rejected = Promise.all(
      Object.values(acquisitions).map((acquisition) =>
        expect(acquisition).rejects.toMatchObject({ name: 'CannotAcquireLockError' }),
      ),
    );
    const [lockFor200, tryLock, lock, queued] = await Promise.all(Object.values(acquisitions).map(elapsed));
    await rejected;
    expect(lockFor200).toBeLessThan(200 + 200);
    expect(tryLock).toBeLessThan(400 + 200);
    expect(lock).toBeLessThan(700 + 200);
    expect(lock).toBeGreaterThan(600);
    expect(queued).toBeLessThan(300 + 200);
  });

  it('P1: an abort settles at once', async () => {
    proxy.blackHole = true;
    const stop = new AbortController();
    const locking = site.registry.obtain('key').lock({ signal: stop.signal });
    const rejected = expect(locking).rejects.toBe('enough');
    const bytes = proxy.requests.bytes;
    await until(() => proxy.requests.bytes > bytes);
    stop.abort('enough');
    expect(await elapsed(locking)).toBeLessThan(50);
    await rejected;
  });

  it('P2: what Redis executed all the same is undone when the network is back', async () => {
    proxy.replies.swallow = true;
    await expect(site.registry.obtain('key').lock({ waitTime: 200, ttl: 30_000 })).rejects.toMatchObject({
      name: 'CannotAcquireLockError',
    });
    expect(await admin.pTTL(site.nameOf('key'))).toBeGreaterThan(20_000);
    proxy.replies.swallow = false;
    proxy.reset();
    await until(async () => (await admin.exists(site.nameOf('key'))) === 0, { within: 5_000 });
  });

  it('P4 P7: the holder is told by the deadline, and its unlock settles', async () => {
    const startedAt = performance.now();
    const lease = await site.registry.obtain('key').lock();
    const unlocked = await site.registry.obtain('other').lock();
    proxy.blackHole = true;
    const unlocking = unlocked.unlock();
    const rejected = expect(unlocking).rejects.toMatchObject({ name: 'LockReleaseError' });
    expect(await elapsed(unlocking)).toBeLessThan(400 + 200);
    await rejected;
    const { reason, at } = await lossOf(lease);
    expect(reason).toBe('unconfirmed');
    expect(at - startedAt).toBeLessThan(1_000 + 100);
    const tooLate = lease.unlock();
    const told = expect(tooLate).rejects.toMatchObject({ name: 'LockLostError', reason: 'unconfirmed' });
    expect(await elapsed(tooLate)).toBeLessThan(50);
    await told;
  });

  it('P7: a local caller does not wait for a holder that lost', async () => {
    const lock = site.registry.obtain('key');
    const lease = await lock.lock();
    proxy.blackHole = true;
    await lossOf(lease);
    const bytes = proxy.requests.bytes;
    const next = lock.lock();
    await until(() => proxy.requests.bytes > bytes);
    proxy.blackHole = false;
    proxy.reset();
    const second = await next;
    expect(second.remaining).toBeGreaterThan(0);
    await second.unlock();
  });
});
