import { beforeEach, expect, it } from '@jest/globals';
import type { RedisLockRegistry } from '../../lib';
import { describePrivate } from '../support/private-redis';
import { until } from '../support/until';
import { FairFixture } from './fair-fixture';
import { FairWorker } from './fair-worker';
import { type Entry, KEY, logOf } from './worker';

describePrivate('The order of a fair lock', () => {
  const fixture = FairFixture.install();
  let order: string[];

  beforeEach(() => {
    order = [];
  });

  const caller = (name: string, registry: RedisLockRegistry, ttl?: number) => () =>
    registry.run(
      KEY,
      () => {
        order.push(name);
      },
      ttl === undefined ? undefined : { ttl },
    );

  it('is FIFO over the callers of all processes', async () => {
    const [a, b, c] = await Promise.all([fixture.process(), fixture.process(), fixture.process()]);
    const lease = await a.obtain(KEY).lock();
    const names = ['a1', 'a2', 'b1', 'a3', 'a4', 'c1', 'b2', 'c2', 'c3', 'a5', 'b3', 'a6'];
    const of = { a, b, c };
    const waiting = await fixture.enqueue(names.map((name) => caller(name, of[name[0] as 'a' | 'b' | 'c'])));
    await lease.unlock();
    await Promise.all(waiting);
    expect(order).toEqual(names);
    expect(await fixture.keys()).toEqual([]);
  });

  it('is FIFO for simultaneous callers of one process', async () => {
    const registry = await fixture.process();
    const lease = await registry.obtain(KEY).lock();
    const names = Array.from({ length: 50 }, (_, i) => `${i}`);
    const waiting = names.map((name) => caller(name, registry)());
    await lease.unlock();
    await Promise.all(waiting);
    expect(order).toEqual(names);
  });

  it('does not depend on the ttl of a caller', async () => {
    const [a, b] = await Promise.all([fixture.process(), fixture.process()]);
    const lease = await a.obtain(KEY).lock({ ttl: 30_000 });
    const waiting = await fixture.enqueue([
      caller('b1', b, 5_000),
      caller('a1', a, 60_000),
      caller('b2', b, 60_000),
      caller('a2', a, 5_000),
      caller('b3', b),
    ]);
    await lease.unlock();
    await Promise.all(waiting);
    expect(order).toEqual(['b1', 'a1', 'b2', 'a2', 'b3']);
  });

  it('holds over real processes', async () => {
    const workers = await FairWorker.startAll(3);
    const here = await fixture.process();
    const lease = await here.obtain(KEY).lock();
    const task = { name: 'queue', callers: 5, work: 1, aborting: 0, abortWithin: 0 } as const;
    const { registryKey } = fixture;
    let queued = 0;
    for (const worker of workers) {
      await worker.begin({ redis: { socket: fixture.redis.address }, registryKey, expireAfter: 60_000, task });
      queued += task.callers;
      await fixture.queued(queued);
      const [local] = await fixture.enqueue([caller('here', here)]);
      local?.catch(() => undefined);
      queued += 1;
    }
    const arrived = await fixture.admin.zRange(fixture.queue, 0, -1);
    await lease.unlock();
    const done = await Promise.all(workers.map((worker) => worker.next('queued')));
    expect(done.flatMap(({ failures }) => failures)).toEqual([]);
    await until(() => order.length === workers.length, { within: 30_000 });
    const log = (await fixture.admin.lRange(logOf(registryKey), 0, -1)).map((line) => JSON.parse(line) as Entry);
    const remote = new Set(log.map(({ ticket }) => ticket));
    expect(log.map(({ ticket }) => ticket)).toEqual(arrived.filter((ticket) => remote.has(ticket)));
    expect(log).toHaveLength(workers.length * task.callers);
    expect(log.flatMap(({ others }) => others)).toEqual([]);
  });

  it('is not changed by tryLock() without waitTime, which neither enqueues nor overtakes', async () => {
    const [a, b, c] = await Promise.all([fixture.process(), fixture.process(), fixture.process()]);
    const lease = await a.obtain(KEY).lock();
    expect(await b.obtain(KEY).tryLock()).toBeNull();
    expect(await a.obtain(KEY).tryLock()).toBeNull();
    expect(await fixture.admin.exists([fixture.queue, fixture.tickets])).toBe(0);
    const waiting = await fixture.enqueue([caller('b1', b), caller('a1', a)]);
    expect(await b.obtain(KEY).tryLock()).toBeNull();
    expect(await fixture.admin.zCard(fixture.queue)).toBe(2);
    // The key was deleted without a notification: the next attempt hands the lock to the first in the queue.
    await fixture.admin.del(fixture.names.lock);
    expect(await c.obtain(KEY).tryLock()).toBeNull();
    await Promise.all(waiting);
    expect(order).toEqual(['b1', 'a1']);
    await lease.unlock().catch(() => undefined);
    await (await b.obtain(KEY).tryLock())?.unlock();
    expect(await fixture.keys()).toEqual([]);
  });

  it('restores the position of a waiter whose ticket was deleted', async () => {
    const [a, b, c] = await Promise.all([fixture.process(), fixture.process(), fixture.process()]);
    const lease = await a.obtain(KEY).lock({ ttl: 10_000, renew: true });
    const waiting = await fixture.enqueue([caller('b1', b), caller('c1', c), caller('b2', b)]);
    const [first, second, third] = await fixture.admin.zRangeWithScores(fixture.queue, 0, -1);
    await fixture.admin.zRem(fixture.queue, [first?.value ?? '', third?.value ?? '']);
    // The next poll finds that they are gone, and they are entered again.
    await fixture.queued(3);
    expect(await fixture.admin.zRangeWithScores(fixture.queue, 0, -1)).toEqual([first, second, third]);
    await lease.unlock();
    await Promise.all(waiting);
    expect(order).toEqual(['b1', 'c1', 'b2']);
  });
});
