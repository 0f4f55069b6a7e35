import { expect, it } from '@jest/globals';
import { createSentinel as createSentinel5 } from 'redis5';
import { NotReplicatedError, type RedisClient, RedisLockRegistry } from '../../../lib';
import { hashSlot } from '../../../lib/redis/cluster';
import { type ClusterServers, startCluster } from '../../support/cluster';
import { machineDelay } from '../../support/machine-delay';
import { createPool } from '../../support/pool';
import { atTheEnd, describePrivate, untilTheEnd } from '../../support/private-redis';
import { startSentinel } from '../../support/sentinel';
import { createRegistry, elapsed } from '../../support/test-registry';
import { until } from '../../support/until';
import { ReplicaFixture } from './replica-fixture';

/** ms; far more than one round trip, far less than any default. */
const SOON = 1_000;

/** ms; a replica on a busy machine has answered by then. */
const TIMEOUT = 1_000;

const make = (client: unknown, options: object) => () =>
  new RedisLockRegistry(client as RedisClient, { registryKey: 'orders', ...options });

it.each<[string, () => unknown, string]>([
  ['a pool', () => createPool({}, { minimum: 1 }), 'no pool'],
  [
    'a sentinel of node-redis 5',
    () => createSentinel5({ name: 'locks', sentinelRootNodes: [{ host: '127.0.0.1', port: 1 }] }),
    'an instance of',
  ],
])('minReplicas with %s, which has no connection for it: the constructor says so', (_name, client, shown) => {
  const constructing = make(client(), { minReplicas: 2 });
  expect(constructing).toThrow(TypeError);
  expect(constructing).toThrow('`client`');
  expect(constructing).toThrow('minReplicas 2');
  expect(constructing).toThrow(shown);
  expect(make(client(), { minReplicas: 0 })).not.toThrow();
});

describePrivate('minReplicas beyond the replicas there are', () => {
  const alone = ReplicaFixture.install(0);
  const fixture = ReplicaFixture.install(1);

  async function saysSo(servers: ReplicaFixture, minReplicas: number, acknowledged: number): Promise<void> {
    const { registry, warnings } = await servers.registry({ minReplicas, replicaTimeout: TIMEOUT });
    await registry
      .obtain('warm-up')
      .tryLock()
      .catch(() => undefined);
    const locking = registry.obtain('key').tryLock();
    const took = await elapsed(locking);
    expect(took).toBeLessThan(TIMEOUT + SOON + machineDelay());
    await expect(locking).rejects.toMatchObject({
      name: 'CannotAcquireLockError',
      message: `Lock "key" could not be acquired: ${acknowledged} of ${minReplicas} replicas acknowledged the acquisition within ${TIMEOUT} ms`,
      cause: { wanted: minReplicas, acknowledged },
    });
    const waiting = registry.obtain('key').lock({ waitTime: 2_000 });
    const settled = expect(waiting).rejects.toMatchObject({ cause: expect.any(NotReplicatedError) });
    const askedAt = performance.now();
    await until(() => warnings.some(({ code }) => code === 'NOT_REPLICATED'));
    expect(performance.now() - askedAt).toBeLessThan(TIMEOUT + SOON + machineDelay());
    await settled;
  }

  it('minReplicas beyond the replicas there are: none, and one of three: says so within replicaTimeout', async () => {
    await Promise.all([saysSo(alone, 1, 0), saysSo(fixture, 3, 1)]);
  });
});

describePrivate('a sentinel that names a dead master', () => {
  it('A sentinel that names a dead master: an acquisition rejects in time, with minReplicas or without', async () => {
    const sentinel = await untilTheEnd(startSentinel());
    const client = await sentinel.connect();
    atTheEnd(() => client.destroy());
    const registries = [0, 1].map(
      (minReplicas) => createRegistry(client, { minReplicas, replicaTimeout: 50 }).registry,
    );
    for (const registry of registries) {
      await registry
        .obtain('warm-up')
        .tryLock()
        .catch(() => undefined);
    }
    await sentinel.nodes[0]?.kill();
    const late = registries.map(async (registry) => {
      const locking = registry.obtain('key').lock({ waitTime: 1_000 });
      const took = await elapsed(locking);
      await expect(locking).rejects.toMatchObject({ name: 'CannotAcquireLockError' });
      expect(took).toBeLessThan(1_000 + SOON + machineDelay());
    });
    await Promise.all(late);
  });
});

describePrivate('a cluster with a slot that no node serves', () => {
  let servers: ClusterServers | undefined;

  const cluster = async () => {
    if (servers !== undefined) return servers;
    servers = await untilTheEnd(startCluster());
    for (const node of servers.masters) await node.send('CONFIG', 'SET', 'cluster-require-full-coverage', 'no');
    return servers;
  };

  it.each([
    ['that connected before', 0, true],
    ['that connected before', 1, true],
    ['that connected later', 0, false],
    ['that connected later', 1, false],
  ])(
    'A cluster with a slot that no node serves, for a client %s, minReplicas %d: the error names the slot, in time',
    async (_name, minReplicas, isBefore) => {
      const { masters, ownersOf, connect } = await cluster();
      const registryKey = `orders-${minReplicas}-${isBefore}`;
      const { slot } = await ownersOf(`${registryKey}:key`);
      expect(hashSlot(`${registryKey}:key`)).toBe(slot);
      const early = isBefore ? await connect() : undefined;
      for (const node of masters) await node.send('CLUSTER', 'DELSLOTS', String(slot)).catch(() => undefined);
      const client = early ?? (await connect());
      const { registry } = createRegistry(client, { registryKey, minReplicas, replicaTimeout: 50 });
      const locking = registry.obtain('key').lock({ waitTime: 500 });
      const took = await elapsed(locking);
      await expect(locking).rejects.toMatchObject({
        name: 'CannotAcquireLockError',
        message: expect.stringMatching(new RegExp(`slot ${slot}\\b`)),
      });
      expect(took).toBeLessThan(500 + SOON + machineDelay());
      client.destroy();
    },
  );
});
