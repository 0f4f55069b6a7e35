import { afterAll, afterEach, beforeAll, beforeEach, expect, it } from '@jest/globals';
import { FaultyProxy } from '../../support/proxy';
import { connectTo, describePrivate } from '../support/private-redis';
import type { TestClient } from '../support/redis';
import { type SentinelServers, startSentinel, type TestSentinel } from '../support/sentinel';
import { callsOf } from '../support/server-load';
import { createRegistry, type TestRegistry } from '../support/test-registry';

// A sentinel client that is disconnected while it waits for a reply executes the command again, and resolves normally.
describePrivate('a sentinel client repeats the command whose reply was lost', () => {
  let sentinel: SentinelServers;
  let proxy: FaultyProxy;
  let admin: TestClient;
  let client: TestSentinel;
  let locks: TestRegistry;
  let name: string;

  beforeAll(async () => {
    sentinel = await startSentinel();
    proxy = await FaultyProxy.start(sentinel.master);
    admin = await connectTo(sentinel.master);
  });

  afterAll(async () => {
    proxy.stop();
    await sentinel.stop();
  });

  beforeEach(async () => {
    const { host, port } = sentinel.master;
    client = await sentinel.connect({ [`${host}:${port}`]: proxy.address });
    locks = createRegistry(client, { expireAfter: 60_000, fencing: true });
    name = locks.nameOf('key');
    const lease = await locks.registry.obtain('warm-up').lock();
    await lease.renew();
    await lease.unlock();
    await admin.configResetStat();
  });

  afterEach(() => client.destroy());

  const executions = () => callsOf(admin, 'evalsha');

  it('P11: an acquisition: the same token, one key, no warning', async () => {
    const lost = proxy.loseReply(name);
    const locking = locks.registry.obtain('key').lock();
    await lost;
    const token = await admin.get(`{${name}}:fence`);
    const lease = await locking;
    // Once more when the silence was so long that the master may have been replaced.
    expect(await executions()).toBeGreaterThanOrEqual(2);
    expect(String(lease.fencingToken)).toBe(token);
    await lease.unlock();
    expect(await admin.exists(name)).toBe(0);
    expect(locks.warnings).toEqual([]);
  });

  it('P6: a renewal: renewed, no warning', async () => {
    const lease = await locks.registry.obtain('key').lock();
    await admin.configResetStat();
    const lost = proxy.loseReply(name);
    // Sometimes node-redis does not repeat it; then its outcome is unknown, and the next renewal succeeds.
    await lease.renew(10_000).catch(() => lease.renew(10_000));
    await lost;
    expect(await executions()).toBe(2);
    expect(lease.remaining).toBeGreaterThan(8_000);
    await lease.unlock();
    expect(locks.warnings).toEqual([]);
  });

  it('P7: a release whose second execution finds no key: a warning, and no loss', async () => {
    for (let i = 1; i <= 5; i++) {
      const lease = await locks.registry.obtain('key').lock();
      await admin.configResetStat();
      const lost = proxy.loseReply(name);
      await lease.unlock();
      await lost;
      expect(await executions()).toBe(2);
      expect(await admin.exists(name)).toBe(0);
      expect(locks.warnings.map(({ code }) => code)).toEqual(Array.from({ length: i }, () => 'RELEASE_UNCERTAIN'));
      expect(lease.signal.aborted).toBe(false);
    }
  });
});
