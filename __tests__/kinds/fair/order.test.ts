import { beforeAll, beforeEach, expect, it, jest } from '@jest/globals';
import type { RedisLockRegistry } from '../../../lib';
import { startCluster, type TestCluster } from '../../support/cluster';
import { machineDelay } from '../../support/machine-delay';
import { clientKinds, describePrivate, installed } from '../../support/private-redis';
import { uniqueKey } from '../../support/redis';
import { HAS_SHARDED_CHANNELS } from '../../support/since';
import { createRegistry } from '../../support/test-registry';
import { until } from '../../support/until';
import { callInTurn, FairFixture, SLACK } from './fair-fixture';
import { KEY } from './worker';

/** Microseconds by which the server's clock is set back. */
const HOUR = 3_600_000_000;

describePrivate('The order of a fair lock, whose queue has at most one ticket of a process', () => {
  const fixture = FairFixture.install();
  let order: string[];

  beforeEach(() => {
    order = [];
  });

  const caller = (name: string, registry: RedisLockRegistry, signal?: AbortSignal) => () =>
    registry.run(KEY, () => void order.push(name), { signal });

  const processes = async (handOver?: number) => {
    const [a, b, c] = await Promise.all([1, 2, 3].map(() => fixture.process({ handOver })));
    return { a, b, c } as Record<'a' | 'b' | 'c', RedisLockRegistry>;
  };

  const tickets = () => fixture.admin.zRange(fixture.queue, 0, -1);

  it.each<{ names: string[]; handOver?: number; skews?: number[] }>([
    { names: ['b1', 'a1'] },
    { names: ['b1', 'a1', 'c1', 'b2', 'a2', 'c2'] },
    { names: ['c1', 'c2', 'b1', 'a1', 'b2', 'c3', 'a2'] },
    // The queue gives every process its turn: the option of the other types has no say.
    { names: ['a1', 'b1', 'a2', 'c1', 'b2'], handOver: 0 },
    // Neither has the clock of a client, as with Redisson's fair lock.
    { names: ['a1', 'b1', 'a2', 'b2'], skews: [3_600_000, -3_600_000, 0, 86_400_000] },
  ])(
    'The order of a fair lock is that of the calls, within and between processes: %j',
    async ({ names, handOver, skews }) => {
      const of = await processes(handOver);
      const lease = await of.a.obtain(KEY).lock();
      const now = Date.now.bind(Date);
      const dates = jest.spyOn(Date, 'now');
      const callers = names.map((name, i) => () => {
        dates.mockImplementation(() => now() + (skews?.[i] ?? 0));
        return caller(name, of[name[0] as 'a' | 'b' | 'c'])();
      });
      const waiting = await fixture.enqueue(callers).finally(() => dates.mockRestore());
      const waitingElsewhere =
        new Set(names.map((name) => name[0])).size - (names.some((name) => name[0] === 'a') ? 1 : 0);
      expect(await tickets()).toHaveLength(waitingElsewhere);
      await lease.unlock();
      await Promise.all(waiting);
      expect(order).toEqual(names);
      expect(await fixture.keys()).toEqual([]);
    },
  );

  it('A foreign caller of a fair lock has its turn when the clock of the server was set back', async () => {
    const { a, b } = await processes();
    const lease = await a.obtain(KEY).lock();
    const [first] = await fixture.enqueue([caller('b', b)]);
    const [ticket] = await tickets();
    // The position that it would have if the clock was set back after its call.
    await fixture.admin.zIncrBy(fixture.queue, HOUR, ticket as string);
    let isServed = false;
    void first?.then(() => {
      isServed = true;
    });
    let turns = 0;
    const working = [1, 2, 3].map(async () => {
      while (!isServed && turns < 30) await a.run(KEY, () => void turns++);
    });
    await lease.unlock();
    await Promise.all([first, ...working]);
    // Its turn is the next one. Others may follow before its process knows that it is over.
    expect(turns).toBeLessThan(10);
    expect(order).toEqual(['b']);
  });

  it('The callers of a fair lock cost hardly a script while no other process waits, and no key but that of the lock', async () => {
    const registry = await fixture.process();
    const round = async () => {
      const lease = await registry.obtain(KEY).lock();
      const waiting = Array.from({ length: 20 }, () => registry.run(KEY, () => undefined));
      await lease.unlock();
      await Promise.all(waiting);
    };
    await round();
    await fixture.admin.configResetStat();
    await round();
    // One acquires the lock, one hands it over with a block of tokens, and one releases it; more where that takes 50 ms.
    expect(await fixture.scriptsRun()).toBeLessThan(10);
    expect(await fixture.admin.info('commandstats')).not.toMatch(/cmdstat_(zadd|hset)/);
  });

  it('The order of a fair lock is not changed by tryLock() without waitTime, which neither enqueues nor overtakes', async () => {
    const [a, b, c] = await Promise.all([fixture.process(), fixture.process(), fixture.process()]);
    const lease = await a.obtain(KEY).lock();
    expect(await b.obtain(KEY).tryLock()).toBeNull();
    expect(await a.obtain(KEY).tryLock()).toBeNull();
    expect(await fixture.admin.exists([fixture.queue, fixture.tickets])).toBe(0);
    const d = await fixture.process();
    const waiting = await fixture.enqueue([caller('b1', b), caller('d1', d)]);
    expect(await b.obtain(KEY).tryLock()).toBeNull();
    expect(await fixture.admin.zCard(fixture.queue)).toBe(2);
    // The key was deleted without a notification: the next attempt hands the lock to the first in the queue.
    await fixture.admin.del(fixture.names.lock);
    expect(await c.obtain(KEY).tryLock()).toBeNull();
    await Promise.all(waiting);
    expect(order).toEqual(['b1', 'd1']);
    await lease.unlock().catch(() => undefined);
    await (await b.obtain(KEY).tryLock())?.unlock();
    expect(await fixture.keys()).toEqual([]);
  });

  it('A waiter of a fair lock whose ticket was deleted has its position again', async () => {
    const [a, b, c] = await Promise.all([fixture.process(), fixture.process(), fixture.process()]);
    const d = await fixture.process();
    const lease = await a.obtain(KEY).lock({ ttl: 10_000, renew: true });
    const waiting = await fixture.enqueue([caller('b1', b), caller('c1', c), caller('d1', d), caller('b2', b)]);
    const [first, second, third] = await fixture.admin.zRangeWithScores(fixture.queue, 0, -1);
    await fixture.admin.zRem(fixture.queue, [first?.value ?? '', third?.value ?? '']);
    // The next poll finds that they are gone, and they are entered again.
    await fixture.queued(3, 'any');
    expect(await fixture.admin.zRangeWithScores(fixture.queue, 0, -1)).toEqual([first, second, third]);
    await lease.unlock();
    await Promise.all(waiting);
    expect(order).toEqual(['b1', 'c1', 'd1', 'b2']);
  });

  it('The order of a fair lock holds for pools too, which cannot subscribe and poll, beside subscribed waiters', async () => {
    const pools = await Promise.all([1, 2].map(() => clientKinds['a pool'](fixture.redis.address)));
    const { registryKey } = fixture;
    const polling = pools.map((pool) => createRegistry(pool, { registryKey, lockType: 'fair' }));
    const listening = await fixture.process();
    const lease = await listening.obtain(KEY).lock();
    const names = ['p1', 'q1', 'l1', 'p2', 'l2', 'q2', 'p3'];
    const of = { p: polling[0]?.registry, q: polling[1]?.registry, l: listening };
    const callers = names.map((name) => caller(name, of[name[0] as 'p' | 'q' | 'l'] as RedisLockRegistry));
    const waiting = await fixture.enqueue(callers, 'any');
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
  const cluster = installed(() => startCluster());
  let clients: [TestCluster, TestCluster, TestCluster];

  beforeAll(async () => {
    const connect = () => cluster().connect();
    clients = await Promise.all([connect(), connect(), connect()]);
  });

  const fixture = (key: string) => {
    const registryKey = uniqueKey('cluster');
    const registries = clients.map((client) =>
      createRegistry(client, { registryKey, lockType: 'fair', fencing: true }),
    );
    return { registries, name: `${registryKey}:${key}` };
  };

  it('A fair lock through a cluster keeps its order for keys on all nodes, notified on sharded channels, or polling before Redis 7', async () => {
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
        const codes = registries.flatMap(({ warnings }) => warnings.map(({ code }) => code));
        expect(codes.filter((code) => HAS_SHARDED_CHANNELS || code !== 'SUBSCRIBER_UNAVAILABLE')).toEqual([]);
        expect(await clients[0].exists(queue)).toBe(0);
      }),
    );
  });
});
