import { beforeEach, expect, it } from '@jest/globals';
import type { RedisLockRegistry } from '../../lib';
import { describePrivate } from '../support/private-redis';
import { FairFixture, type FairWorker } from './fair-fixture';
import { type Entry, KEY, logOf } from './worker';

/** Of each worker process. */
const CALLERS = 5;

describePrivate('The order of a fair lock', () => {
  const fixture = FairFixture.install();
  let order: string[];

  beforeEach(() => {
    order = [];
  });

  const caller = (name: string, registry: RedisLockRegistry) => () => registry.run(KEY, () => void order.push(name));

  it('holds over real processes', async () => {
    const here = await fixture.process();
    const lease = await here.obtain(KEY).lock();
    const log = logOf(fixture.registryKey);
    const entry = JSON.stringify({ called: 0, pid: process.pid, others: [] } satisfies Entry);
    const workers: FairWorker[] = [];
    const local: Promise<unknown>[] = [];
    for (let i = 0; i < 3; i++) {
      workers.push(await fixture.workerWith(CALLERS));
      local.push(...(await fixture.enqueue([() => here.run(KEY, () => fixture.admin.rPush(log, entry))])));
    }
    await lease.unlock();
    const done = await Promise.all(workers.map((worker) => worker.next('queued')));
    expect(done.flatMap(({ failures }) => failures)).toEqual([]);
    await Promise.all(local);
    const entries = (await fixture.admin.lRange(log, 0, -1)).map((line) => JSON.parse(line) as Entry);
    const expected = workers.flatMap(({ pid }) => [...Array<number>(CALLERS).fill(pid), process.pid]);
    expect(entries.map(({ pid }) => pid)).toEqual(expected);
    expect(entries.flatMap(({ others }) => others)).toEqual([]);
    for (const { pid } of workers) {
      const calls = entries.filter((one) => one.pid === pid).map(({ called }) => called);
      expect(calls).toEqual([...calls].sort((x, y) => x - y));
    }
  });

  it('is not changed by tryLock() without waitTime, which neither enqueues nor overtakes', async () => {
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

  it('restores the position of a waiter whose ticket was deleted', async () => {
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
});
