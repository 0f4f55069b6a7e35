import { afterEach, beforeEach, it } from '@jest/globals';
import type { Node } from '../../support/node';
import { TTL } from './load';
import { type Bounds, measure } from './measure';
import { type OpenTopology, reached, type Topology, type TopologyOptions } from './topologies';

/** ms for which two callers may rely on a lock that a server forgot, after the reconnect. */
const PROMPTLY = 500;

/** ms; a process whose subscription is dead gets its turn within this time. */
const TURN = 3_000;

const OUTAGE = 2_000;

const pause = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));

/** The faults that every topology has. */
export function commonFaults(open: OpenTopology): void {
  let topology: Topology | undefined;

  afterEach(async () => {
    await topology?.stop();
    topology = undefined;
  });

  async function run(
    fault: string,
    bounds: Bounds,
    make: (topology: Topology) => Promise<void>,
    options: TopologyOptions = {},
  ): Promise<void> {
    const opened = await open(options);
    topology = opened;
    await measure(fault, opened, bounds, () => make(opened));
  }

  const restart = async ({ master }: Topology) => {
    await master.kill();
    await master.restart();
  };

  it('a master is restarted with its data', () =>
    run('restart with data', { double: 0 }, restart, {
      args: ['--appendonly', 'yes', '--appendfsync', 'always'],
      isPatient: true,
    }));

  it('a master is restarted without data', () =>
    run('restart without data', { double: PROMPTLY }, restart, { isPatient: true }));

  it.each(['requests', 'replies'] as const)('a process is cut off: %s are lost', (direction) =>
    run(
      `partition, ${direction} lost`,
      { double: 0 },
      async ({ links: [proxies = []] }) => {
        for (const proxy of proxies) proxy[direction].swallow = true;
        await pause(OUTAGE);
        for (const proxy of proxies) proxy[direction].swallow = false;
        for (const proxy of proxies) proxy.reset();
      },
      { isPatient: true },
    ),
  );

  it('rights are taken away and given back', () =>
    run('no rights for 2 s', { double: 0, mayReject: true }, async ({ nodes }) => {
      await sendToAll(nodes, 'ACL', 'SETUSER', 'default', '-evalsha', '-eval');
      await pause(OUTAGE);
      await sendToAll(nodes, 'ACL', 'SETUSER', 'default', '+evalsha', '+eval');
    }));

  it('the password is another one for a while', () =>
    run('another password for 2 s', { double: 0, mayReject: true }, async ({ nodes, links }) => {
      // Only for new connections: those of replicas and sentinels stay.
      await sendToAll(nodes, 'CONFIG', 'SET', 'requirepass', 'other');
      for (const proxy of links.flat()) proxy.reset();
      await pause(OUTAGE);
      await sendToAll(nodes, 'CONFIG', 'SET', 'requirepass', '');
    }));

  it('subscriptions are closed again and again', () =>
    run('subscriptions killed', { double: 0 }, async ({ links }) => {
      for (let i = 0; i < 5; i++) {
        for (const proxy of links.flat()) proxy.resetSubscribed();
        await pause(OUTAGE / 5);
      }
    }));

  it('subscriptions of a process are dead, and no reset says so', () =>
    run('subscriptions silently dead for 6 s', { double: 0, wait: TURN }, async ({ links: [proxies = []] }) => {
      for (const proxy of proxies) proxy.isDeaf = true;
      await pause(3 * OUTAGE);
      for (const proxy of proxies) proxy.isDeaf = false;
      for (const proxy of proxies) proxy.reset();
    }));

  it('a master is frozen for a moment', () =>
    run(
      'frozen for 2 s',
      { double: 0 },
      async ({ master }) => {
        master.freeze();
        await pause(OUTAGE);
        master.thaw();
      },
      { isPatient: true },
    ));
}

/** The faults of topologies whose replicas take over. */
export function failovers(open: OpenTopology): void {
  let topology: Topology;

  beforeEach(async () => {
    topology = await open();
  });

  afterEach(() => topology.stop());

  const survivors = () => topology.nodes.filter((node) => node !== topology.master);
  const takenOver = async () => reached(topology, await topology.promoted());
  /** As a replica, without which no lock is acquired that has to be on as many replicas as before. */
  const comesBack = () => topology.master.restart();

  it('a master is killed', () =>
    measure(
      'kill -9',
      topology,
      { double: TTL, replicated: 0 },
      async () => {
        await topology.master.kill();
        await takenOver();
        await comesBack();
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
        await comesBack();
      },
      survivors(),
    ));

  it('a master is killed, and the replicas had followed it no more', () =>
    measure(
      'kill -9, replicas behind',
      topology,
      { double: PROMPTLY, replicated: 0 },
      async (callLate) => {
        await topology.master.send('ACL', 'SETUSER', 'default', '-psync', '-sync');
        await topology.master.send('CLIENT', 'KILL', 'TYPE', 'replica');
        callLate();
        await pause(OUTAGE);
        await topology.master.kill();
        await takenOver();
        await comesBack();
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

async function sendToAll(nodes: readonly Node[], ...command: string[]): Promise<void> {
  await Promise.all(nodes.map((node) => node.send(...command)));
}
