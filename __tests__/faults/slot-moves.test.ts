import { expect, it } from '@jest/globals';
import type { DistributedLock, Lease, LockRegistry } from '../../lib';
import { startCluster } from '../support/cluster';
import type { Node } from '../support/node';
import { describePrivate, installed } from '../support/private-redis';
import { HAS_SHARDED_CHANNELS } from '../support/since';
import { createRegistry } from '../support/test-registry';
import { until } from '../support/until';

/** Each in a slot of its own. */
const LOCKS: Record<string, (registry: LockRegistry) => DistributedLock> = {
  semaphore: (registry) => registry.semaphore('a-semaphore', { permits: 1 }),
  'write lock': (registry) => registry.readWrite('a-write-lock').write,
  'read lock': (registry) => registry.readWrite('a-read-lock').read,
  'fair lock': (registry) => registry.obtain('a-fair-lock'),
};

const WAITERS = ['nobody waits', 'a caller of another process waits', 'callers of both processes wait'];

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

  it.each(Object.keys(LOCKS).flatMap((what) => WAITERS.map((who) => [what, who] as const)))(
    'P6 P7: the holder of a %s is told of no loss that there was not, where %s',
    async (what, who) => {
      const [client, other] = [await cluster().connect(), await cluster().connect()];
      const options = { lockType: 'fair', registryKey: `${what}-${who}`.replaceAll(/\W/g, '-') } as const;
      const { registry, warnings, nameOf } = createRegistry(client, options);
      const lockOf = LOCKS[what] as (typeof LOCKS)[string];
      const lock = lockOf(registry);
      const lease = await lock.lock();
      const { slot, master } = await cluster().ownersOf(nameOf(lock.key));
      const next: Promise<Lease>[] = [];
      const wait = (at: LockRegistry) => {
        const waited = what === 'read lock' ? at.readWrite(lock.key).write : lockOf(at);
        next.push(waited.lock({ waitTime: 60_000 }).then((one) => one.unlock().then(() => one)));
      };
      if (who !== 'nobody waits') {
        wait(createRegistry(other, options).registry);
        // Then all keys of the script are there, and it begins.
        await until(async () => Number(await master.send('CLUSTER', 'COUNTKEYSINSLOT', String(slot))) > 1);
      }
      if (who.startsWith('callers')) wait(registry);
      const finish = await moving(nameOf(lock.key));
      const before = await errorsOf(master);
      const unlocked = lease.unlock().then(
        () => 'unlocked',
        (error: Error) => error,
      );
      // Some tries were stopped or refused, where they use a key that is not there.
      await Promise.race([unlocked, until(async () => (await errorsOf(master)) > before + 2)]);
      await finish();
      expect(await unlocked).toBe('unlocked');
      await Promise.all(next);
      // Before Redis 7, waiters of a fair lock on a cluster poll.
      const usual = HAS_SHARDED_CHANNELS ? ['RELEASE_UNCERTAIN'] : ['RELEASE_UNCERTAIN', 'SUBSCRIBER_UNAVAILABLE'];
      expect(warnings.filter(({ code }) => !usual.includes(code))).toEqual([]);
      expect(lease.signal.aborted).toBe(false);
      for (const one of [client, other]) one.destroy();
    },
  );
});
