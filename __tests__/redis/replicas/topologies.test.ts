import { expect, it } from '@jest/globals';
import type { LockType, RedisClient } from '../../../lib';
import { fromIoredis } from '../../../lib/clients/ioredis';
import { NODE_TIMEOUT, SLOTS, startCluster } from '../../support/cluster';
import { type IoredisPackage, packages } from '../../support/ioredis-packages';
import { LOCK_TYPES } from '../../support/lock-types';
import type { Node } from '../../support/node';
import { describePrivate, installed } from '../../support/private-redis';
import { uniqueKey } from '../../support/redis';
import { startSentinel } from '../../support/sentinel';
import { createRegistry } from '../../support/test-registry';
import { until } from '../../support/until';

const OPTIONS = { minReplicas: 1, replicaTimeout: 2_000, expireAfter: 120_000 };

/** Two processes take a lock in turn, and find it on `replica` each time. */
async function takeInTurn(
  clients: readonly RedisClient[],
  lockType: LockType,
  replica: Node,
  registryKey = uniqueKey(),
): Promise<void> {
  const registries = clients.map((client) => createRegistry(client, { ...OPTIONS, lockType, registryKey }));
  let entered = 0;
  const take = (i: number) =>
    registries[i % 2]?.registry.run('key', async () => {
      await replica.send('READONLY').catch(() => undefined);
      expect(await replica.send('EXISTS', `${registryKey}:key`)).toBe(1);
      entered++;
    });
  await Promise.all(Array.from({ length: 6 }, (_, i) => take(i)));
  expect(entered).toBe(6);
}

describePrivate('minReplicas through a sentinel client', () => {
  const sentinel = installed(() => startSentinel({ replicas: 1 }));

  it.each(LOCK_TYPES)('A %s lock is on the replica', async (lockType) => {
    const clients = await Promise.all([sentinel().connect(), sentinel().connect()]);
    await takeInTurn(clients, lockType, sentinel().nodes[1] as Node);
    for (const client of clients) await client.destroy();
  });

  it('A lock with minReplicas goes on after a failover, over a connection to the new master', async () => {
    const client = await sentinel().connect();
    const { registry } = createRegistry(client, OPTIONS);
    await registry.run('before', () => undefined);
    const port = await sentinel().masterPort();
    await sentinel().failover();
    await until(async () => (await sentinel().masterPort()) !== port, { within: 20_000 });
    await registry.run('after', () => undefined, { waitTime: 20_000 });
    await client.destroy();
  });
});

describePrivate('minReplicas through a cluster client', () => {
  const cluster = installed(() => startCluster({ replicas: true, nodeTimeout: NODE_TIMEOUT }));

  const ownersOf = async (key: string) => {
    const { slot, master, replica } = await cluster().ownersOf(key);
    return { slot, master, replica: replica as Node };
  };

  it.each(LOCK_TYPES)('A %s lock is on the replica of its slot', async (lockType) => {
    const clients = await Promise.all([cluster().connect(), cluster().connect()]);
    for (const tag of ['a', 'b', 'c']) {
      const registryKey = uniqueKey(`{${tag}}`);
      const { replica } = await ownersOf(`${registryKey}:key`);
      await takeInTurn(clients, lockType, replica, registryKey);
    }
    for (const client of clients) client.destroy();
  });

  it('minReplicas follows a slot that is being moved (ASK), and one that was moved (MOVED)', async () => {
    const client = await cluster().connect();
    const registryKey = uniqueKey('{moving}');
    const { registry } = createRegistry(client, { ...OPTIONS, registryKey });
    await registry.run('key', () => undefined);
    const { slot, master: source } = await ownersOf(registryKey);
    const target = cluster().masters.find((node) => node !== source) as Node;
    const [sourceId, targetId] = (await Promise.all(
      [source, target].map(async (node) => String(await node.send('CLUSTER', 'MYID'))),
    )) as [string, string];
    await target.send('CLUSTER', 'SETSLOT', String(slot), 'IMPORTING', sourceId);
    await source.send('CLUSTER', 'SETSLOT', String(slot), 'MIGRATING', targetId);
    await target.send('SCRIPT', 'FLUSH'); // as a node that has had none of these locks
    const lease = await registry.obtain('asked').lock({ waitTime: 20_000 });
    expect(await client.exists(`${registryKey}:asked`)).toBe(1);
    await lease.unlock();
    for (const node of [target, source]) await node.send('CLUSTER', 'SETSLOT', String(slot), 'NODE', targetId);
    await registry.run('moved', () => undefined, { waitTime: 20_000 });
    client.destroy();
  });

  it('A lock with minReplicas goes on when a master was killed and its replica took over', async () => {
    const client = await cluster().connect();
    const registryKey = uniqueKey('{killed}');
    const { registry } = createRegistry(client, { ...OPTIONS, minReplicas: 0, registryKey });
    const { registry: strict } = createRegistry(client, { ...OPTIONS, registryKey });
    await strict.run('key', () => undefined);
    const { master, replica } = await ownersOf(registryKey);
    await master.kill();
    await registry.run('key', () => undefined, { waitTime: 30_000 });
    // The new master has no replica until the old one is back. The connection of our own goes to the old one at first.
    const refusal = () =>
      strict
        .obtain('key')
        .lock({ waitTime: 300 })
        .catch(({ cause }: Error) => cause);
    const isUnreplicated = async () => ((await refusal()) as { acknowledged?: number } | undefined)?.acknowledged === 0;
    await until(isUnreplicated, { within: 30_000 });
    await master.restart();
    await until(async () => String(await replica.send('INFO', 'replication')).includes('state=online'), {
      within: 20_000,
    });
    await strict.run('key', () => undefined, { waitTime: 20_000 });
    client.destroy();
  });

  it.each(packages.map((one): [string, IoredisPackage] => [one.name, one]))(
    'A call with minReplicas follows a failover through a cluster of %s, which sends nothing else',
    async (_, of) => {
      const own = of.cluster(cluster().masters.map(({ address }) => ({ ...address })));
      await until(() => own.status === 'ready');
      const registryKey = uniqueKey('{silent}');
      const { registry, warnings } = createRegistry(fromIoredis(own), {
        ...OPTIONS,
        registryKey,
        unavailableAfter: 60_000,
      });
      await registry.run('key', () => undefined);
      const { slot } = await ownersOf(registryKey);
      const isMaster = async (node: Node) => String(await node.send('ROLE')).startsWith('master');
      const owners = cluster().masters.map((master, i) => [master, cluster().replicas[i] as Node]);
      const [first, second] = owners[Math.floor((slot * owners.length) / SLOTS)] as [Node, Node];
      const [old, next] = (await isMaster(first)) ? [first, second] : [second, first];
      await old.kill();
      const waiting = registry.run('key', () => 'ran');
      // The new master grants it, and has no replica until the old one is back.
      await until(() => warnings.some(({ code }) => code === 'NOT_REPLICATED'), { within: 20_000 });
      expect(await isMaster(next)).toBe(true);
      await old.restart();
      expect(await waiting).toBe('ran');
      await registry.close();
      own.disconnect();
    },
  );
});
