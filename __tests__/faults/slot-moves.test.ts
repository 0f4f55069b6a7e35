import { expect, it } from '@jest/globals';
import type { DistributedLock, LockRegistry } from '../../lib';
import { startCluster } from '../support/cluster';
import type { Node } from '../support/node';
import { describePrivate, installed } from '../support/private-redis';
import { createRegistry } from '../support/test-registry';
import { until } from '../support/until';

/** Each in a slot of its own. */
const LOCKS: Record<string, (registry: LockRegistry) => DistributedLock> = {
  semaphore: (registry) => registry.semaphore('a-semaphore', { permits: 1 }),
  'write lock': (registry) => registry.readWrite('a-write-lock').write,
  'read lock': (registry) => registry.readWrite('a-read-lock').read,
  'fair lock': (registry) => registry.obtain('a-fair-lock'),
};

describePrivate('a slot of a cluster moves while a lease in it ends', () => {
  const cluster = installed(() => startCluster());

  /** Returns what ends the move. Meanwhile what is not at the source any more is nowhere. */
  async function moving(name: string): Promise<() => Promise<void>> {
    const { slot, master: source } = await cluster().ownersOf(name);
    const target = cluster().masters.find((node) => node !== source) as Node;
    const ids = await Promise.all([source, target].map(async (node) => String(await node.send('CLUSTER', 'MYID'))));
    const [sourceId, targetId] = ids as [string, string];
    await target.send('CLUSTER', 'SETSLOT', String(slot), 'IMPORTING', sourceId);
    await source.send('CLUSTER', 'SETSLOT', String(slot), 'MIGRATING', targetId);
    return async () => {
      const { host, port } = target.address;
      for (;;) {
        const keys = (await source.send('CLUSTER', 'GETKEYSINSLOT', String(slot), '100')) as string[];
        if (keys.length === 0) break;
        await source.send('MIGRATE', host, String(port), '', '0', '5000', 'KEYS', ...keys);
      }
      for (const node of [target, source]) await node.send('CLUSTER', 'SETSLOT', String(slot), 'NODE', targetId);
    };
  }

  const errorsOf = async (node: Node) =>
    Number(/total_error_replies:(\d+)/.exec(String(await node.send('INFO', 'stats')))?.[1]);

  it.each(Object.keys(LOCKS).flatMap((what) => [[what, 'nobody waits'] as const, [what, 'a caller waits'] as const]))(
    'P6 P7: the holder of a %s is told of no loss that there was not, where %s',
    async (what, who) => {
      const client = await cluster().connect();
      const options = { lockType: 'fair', registryKey: `moves-${what}-${who}`.replaceAll(' ', '-') } as const;
      const { registry, warnings, nameOf } = createRegistry(client, options);
      const lock = (LOCKS[what] as (typeof LOCKS)[string])(registry);
      const lease = await lock.lock();
      const next = who === 'nobody waits' ? undefined : lock.lock({ waitTime: 60_000 });
      const { master } = await cluster().ownersOf(nameOf(lock.key));
      const finish = await moving(nameOf(lock.key));
      const before = await errorsOf(master);
      const unlocked = lease.unlock();
      // Some tries were stopped or refused, where they use a key that is not there.
      await Promise.race([unlocked, until(async () => (await errorsOf(master)) > before + 2)]);
      await finish();
      await unlocked;
      await (await next)?.unlock();
      expect(warnings.filter(({ code }) => code !== 'RELEASE_UNCERTAIN')).toEqual([]);
      expect(lease.signal.aborted).toBe(false);
      client.destroy();
    },
  );
});
