import { expect, it } from '@jest/globals';
import type { LockType } from '../../../lib';
import { startCluster } from '../../support/cluster';
import { LOCK_TYPES } from '../../support/lock-types';
import type { Node } from '../../support/node';
import { describePrivate, installed } from '../../support/private-redis';
import { uniqueKey } from '../../support/redis';
import { spyOn } from '../../support/spied-client';
import { createRegistry } from '../../support/test-registry';
import { until } from '../../support/until';

const TTL = 3_000;

describePrivate('a slot of a cluster is half migrated', () => {
  const cluster = installed(() => startCluster());

  /** Resolves when all masters say that the target has the slot of this name. Until then they send clients around. */
  async function agreed(name: string, target: Node): Promise<void> {
    const knows = async (node: Node): Promise<boolean> => {
      if (node === target) return true;
      const answer = await node.send('EXISTS', name).catch(String);
      return String(answer).endsWith(`:${target.address.port}`);
    };
    await until(async () => (await Promise.all(cluster().masters.map(knows))).every(Boolean));
  }

  it('P6: leases of each type with one hash tag are renewed for as long as it lasts, and together again afterwards', async () => {
    // One after the other: two masters that migrate to each other wait for each other, and two that take slots at the
    // same time may take the same epoch, and one of them loses.
    let last: Promise<unknown> = Promise.resolve();
    const alone = <T>(step: () => Promise<T>): Promise<T> => {
      const result = last.then(step);
      last = result.catch(() => undefined);
      return result;
    };
    const outlast = async (lockType: LockType) => {
      // Also in a second run, whose slots are still where the first one left them.
      const tag = uniqueKey(lockType);
      const keys = Array.from({ length: 6 }, (_, i) => `{${tag}}${i}`);
      const client = await cluster().connect();
      const spy = spyOn(client);
      const { registry, nameOf } = createRegistry(spy, { lockType, expireAfter: TTL });
      const leases = await Promise.all(keys.map((key) => registry.obtain(key).lock()));
      const together = () => until(() => spy.sizes.includes(keys.length));
      await together();
      const { slot, master: source } = await cluster().ownersOf(nameOf(keys[0] as string));
      const target = cluster().masters.find((node) => node !== source) as Node;
      const ids = await Promise.all([source, target].map(async (node) => String(await node.send('CLUSTER', 'MYID'))));
      const [sourceId, targetId] = ids as [string, string];
      await target.send('CLUSTER', 'SETSLOT', String(slot), 'IMPORTING', sourceId);
      await source.send('CLUSTER', 'SETSLOT', String(slot), 'MIGRATING', targetId);
      const names = keys.map(nameOf);
      const migrate = (moved: readonly string[]) =>
        alone(() =>
          source.send('MIGRATE', target.address.host, String(target.address.port), '', '0', '5000', 'KEYS', ...moved),
        );
      await migrate(names.slice(0, 2));
      // A multiple of the ttl.
      await new Promise((resolve) => setTimeout(resolve, 2 * TTL));
      for (const { signal, remaining } of leases) expect([signal.aborted, remaining > 0]).toEqual([false, true]);
      await migrate(names);
      await alone(async () => {
        for (const node of [target, source]) await node.send('CLUSTER', 'SETSLOT', String(slot), 'NODE', targetId);
        await agreed(nameOf(keys[0] as string), target);
      });
      spy.sizes.length = 0;
      await together();
      for (const lease of leases) await lease.unlock();
      client.destroy();
    };
    // Each has a slot of its own.
    await Promise.all(LOCK_TYPES.map(outlast));
  });
});
