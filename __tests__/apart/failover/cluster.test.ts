import { afterEach, beforeEach, describe, it } from '@jest/globals';
import type { Node } from '../../support/node';
import { describePrivate } from '../../support/private-redis';
import { until } from '../../support/until';
import { commonFaults, failovers } from './faults';
import { measure } from './measure';
import { cluster, type Topology } from './topologies';

/** Keys that a slot has moved when it is left half migrated. */
const HALF = 8;

/** Begins to move the slot of the locks to another master. */
async function migrate({ master, nodes, tag }: Topology) {
  const target = nodes[nodes.indexOf(master) === 0 ? 1 : 0] as Node;
  const slot = String(await master.send('CLUSTER', 'KEYSLOT', tag));
  const [sourceId = '', targetId = ''] = await Promise.all(
    [master, target].map(async (node) => String(await node.send('CLUSTER', 'MYID'))),
  );
  await target.send('CLUSTER', 'SETSLOT', slot, 'IMPORTING', sourceId);
  await master.send('CLUSTER', 'SETSLOT', slot, 'MIGRATING', targetId);
  const { host, port } = target.address;
  const move = async (most: number): Promise<void> => {
    const keys = (await master.send('CLUSTER', 'GETKEYSINSLOT', slot, String(most))) as string[];
    if (keys.length > 0) await master.send('MIGRATE', host, String(port), '', '0', '5000', 'KEYS', ...keys);
  };
  const end = async (): Promise<void> => {
    const isEmpty = async () => {
      await move(1_000);
      return (await master.send('CLUSTER', 'COUNTKEYSINSLOT', slot)) === 0;
    };
    await until(isEmpty);
    for (const node of [target, master]) await node.send('CLUSTER', 'SETSLOT', slot, 'NODE', targetId);
  };
  return { move, end };
}

describePrivate('cluster with three masters and three replicas', () => {
  describe('fails over', () => failovers(cluster));
  describe('stays', () => commonFaults(cluster));

  describe('moves a slot', () => {
    let topology: Topology;

    beforeEach(async () => {
      topology = await cluster();
    });

    afterEach(() => topology.stop());

    it('under load', () =>
      measure('resharding', topology, { double: 0 }, async () => {
        const { end } = await migrate(topology);
        await end();
      }));

    it('and leaves it half migrated for a while', () =>
      measure('slot half migrated for 3 s', topology, { double: 0 }, async () => {
        const { move, end } = await migrate(topology);
        await move(HALF);
        await new Promise((resolve) => setTimeout(resolve, 3_000));
        await end();
      }));
  });
});
