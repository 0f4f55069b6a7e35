import { beforeAll, beforeEach, expect, it } from '@jest/globals';
import { CLIENT_KINDS, clientKinds, describePrivate, PrivateRedis } from '../support/private-redis';
import type { FaultyProxy } from '../support/proxy';
import type { TestClient } from '../support/redis';
import { until } from '../support/until';
import { createRegistry, elapsed, type WitnessedRegistry } from '../support/witness';

describePrivate.each(CLIENT_KINDS)('%s loses its connection while it releases', (kind) => {
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
    site = createRegistry(await clientKinds[kind](proxy.address), { commandTimeout: 1_000 });
    // From now on the server knows the scripts: the request that is lost is the release and not its NOSCRIPT.
    await (await site.registry.obtain('warm-up').lock()).unlock();
  });

  it('P7: after the server ran it: a warning and not a loss, and a second unlock does nothing', async () => {
    const lease = await site.registry.obtain('key').lock();
    const lost = proxy.loseReply(site.nameOf('key'));
    await lease.unlock();
    await lost;
    expect(await admin.exists(site.nameOf('key'))).toBe(0);
    expect(site.warnings).toMatchObject([{ code: 'RELEASE_UNCERTAIN', key: 'key' }]);
    expect(lease.signal.aborted).toBe(false);
    await admin.set(site.nameOf('key'), 'another');
    await lease.unlock();
    expect(await admin.get(site.nameOf('key'))).toBe('another');
  });

  it('P7: after the server ran it, and another owner came at once: the key stays theirs', async () => {
    const lease = await site.registry.obtain('key').lock();
    proxy.replies.hold = true;
    const unlocking = lease.unlock();
    await until(async () => (await admin.exists(site.nameOf('key'))) === 0);
    await admin.set(site.nameOf('key'), 'another');
    proxy.reset();
    proxy.replies.hold = false;
    await unlocking;
    expect(await admin.get(site.nameOf('key'))).toBe('another');
    expect(site.warnings).toMatchObject([{ code: 'RELEASE_UNCERTAIN' }]);
  });

  it('P7: before the server read it: repeated, and released without a trace', async () => {
    const lease = await site.registry.obtain('key').lock();
    const lost = proxy.loseRequest(site.nameOf('key'));
    await lease.unlock();
    await lost;
    expect(await admin.exists(site.nameOf('key'))).toBe(0);
    expect(site.warnings).toEqual([]);
  });

  it('P7: for good: settles within its bound, the local turn is free, and the key goes when Redis is back', async () => {
    const lock = site.registry.obtain('key');
    const lease = await lock.lock();
    proxy.refuse();
    proxy.reset();
    const unlocking = lease.unlock();
    const rejected = expect(unlocking).rejects.toMatchObject({ name: 'LockReleaseError', key: 'key' });
    const next = lock.lock({ waitTime: 10_000 });
    expect(await elapsed(unlocking)).toBeLessThan(1_000 + 300);
    await rejected;
    expect(await admin.exists(site.nameOf('key'))).toBe(1);
    await proxy.accept();
    // The same process enters as soon as its own late release, or its own owner value, lets it.
    const second = await next;
    await second.unlock();
    await until(async () => (await admin.exists(site.nameOf('key'))) === 0);
  });
});
