import { afterEach, it } from '@jest/globals';
import type { Node } from '../support/node';
import { type Bounds, measure } from './measure';
import type { OpenTopology, Topology, TopologyOptions } from './topologies';

/** ms for which two callers may rely on a lock that a server forgot, after the reconnect. */
export const PROMPTLY = 500;

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

async function sendToAll(nodes: readonly Node[], ...command: string[]): Promise<void> {
  await Promise.all(nodes.map((node) => node.send(...command)));
}
