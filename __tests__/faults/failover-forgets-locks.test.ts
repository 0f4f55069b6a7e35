import { setTimeout as pause } from 'node:timers/promises';
import { describe, expect, it } from '@jest/globals';
import type { Lease } from '../../lib';
import { startCluster } from '../support/cluster';
import { DISTINCT_TYPES } from '../support/lock-types';
import { machineDelay } from '../support/machine-delay';
import type { Node } from '../support/node';
import { CLIENT_KINDS, clientKinds, describePrivate, installed, PrivateRedis } from '../support/private-redis';
import { startSentinel } from '../support/sentinel';
import { scriptsRun } from '../support/server-load';
import { createRegistry, lossOf } from '../support/test-registry';
import { until } from '../support/until';

/** ms; a third of it is far more than a failover takes, so that no ordinary renewal finds the loss. */
const TTL = 180_000;

/** ms from the moment at which the client reaches the server that forgot the locks to the loss. */
const SOON = 1_000;

const KEYS = ['{key}1', '{key}2', '{key}3'];

/** Empties a replica only, as if the master had failed before it replicated anything. */
async function forget(replica: Node): Promise<void> {
  await replica.send('CONFIG', 'SET', 'replica-read-only', 'no');
  await replica.send('FLUSHALL');
}

/** `reached` resolves when the client gets an answer of that server. */
async function expectLostSoon(leases: readonly Lease[], reached: Promise<unknown>): Promise<void> {
  const losses = Promise.all(leases.map(lossOf));
  await reached;
  const reachedAt = performance.now();
  for (const { reason, at } of await losses) {
    expect(reason).toBe('expired');
    expect(at - reachedAt).toBeLessThan(SOON + machineDelay());
  }
}

/** Resolves when the client gets an answer. */
function reachedBy(client: { get(key: string): Promise<unknown> }, key: string): Promise<unknown> {
  const ask = () => Promise.race([client.get(key).then(String, () => undefined), pause(500)]);
  return until(ask, { within: 20_000 });
}

describePrivate('a failover or restart forgets the locks of a process', () => {
  it.each(CLIENT_KINDS)('P6: %s: each lease is lost as soon as the server is back without its data', async (kind) => {
    const redis = await PrivateRedis.start();
    const { registry } = createRegistry(await clientKinds[kind](redis.address), { expireAfter: TTL });
    const leases = await Promise.all(KEYS.map((key) => registry.obtain(key).lock()));
    await redis.kill();
    await expectLostSoon(leases, redis.revive());
  });

  it('P6: a sentinel client: each lease is lost as soon as it reaches the new master', async () => {
    const sentinel = await startSentinel({ replicas: 1 });
    const client = await sentinel.connect();
    const { registry } = createRegistry(client, { expireAfter: TTL });
    const leases = await Promise.all(KEYS.map((key) => registry.obtain(key).lock()));
    const [master, replica] = sentinel.nodes as [Node, Node];
    await forget(replica);
    await master.kill();
    await expectLostSoon(leases, reachedBy(client, 'any'));
    await client.destroy();
    await sentinel.stop();
  });

  describe('a cluster client', () => {
    const cluster = installed(() => startCluster({ replicas: true }));

    it.each(['killed', 'frozen, and demoted when it wakes'])(
      'P6: whose master is %s: each lease is lost as soon as it reaches the new one',
      async (how) => {
        const client = await cluster().connect();
        // Names in the slots of two masters.
        const tag = how === 'killed' ? '{a}' : '{b}';
        const { registry, nameOf } = createRegistry(client, { expireAfter: TTL });
        const leases = await Promise.all([1, 2, 3].map((i) => registry.obtain(`${tag}${i}`).lock()));
        const { master, replica } = (await cluster().ownersOf(nameOf(tag))) as { master: Node; replica: Node };
        await forget(replica);
        if (how === 'killed') await master.kill();
        else master.freeze();
        await replica.send('CLUSTER', 'FAILOVER', 'TAKEOVER');
        await until(async () => String(await replica.send('ROLE')).startsWith('master'), { within: 20_000 });
        if (how !== 'killed') master.thaw();
        await expectLostSoon(leases, reachedBy(client, nameOf(tag)));
        client.destroy();
      },
    );
  });
});

describePrivate.each(DISTINCT_TYPES)('The connection of a process with %s locks comes back', (lockType) => {
  it('P6: to a server that kept its data: each lease is confirmed, and none is shortened', async () => {
    const redis = await PrivateRedis.start();
    const admin = await redis.connect();
    const client = await redis.connect();
    const { registry, nameOf } = createRegistry(client, { lockType, expireAfter: 60_000 });
    const renewed = await registry.obtain('renewed').lock();
    const fixed = await registry.obtain('fixed').lock({ ttl: 30_000 });
    const id = await client.clientId();
    const before = await scriptsRun(admin);
    await admin.sendCommand(['CLIENT', 'KILL', 'ID', String(id)]);
    // One command asks about all of them.
    await until(async () => (await scriptsRun(admin)) > before, { within: SOON + 2_000 });
    await client.ping();
    expect(renewed.remaining).toBeGreaterThan(50_000);
    expect(fixed.remaining).toBeGreaterThan(20_000);
    expect(fixed.remaining).toBeLessThanOrEqual(30_000);
    expect(await admin.pTTL(nameOf('fixed'))).toBeLessThanOrEqual(30_000);
    for (const lease of [renewed, fixed]) {
      expect(lease.signal.aborted).toBe(false);
      await lease.unlock();
    }
  });
});
