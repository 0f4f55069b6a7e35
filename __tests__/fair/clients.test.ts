import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { startCluster, type TestCluster } from '../support/cluster';
import { machineDelay } from '../support/machine-delay';
import { clientKinds, describePrivate } from '../support/private-redis';
import { uniqueKey } from '../support/redis';
import { createRegistry } from '../support/test-registry';
import { until } from '../support/until';
import { callInTurn, FairFixture, SLACK } from './fair-fixture';
import { KEY } from './worker';

describePrivate('A fair lock through a pool, which cannot subscribe', () => {
  const fixture = FairFixture.install();

  it('polls, in strict order beside subscribed waiters', async () => {
    const pools = await Promise.all([1, 2].map(() => clientKinds['a pool'](fixture.redis.address)));
    const { registryKey } = fixture;
    const polling = pools.map((pool) => createRegistry(pool, { registryKey, lockType: 'fair' }));
    const listening = await fixture.process();
    const lease = await listening.obtain(KEY).lock();
    const order: string[] = [];
    const names = ['p1', 'q1', 'l1', 'p2', 'l2', 'q2', 'p3'];
    const of = { p: polling[0]?.registry, q: polling[1]?.registry, l: listening };
    const caller = (name: string) => async () => {
      await of[name[0] as 'p' | 'q' | 'l']?.run(KEY, () => void order.push(name));
    };
    const waiting = await fixture.enqueue(names.map(caller), 'any');
    await lease.unlock();
    const begun = performance.now();
    await Promise.all(waiting);
    expect(order).toEqual(names);
    expect(performance.now() - begun).toBeLessThan(7 * 20 + SLACK + machineDelay());
    for (const { warnings } of polling) expect(warnings).toMatchObject([{ code: 'SUBSCRIBER_UNAVAILABLE' }]);
    await Promise.all(polling.map(({ registry }) => registry.close()));
    expect(await fixture.keys()).toEqual([]);
  });
});

describePrivate('A fair lock through a cluster', () => {
  let cluster: Awaited<ReturnType<typeof startCluster>>;
  let clients: [TestCluster, TestCluster, TestCluster];

  beforeAll(async () => {
    cluster = await startCluster();
    clients = (await Promise.all([cluster.connect(), cluster.connect(), cluster.connect()])) as typeof clients;
  });

  afterAll(async () => {
    for (const client of clients) client.destroy();
    await cluster.stop();
  });

  const fixture = (key: string) => {
    const registryKey = uniqueKey('cluster');
    const registries = clients.map((client) =>
      createRegistry(client, { registryKey, lockType: 'fair', fencing: true }),
    );
    return { registries, name: `${registryKey}:${key}` };
  };

  it('keeps its order for keys on all nodes, notified on sharded channels', async () => {
    await Promise.all(
      ['a', 'b', 'c', 'd', 'e{f}g'].map(async (key) => {
        const { registries, name } = fixture(key);
        const [a, b, c] = registries;
        const queue = key.includes('{f}') ? `{f}:queue:${name}` : `{${name}}:queue`;
        const order: number[] = [];
        const lease = await a?.registry.obtain(key).lock();
        const caller = (of: typeof a, n: number) => async () => {
          await of?.registry.run(key, () => void order.push(n));
        };
        const waiting = await callInTurn([b, c, a, b, c, a].map(caller), (tickets) =>
          until(async () => (await clients[0].zCard(queue)) === tickets),
        );
        await lease?.unlock();
        await Promise.all(waiting);
        expect(order).toEqual([0, 1, 2, 3, 4, 5]);
        expect(registries.flatMap(({ warnings }) => warnings)).toEqual([]);
        expect(await clients[0].exists(queue)).toBe(0);
      }),
    );
  });
});
