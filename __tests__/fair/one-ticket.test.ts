import { beforeEach, expect, it } from '@jest/globals';
import type { RedisLockRegistry } from '../../lib';
import { processOf } from '../../lib/protocols/fair/ticket';
import { describePrivate } from '../support/private-redis';
import { until } from '../support/until';
import { FairFixture } from './fair-fixture';
import { KEY } from './worker';

/** Microseconds by which the server's clock is set back. */
const HOUR = 3_600_000_000;

describePrivate('The callers of one process, which has at most one ticket in the queue of a fair lock', () => {
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

  it.each([
    { names: ['a1', 'b1'], handOver: undefined },
    { names: ['b1', 'a1'], handOver: undefined },
    { names: ['a1', 'b1', 'a2', 'c1', 'a3'], handOver: undefined },
    { names: ['b1', 'a1', 'c1', 'b2', 'a2', 'c2'], handOver: undefined },
    { names: ['c1', 'c2', 'b1', 'a1', 'b2', 'c3', 'a2'], handOver: undefined },
    // The queue gives every process its turn: the option of the other types has no say.
    { names: ['a1', 'b1', 'a2', 'c1', 'b2'], handOver: 0 },
  ])('get the lock before foreign callers that came later, and after those that came earlier: %j', async (given) => {
    const { names, handOver } = given;
    const of = await processes(handOver);
    const lease = await of.a.obtain(KEY).lock();
    const waiting = await fixture.enqueue(names.map((name) => caller(name, of[name[0] as 'a' | 'b' | 'c'])));
    const waitingElsewhere =
      new Set(names.map((name) => name[0])).size - (names.some((name) => name[0] === 'a') ? 1 : 0);
    expect(await tickets()).toHaveLength(waitingElsewhere);
    await lease.unlock();
    await Promise.all(waiting);
    expect(order).toEqual(names);
    expect(await fixture.keys()).toEqual([]);
  });

  it('get it after a foreign caller when the clock of the server was set back, and do not starve it', async () => {
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

  it('cost one script each while nobody else waits, and make no key but that of the lock', async () => {
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
    // One acquires the lock; each of the 21 holders hands it over, or releases it.
    expect(await fixture.scriptsRun()).toBe(22);
    expect(await fixture.admin.info('commandstats')).not.toMatch(/cmdstat_(zadd|hset)/);
  });

  it('have the position of the second one once the first one gives up', async () => {
    const { a, b, c } = await processes();
    const lease = await a.obtain(KEY).lock();
    const aborting = new AbortController();
    const [first, ...others] = await fixture.enqueue([
      caller('b1', b, aborting.signal),
      caller('b2', b),
      caller('c1', c),
      caller('b3', b),
    ]);
    const before = await tickets();
    const process = processOf(before[0] as string);
    const rejected = expect(first).rejects.toBe('gave up');
    aborting.abort('gave up');
    await rejected;
    await until(async () => {
      const now = await tickets();
      return now.length === 2 && now.some((ticket) => processOf(ticket) === process && ticket !== before[0]);
    });
    expect((await tickets()).map(processOf)).toEqual(before.map(processOf));
    await lease.unlock();
    await Promise.all(others);
    expect(order).toEqual(['b2', 'c1', 'b3']);
    expect(await fixture.keys()).toEqual([]);
  });
});
