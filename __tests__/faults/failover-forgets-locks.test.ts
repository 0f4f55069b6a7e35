import { setTimeout as pause } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import type { Lease } from '../../lib';
import { type ClusterServers, startCluster } from '../support/cluster';
import { machineDelay } from '../support/machine-delay';
import type { Node } from '../support/node';
import { CLIENT_KINDS, clientKinds, describePrivate, PrivateRedis } from '../support/private-redis';
import { startSentinel } from '../support/sentinel';
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
    let cluster: ClusterServers;

    beforeAll(async () => {
      cluster = await startCluster({ replicas: true });
    });

    afterAll(() => cluster.stop());

    it.each(['killed', 'frozen, and demoted when it wakes'])(
      'P6: whose master is %s: each lease is lost as soon as it reaches the new one',
      async (how) => {
        const client = await cluster.connect();
        // Names in the slots of two masters.
        const tag = how === 'killed' ? '{a}' : '{b}';
        const { registry, nameOf } = createRegistry(client, { expireAfter: TTL });
        const leases = await Promise.all([1, 2, 3].map((i) => registry.obtain(`${tag}${i}`).lock()));
        const { master, replica } = (await cluster.ownersOf(nameOf(tag))) as { master: Node; replica: Node };
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
