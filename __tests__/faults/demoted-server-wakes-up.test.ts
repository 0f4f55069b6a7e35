import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { type ClusterServers, startCluster } from '../support/cluster';
import { LOCK_TYPES } from '../support/lock-types';
import type { Node } from '../support/node';
import { describePrivate, PrivateRedis } from '../support/private-redis';
import { uniqueKey } from '../support/redis';
import { createRegistry } from '../support/test-registry';
import { until } from '../support/until';

// A grant that is asked for once more is refused: the server has learned by then that it was replaced.
describePrivate('a cluster master that was replaced while it was frozen wakes up', () => {
  let cluster: ClusterServers;

  beforeAll(async () => {
    cluster = await startCluster({ replicas: true });
  });

  afterAll(() => cluster.stop());

  async function roleOf(node: Node): Promise<string> {
    return String(await node.send('ROLE')).split(',')[0] as string;
  }

  it.each(LOCK_TYPES)(
    'P3: and grants a %s lock that another process has: nobody enters with that',
    async (lockType) => {
      const registryKey = uniqueKey('zombie');
      const { registry: first, nameOf } = createRegistry(await cluster.connect(), { registryKey, lockType });
      const { master, replica } = (await cluster.ownersOf(nameOf('key'))) as { master: Node; replica: Node };
      const [old, next] = (await roleOf(master)) === 'master' ? [master, replica] : [replica, master];
      await (await first.obtain('key').lock()).unlock();
      old.freeze();
      const waiting = first.obtain('key').lock();
      let isIn = false;
      const entered = waiting.then(() => {
        isIn = true;
      });
      await next.send('CLUSTER', 'FAILOVER', 'TAKEOVER');
      await until(async () => (await roleOf(next)) === 'master');
      // Later than half a second after the request.
      await new Promise((resolve) => setTimeout(resolve, 700));
      const { registry: second } = createRegistry(await cluster.connect({ rootNodes: [{ socket: next.address }] }), {
        registryKey,
        lockType,
      });
      const held = await second.obtain('key').lock();
      old.thaw();
      await until(async () => (await roleOf(old)) === 'slave', { within: 20_000 });
      await new Promise((resolve) => setTimeout(resolve, 500));
      expect(isIn).toBe(false);
      held.assertHeld();
      await held.unlock();
      await entered;
      await (await waiting).unlock();
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
