import { expect, it } from '@jest/globals';
import type { LockType } from '../../lib';
import { type ClusterServers, startCluster } from '../support/cluster';
import { LOCK_TYPES } from '../support/lock-types';
import type { Node } from '../support/node';
import { describePrivate, installed } from '../support/private-redis';
import { uniqueKey } from '../support/redis';
import { createRegistry } from '../support/test-registry';
import { until } from '../support/until';

/** ms; a grant whose answer takes longer than half a second is requested once more. */
const FROZEN = 700;

/** ms in which a caller enters with the grant of the old master, if it does. */
const ENTERS = 500;

async function roleOf(node: Node): Promise<string> {
  return String(await node.send('ROLE')).split(',')[0] as string;
}

/**
 * A master is frozen with a request to grant a lock, is replaced, and wakes up when another process has the lock of the
 * new master. Resolves to whether the caller entered with that grant. Rejects if the other process lost the lock.
 */
async function entersWithZombieGrant(cluster: ClusterServers, lockType: LockType): Promise<boolean> {
  const registryKey = uniqueKey('zombie');
  const firstClient = await cluster.connect();
  const { registry: first, nameOf } = createRegistry(firstClient, { registryKey, lockType });
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
  await new Promise((resolve) => setTimeout(resolve, FROZEN));
  const secondClient = await cluster.connect({ rootNodes: [{ socket: next.address }] });
  const { registry: second } = createRegistry(secondClient, { registryKey, lockType });
  const held = await second.obtain('key').lock();
  old.thaw();
  await until(async () => (await roleOf(old)) === 'slave', { within: 20_000 });
  await new Promise((resolve) => setTimeout(resolve, ENTERS));
  const isZombie = isIn;
  if (!isZombie) held.assertHeld();
  await held.unlock().catch(() => undefined);
  await entered;
  await (await waiting).unlock().catch(() => undefined);
  return isZombie;
}

// A grant that is asked for once more is refused: the server has learned by then that it was replaced.
describePrivate('a cluster master that was replaced while it was frozen wakes up', () => {
  const cluster = installed(() => startCluster({ replicas: true }));

  it.each(LOCK_TYPES)(
    'P3: and grants a %s lock that another process has: nobody enters with that',
    async (lockType) => {
      expect(await entersWithZombieGrant(cluster(), lockType)).toBe(false);
    },
  );
});
