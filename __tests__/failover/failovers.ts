import { afterEach, beforeEach, it } from '@jest/globals';
import { PROMPTLY } from './common-faults';
import { TTL } from './load';
import { measure } from './measure';
import { type OpenTopology, reached, type Topology } from './topologies';

/** The faults of topologies whose replicas take over. */
export function failovers(open: OpenTopology): void {
  let topology: Topology;

  beforeEach(async () => {
    topology = await open();
  });

  afterEach(() => topology.stop());

  const survivors = () => topology.nodes.filter((node) => node !== topology.master);
  const takenOver = async () => reached(topology, await topology.promoted());

  it('a master is killed', () =>
    measure(
      'kill -9',
      topology,
      { double: TTL },
      async () => {
        await topology.master.kill();
        await takenOver();
      },
      survivors(),
    ));

  it('a master is killed, and the replicas had none of the locks', () =>
    measure(
      'kill -9, locks forgotten',
      topology,
      { double: PROMPTLY, mayLose: true },
      async () => {
        await topology.master.kill();
        // Before one takes over. While the master lived, it would go on changing what they have forgotten.
        for (const replica of topology.replicas) {
          await replica.send('CONFIG', 'SET', 'replica-read-only', 'no');
          await replica.send('FLUSHALL');
          // Else it would take, and keep, what a client writes to it by mistake.
          await replica.send('CONFIG', 'SET', 'replica-read-only', 'yes');
        }
        await takenOver();
      },
      survivors(),
    ));

  it('a graceful failover', () =>
    measure('graceful failover', topology, { double: TTL }, async () => {
      await topology.failover();
      await takenOver();
    }));

  it('a graceful failover, and a master without replicas does not write', async () => {
    for (const node of topology.nodes) {
      await node.send('CONFIG', 'SET', 'min-replicas-to-write', '1');
      await node.send('CONFIG', 'SET', 'min-replicas-max-lag', '1');
    }
    await measure('graceful failover, min-replicas-to-write 1', topology, { double: 0 }, async () => {
      await topology.failover();
      await takenOver();
    });
  });

  it('a master is frozen, is replaced, and wakes up', () =>
    measure('frozen master wakes up', topology, { double: TTL }, async () => {
      topology.master.freeze();
      const promoted = await topology.promoted();
      topology.master.thaw();
      await reached(topology, promoted);
    }));
}
