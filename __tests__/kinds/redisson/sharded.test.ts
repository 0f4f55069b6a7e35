import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { createClient, createCluster } from 'redis';
import { type LockWarning, RedisLockRegistry, type RedisLockRegistryOptions } from '../../../lib';
import type { RedisLease } from '../../../lib/core/lease';
import { freePort } from '../../../support/free-port';
import { type RedisServer, startRedis } from '../../../support/redis';
import { SLACK } from '../../contract/timing';
import { machineDelay } from '../../support/machine-delay';
import { describePrivate } from '../../support/private-redis';
import { uniqueKey } from '../../support/redis';
import { describeSince, HAS_SHARDED_CHANNELS } from '../../support/since';
import { until } from '../../support/until';

/** A server without sharded channels, as before Redis 7. One that is so old has nothing to rename. */
const OLD = HAS_SHARDED_CHANNELS ? ['--rename-command', 'SPUBLISH', '', '--rename-command', 'SSUBSCRIBE', ''] : [];

describeSince('7.0')('Redisson locks on a cluster with sharded channels', () => redissonLocks([], false));
describePrivate('Redisson locks on a cluster without sharded channels', () => redissonLocks(OLD, true));

function redissonLocks(args: readonly string[], isOld: boolean): void {
  let server: RedisServer;
  let cluster: ReturnType<typeof connect>;
  let node: ReturnType<typeof createClient>;

  const connect = (port: number) => createCluster({ rootNodes: [{ socket: { host: '127.0.0.1', port } }] });

  beforeAll(async () => {
    const port = await freePort();
    server = await startRedis({ port, args: ['--cluster-enabled', 'yes', ...args] });
    node = createClient({ socket: { host: '127.0.0.1', port } });
    await node.connect();
    await node.sendCommand(['CLUSTER', 'ADDSLOTS', ...Array.from({ length: 16_384 }, (_, slot) => String(slot))]);
    await until(async () => (await node.clusterInfo()).includes('cluster_state:ok'), { within: 10_000 });
    cluster = connect(port);
    await cluster.connect();
  });

  afterAll(async () => {
    cluster.destroy();
    node.destroy();
    await server.stop();
  });

  it('Redisson locks on a cluster stay in a process at the end of its slice where Redis says that nobody else listens', async () => {
    const warnings: LockWarning[] = [];
    const onWarning = (warning: LockWarning) => void warnings.push(warning);
    const registry = new RedisLockRegistry(cluster, { registryKey: '', lockType: 'redisson', onWarning });
    const lock = registry.obtain(uniqueKey());
    const first = (await lock.lock()) as RedisLease;
    const waiting = lock.lock();
    await sleep(60);
    await first.unlock();
    const second = (await waiting) as RedisLease;
    // Without sharded channels, those that listen on other nodes are not counted.
    expect(second.owner === first.owner).toBe(!isOld);
    await second.unlock();
    expect(warnings).toEqual([]);
    await registry.close();
  });

  it('Redisson locks on a cluster have no name whose channel is in another slot, where no script can publish, unless that is plain', async () => {
    const options = { registryKey: '', lockType: 'redisson' } as const;
    const registry = new RedisLockRegistry(cluster, options);
    for (const name of ['a{b', 'a}b', '{}a']) expect(() => registry.obtain(name)).toThrow(RangeError);
    await registry.run('{a}b', () => undefined);
    const plain = new RedisLockRegistry(cluster, { ...options, shardedSubscriptionMode: 'off' });
    await plain.run('a{b', () => undefined);
    await Promise.all([registry.close(), plain.close()]);
  });

  const lockTypes = ['redisson', 'redisson-fair'] as const;
  const modes = ['auto', 'off'] as const;

  it.each(lockTypes.flatMap((lockType) => modes.map((mode) => [lockType, mode] as const)))(
    'Redisson locks on a cluster wake their waiters: %s, shardedSubscriptionMode %s',
    async (lockType, shardedSubscriptionMode) => {
      const warnings: LockWarning[] = [];
      const options: RedisLockRegistryOptions = {
        registryKey: '',
        lockType,
        shardedSubscriptionMode,
        idleBetweenTries: 60_000, // no waiter polls
        onWarning: (warning) => warnings.push(warning),
      };
      const registries = [new RedisLockRegistry(cluster, options), new RedisLockRegistry(cluster, options)] as const;
      const key = uniqueKey();
      const lease = await registries[0].obtain(key).lock();
      const waiting = registries[1].obtain(key).lock();
      const listed = shardedSubscriptionMode === 'auto' && !isOld ? 'SHARDCHANNELS' : 'CHANNELS';
      await until(async () => {
        const channels = (await node.sendCommand(['PUBSUB', listed])) as unknown as string[];
        return channels.some((channel) => channel.startsWith(`redisson_lock__channel:{${key}}`));
      });
      const released = performance.now();
      await lease.unlock();
      await (await waiting).unlock();
      expect(performance.now() - released).toBeLessThan(SLACK + machineDelay());
      expect(warnings).toEqual([]);
      await Promise.all(registries.map((registry) => registry.close()));
    },
  );
}
