import { afterEach, beforeEach, it } from '@jest/globals';
import type { Node } from '../support/node';
import { describePrivate } from '../support/private-redis';
import { type SentinelServers, startSentinel, type TestSentinel } from '../support/sentinel';
import { until } from '../support/until';
import { TTL } from './load';
import { measure } from './measure';

/** ms */
const PROMPTLY = 500;

describePrivate('sentinel with two replicas', () => {
  let sentinel: SentinelServers;
  let clients: TestSentinel[];

  beforeEach(async () => {
    sentinel = await startSentinel({ replicas: 2 });
    clients = await Promise.all([sentinel.connect(), sentinel.connect()]);
  });

  afterEach(async () => {
    for (const client of clients) await client.destroy();
    await sentinel.stop();
  });

  const promoted = async () => {
    const { port } = sentinel.master;
    await until(async () => (await sentinel.masterPort()) !== port, { within: 60_000 });
  };
  const replicas = () => sentinel.nodes.slice(1);
  const run = (fault: string, double: number, make: () => Promise<void>, nodes = replicas()) =>
    measure(`sentinel: ${fault}`, clients, 'a', { double }, make, nodes);

  it('the master is killed', () =>
    run('kill -9', TTL, async () => {
      await sentinel.nodes[0]?.kill();
      await promoted();
    }));

  it('the master is killed, and the replicas had none of the locks', () =>
    run('kill -9, locks forgotten', PROMPTLY, async () => {
      for (const node of replicas()) {
        await node.send('CONFIG', 'SET', 'replica-read-only', 'no');
        await node.send('FLUSHALL');
      }
      await sentinel.nodes[0]?.kill();
      await promoted();
    }));

  it('the master is frozen, is replaced, and wakes up', () =>
    run('frozen master wakes up', TTL, async () => {
      const [master] = sentinel.nodes as [Node];
      master.freeze();
      await promoted();
      master.thaw();
    }));
});
