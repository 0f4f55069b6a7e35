import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { type ClusterServers, startCluster } from '../support/cluster';
import { LOCK_TYPES } from '../support/lock-types';
import { describePrivate, PrivateRedis } from '../support/private-redis';
import { createRegistry } from '../support/test-registry';
import { entersWithZombieGrant } from '../support/zombie-grant';

// A grant that is asked for once more is refused: the server has learned by then that it was replaced.
describePrivate('a cluster master that was replaced while it was frozen wakes up', () => {
  let cluster: ClusterServers;

  beforeAll(async () => {
    cluster = await startCluster({ replicas: true });
  });

  afterAll(() => cluster.stop());

  it.each(LOCK_TYPES)(
    'P3: and grants a %s lock that another process has: nobody enters with that',
    async (lockType) => {
      expect(await entersWithZombieGrant(cluster, lockType)).toBe(false);
    },
  );
});

describePrivate('a server was frozen for a moment, and was not replaced', () => {
  it.each(LOCK_TYPES)('P1: a %s lock that it grants late is entered, with one key and its token', async (lockType) => {
    const redis = await PrivateRedis.start();
    const admin = await redis.connect();
    const { registry, nameOf } = createRegistry(await redis.connect(), { lockType, fencing: true });
    await (await registry.obtain('key').lock()).unlock();
    for (const options of [undefined, { waitTime: 5_000 }, { waitTime: 0 }]) {
      redis.freeze();
      const locking = registry.obtain('key').lock(options);
      await new Promise((resolve) => setTimeout(resolve, 700));
      redis.thaw();
      const lease = await locking;
      expect(lease.fencingToken).toBeGreaterThan(0);
      await lease.unlock();
      expect(await admin.exists(nameOf('key'))).toBe(0);
    }
  });
});
