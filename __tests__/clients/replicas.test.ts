import { afterEach, expect, it } from '@jest/globals';
import { NotReplicatedError, RedisLockRegistry } from '../../lib';
import { fromIoredis } from '../../lib/clients/ioredis';
import type { ClusterIoredis } from '../../lib/clients/ioredis/instance';
import { ReplicaFixture } from '../redis/replicas/replica-fixture';
import { startCluster } from '../support/cluster';
import { type IoredisPackage, packages } from '../support/ioredis-packages';
import { describePrivate } from '../support/private-redis';
import { uniqueKey } from '../support/redis';
import { until } from '../support/until';

const each = packages.map((one): [string, IoredisPackage] => [one.name, one]);

/** ms; long enough that a busy machine replicates in time. */
const LONG = 10_000;

describePrivate('minReplicas', () => {
  const fixture = ReplicaFixture.install(1);

  afterEach(() => fixture.follow());

  it.each(each)('minReplicas are waited for over a connection of our own, through %s', async (_name, { single }) => {
    const instance = single({ ...fixture.master.address });
    const registryKey = uniqueKey();
    const open = (replicaTimeout: number) =>
      new RedisLockRegistry(fromIoredis(instance), { registryKey, minReplicas: 1, replicaTimeout });
    const registry = open(LONG);
    const lease = await registry.obtain('key').lock();
    const replica = await fixture.connect(fixture.replica);
    expect(await replica.get(`${registryKey}:key`)).toMatch(new RegExp(`^${registry.id}:`));
    await lease.unlock();
    fixture.holdUp();
    const impatient = open(50);
    const error = await impatient
      .obtain('key')
      .tryLock()
      .catch((reason: unknown) => reason);
    expect((error as Error).cause).toBeInstanceOf(NotReplicatedError);
    await Promise.all([registry.close(), impatient.close()]);
    instance.disconnect();
  });
});

describePrivate('minReplicas of a cluster', () => {
  it('minReplicas of a cluster are waited for on the master of the key', async () => {
    const servers = await startCluster({ replicas: true });
    const [{ cluster }] = packages as [IoredisPackage];
    // It connects with its first command.
    const instance = cluster(
      servers.masters.map(({ address }) => ({ ...address })),
      { lazyConnect: true },
    );
    const options = { registryKey: uniqueKey(), minReplicas: 1, replicaTimeout: LONG, commandTimeout: 30_000 };
    const registry = new RedisLockRegistry(fromIoredis(instance), options);
    for (const key of ['a', 'b', 'c', 'd']) {
      const lease = await registry.obtain(key).lock();
      const { replica } = await servers.ownersOf(`${options.registryKey}:${key}`);
      expect(await replica?.send('KEYS', `${options.registryKey}:${key}`)).toHaveLength(1);
      await lease.unlock();
    }
    // ioredis forgets a node whose connection it has lost.
    const { master } = await servers.ownersOf(`${options.registryKey}:a`);
    await master.send('CLIENT', 'KILL', 'TYPE', 'normal');
    await until(() => (instance as unknown as ClusterIoredis).nodes('master').length === 2);
    // A connection of the registry's own may be lost a moment later.
    await (await registry.obtain('a').lock({ waitTime: 3_000 })).unlock();
    await registry.close();
    instance.disconnect();
    await servers.stop();
  });
});
