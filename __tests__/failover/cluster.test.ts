import { afterEach, beforeEach, it } from '@jest/globals';
import { type ClusterServers, startCluster, type TestCluster } from '../support/cluster';
import type { Node } from '../support/node';
import { describePrivate } from '../support/private-redis';
import { until } from '../support/until';
import { TTL } from './load';
import { measure } from './measure';

const TAG = 'a';

/** ms */
const PROMPTLY = 500;

describePrivate('cluster with three masters and three replicas', () => {
  let cluster: ClusterServers;
  let clients: TestCluster[];
  let master: Node;
  let replica: Node;
  let slot: number;

  beforeEach(async () => {
    cluster = await startCluster({ replicas: true });
    clients = await Promise.all([cluster.connect(), cluster.connect()]);
    const owners = await cluster.ownersOf(`{${TAG}}`);
    master = owners.master;
    replica = owners.replica as Node;
    slot = owners.slot;
  });

  afterEach(() => cluster.stop());

  const isMaster = async (node: Node) => String(await node.send('ROLE')).startsWith('master');
  const run = (fault: string, double: number, make: () => Promise<void>, nodes: readonly Node[] = cluster.masters) =>
    measure(`cluster: ${fault}`, clients, TAG, { double }, make, nodes);

  it('a master is killed', () =>
    run(
      'kill -9',
      TTL,
      async () => {
        await master.kill();
        await until(() => isMaster(replica), { within: 60_000 });
      },
      [replica],
    ));

  it('a master is killed, and its replica had none of the locks', () =>
    run(
      'kill -9, locks forgotten',
      PROMPTLY,
      async () => {
        await replica.send('CONFIG', 'SET', 'replica-read-only', 'no');
        await replica.send('FLUSHALL');
        await master.kill();
        await until(() => isMaster(replica), { within: 60_000 });
      },
      [replica],
    ));

  it('a graceful failover', () =>
    run(
      'graceful failover',
      0,
      async () => {
        await replica.send('CLUSTER', 'FAILOVER');
        await until(() => isMaster(replica), { within: 60_000 });
      },
      [replica],
    ));

  it('a master is frozen, is replaced, and wakes up', () =>
    run(
      'frozen master wakes up',
      TTL,
      async () => {
        master.freeze();
        await until(() => isMaster(replica), { within: 60_000 });
        master.thaw();
      },
      [replica],
    ));

  async function migrate() {
    const target = cluster.masters.find((node) => node !== master) as Node;
    const [sourceId = '', targetId = ''] = await Promise.all(
      [master, target].map(async (node) => String(await node.send('CLUSTER', 'MYID'))),
    );
    await target.send('CLUSTER', 'SETSLOT', String(slot), 'IMPORTING', sourceId);
    await master.send('CLUSTER', 'SETSLOT', String(slot), 'MIGRATING', targetId);
    const { host, port } = target.address;
    const move = async (most: number): Promise<void> => {
      const keys = (await master.send('CLUSTER', 'GETKEYSINSLOT', String(slot), String(most))) as string[];
      if (keys.length > 0) await master.send('MIGRATE', host, String(port), '', '0', '5000', 'KEYS', ...keys);
    };
    const end = async (): Promise<void> => {
      const isEmpty = async () => {
        await move(1_000);
        return (await master.send('CLUSTER', 'COUNTKEYSINSLOT', String(slot))) === 0;
      };
      await until(isEmpty);
      for (const node of [target, master]) await node.send('CLUSTER', 'SETSLOT', String(slot), 'NODE', targetId);
    };
    return { move, end };
  }

  it('a slot is moved under load', () =>
    run('resharding', 0, async () => {
      const { end } = await migrate();
      await end();
    }));

  it('a slot is left half migrated', () =>
    run('slot half migrated for 3 s', 0, async () => {
      const { move, end } = await migrate();
      await move(8);
      await new Promise((resolve) => setTimeout(resolve, 3_000));
      await end();
    }));
});
