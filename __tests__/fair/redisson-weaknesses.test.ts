import { setTimeout as sleep } from 'node:timers/promises';
import { beforeEach, expect, it, jest } from '@jest/globals';
import type { RedisLockRegistry } from '../../lib';
import { CLAIM_WINDOW } from '../../lib/protocols/fair/fair-scripts';
import { machineDelay } from '../support/machine-delay';
import { describePrivate } from '../support/private-redis';
import { until, WAIT_LIMIT } from '../support/until';
import { FairFixture, SLACK } from './fair-fixture';
import { KEY } from './worker';

/**
 * Known weaknesses of the queue of RedissonFairLock, tried on this library. Two more, waiters that gave up or crashed and the
 * time that a silent one costs, are in silent-processes and one-ticket.
 */
describePrivate('The known weaknesses of Redisson’s fair lock do not occur', () => {
  const fixture = FairFixture.install();
  let a: RedisLockRegistry;
  let b: RedisLockRegistry;

  beforeEach(async () => {
    [a, b] = await Promise.all([fixture.process(), fixture.process()]);
  });

  it('(a) a head of the queue that is registered only there does not block the lock', async () => {
    await fixture.admin.zAdd(fixture.queue, { score: 1, value: 'somebody:1' });
    await (await a.obtain(KEY).lock({ waitTime: WAIT_LIMIT })).unlock();
    const lease = await a.obtain(KEY).lock();
    const [waiting] = await fixture.enqueue([() => b.obtain(KEY).lock()]);
    await fixture.admin.zAdd(fixture.queue, { score: 1, value: 'somebody:1' });
    const begun = performance.now();
    await lease.unlock();
    await (await waiting)?.unlock();
    expect(performance.now() - begun).toBeLessThan(SLACK + machineDelay());
    expect(await fixture.keys()).toEqual([]);
  });

  it('(a) nor does one that is registered in full, long after its process is gone', async () => {
    await fixture.admin.zAdd(fixture.queue, { score: 1, value: 'somebody:1' });
    await fixture.admin.hSet(fixture.tickets, { 'somebody:1': '60000', somebody: '1:message' });
    await (await a.obtain(KEY).lock({ waitTime: WAIT_LIMIT })).unlock();
    await until(async () => (await fixture.keys()).length === 0);
  });

  it('(b) while the lock is granted and the grant is not renewed, no process polls more than once a second', async () => {
    const lease = await a.obtain(KEY).lock({ ttl: 60_000 });
    const frozen = await fixture.workerWith(1);
    // Waiters poll once in ten of these intervals.
    const every = { idleBetweenTries: 100 };
    const [c, d] = await Promise.all([fixture.process(every), fixture.process(every)]);
    const waiting = await fixture.enqueue([c, d, c, d].map((registry) => () => registry.obtain(KEY).lock()));
    frozen.freeze();
    await fixture.admin.configResetStat();
    const begun = performance.now();
    await lease.unlock();
    await sleep(0.8 * CLAIM_WINDOW);
    // The release, and one poll of each process.
    expect(await fixture.scriptsRun()).toBeLessThanOrEqual(3);
    for (const next of waiting) await (await next).unlock();
    expect(performance.now() - begun).toBeLessThan(CLAIM_WINDOW + SLACK + machineDelay());
    frozen.thaw();
    await frozen.next('queued');
  });

  it('(c) clocks of clients have no say: neither in the order nor in who is alive', async () => {
    const now = Date.now.bind(Date);
    const order: string[] = [];
    const lease = await (await fixture.process()).obtain(KEY).lock();
    const waiting: Promise<unknown>[] = [];
    const dates = jest.spyOn(Date, 'now');
    try {
      for (const [name, registry, skew] of [
        ['a1', a, 3_600_000],
        ['b1', b, -3_600_000],
        ['a2', a, 0],
        ['b2', b, 86_400_000],
      ] as const) {
        dates.mockImplementation(() => now() + skew);
        waiting.push(
          ...(await fixture.enqueue([
            () =>
              registry
                .obtain(KEY)
                .lock()
                .then((next) => {
                  order.push(name);
                  return next.unlock();
                }),
          ])),
        );
      }
    } finally {
      dates.mockRestore();
    }
    expect(await fixture.admin.zCard(fixture.queue)).toBe(2);
    await lease.unlock().catch(() => undefined);
    await Promise.all(waiting);
    expect(order).toEqual(['a1', 'b1', 'a2', 'b2']);
  });

  it('(d) callers with different waiting times do not move each other’s places', async () => {
    const lease = await a.obtain(KEY).lock();
    const order: string[] = [];
    // Long enough for all of them to be in the queue before the first gives up, also on a busy machine.
    const [c, d, e, f] = await Promise.all([1, 2, 3, 4].map(() => fixture.process()));
    const callers = [
      ['short', b, 2_500],
      ['for ever', c, Number.POSITIVE_INFINITY],
      ['long', d, 60_000],
      ['shorter', e, 2_000],
      ['last', f, 30_000],
    ] as const;
    const waiting = await fixture.enqueue(
      callers.map(
        ([name, registry, waitTime]) =>
          () =>
            (registry as RedisLockRegistry)
              .obtain(KEY)
              .tryLock({ waitTime })
              .then((next) => {
                if (next !== null) order.push(name);
                return next;
              }),
      ),
    );
    const before = await fixture.admin.zRangeWithScores(fixture.queue, 0, -1);
    expect(await waiting[0]).toBeNull();
    expect(await waiting[3]).toBeNull();
    await until(async () => (await fixture.admin.zCard(fixture.queue)) === 3);
    expect(await fixture.admin.zRangeWithScores(fixture.queue, 0, -1)).toEqual([before[1], before[2], before[4]]);
    await lease.unlock();
    for (const i of [1, 2, 4]) await (await waiting[i])?.unlock();
    expect(order).toEqual(['for ever', 'long', 'last']);
  });
});
