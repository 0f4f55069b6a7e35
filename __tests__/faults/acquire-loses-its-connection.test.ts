import { beforeAll, beforeEach, expect, it } from '@jest/globals';
import { CLIENT_KINDS, clientKinds, describePrivate, PrivateRedis } from '../support/private-redis';
import type { FaultyProxy } from '../support/proxy';
import type { TestClient } from '../support/redis';
import { until } from '../support/until';
import { createRegistry, type WitnessedRegistry } from '../support/witness';

describePrivate.each(CLIENT_KINDS)('%s loses its connection while it acquires', (kind) => {
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
    site = createRegistry(await clientKinds[kind](proxy.address), { fencing: true });
    // From now on the server knows the scripts: the request that is lost is the acquisition and not its NOSCRIPT.
    await (await site.registry.obtain('warm-up').lock()).unlock();
  });

  it('P1 P11: after the server ran it: a lease within one reconnect, with the token that was minted at first', async () => {
    const before = proxy.connections;
    const lost = proxy.loseReply(site.nameOf('key'));
    const locking = site.registry.obtain('key').lock();
    await lost;
    const minted = await admin.get(`{${site.nameOf('key')}}:fence`);
    const lease = await locking;
    expect(proxy.connections - before).toBeLessThanOrEqual(1);
    expect(String(lease.fencingToken)).toBe(minted);
    await lease.unlock();
    expect(await admin.exists(site.nameOf('key'))).toBe(0);
    expect(site.warnings).toEqual([]);
  });

  it('P1: before the server read it: acquired once', async () => {
    const before = proxy.connections;
    const lost = proxy.loseRequest(site.nameOf('key'));
    const locking = site.registry.obtain('key').lock();
    await lost;
    const lease = await locking;
    expect(proxy.connections - before).toBeLessThanOrEqual(1);
    expect(await admin.get(`{${site.nameOf('key')}}:fence`)).toBe(String(lease.fencingToken));
    await lease.unlock();
    expect(await admin.exists(site.nameOf('key'))).toBe(0);
  });

  it('P2: a single attempt whose reply is lost is an error, and its key is deleted', async () => {
    const lost = proxy.loseReply(site.nameOf('key'));
    await expect(site.registry.obtain('key').tryLock()).rejects.toMatchObject({ name: 'CannotAcquireLockError' });
    await lost;
    await until(async () => (await admin.exists(site.nameOf('key'))) === 0);
  });

  it('P2: a caller that gave up before its reply was lost leaves no key', async () => {
    proxy.replies.hold = true;
    const stop = new AbortController();
    const rejected = expect(site.registry.obtain('key').lock({ signal: stop.signal })).rejects.toBe('enough');
    await until(() => admin.exists(site.nameOf('key')));
    stop.abort('enough');
    await rejected;
    proxy.reset();
    proxy.replies.hold = false;
    await until(async () => (await admin.exists(site.nameOf('key'))) === 0);
  });
});
