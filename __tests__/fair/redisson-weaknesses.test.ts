import { setTimeout as sleep } from 'node:timers/promises';
import { beforeEach, expect, it, jest } from '@jest/globals';
import type { RedisLockRegistry } from '../../lib';
import { CLAIM_WINDOW } from '../../lib/protocols/fair/fair-scripts';
import { machineDelay } from '../support/machine-delay';
import { describePrivate } from '../support/private-redis';
import { until, WAIT_LIMIT } from '../support/until';
import { FairFixture, SLACK } from './fair-fixture';
import { KEY } from './worker';

/** More of them are in left-grants, silent-processes and one-ticket. */
describePrivate('The known weaknesses of Redisson’s fair lock do not occur', () => {
  const fixture = FairFixture.install();
  let a: RedisLockRegistry;
  let b: RedisLockRegistry;

  beforeEach(async () => {
    [a, b] = await Promise.all([fixture.process(), fixture.process()]);
  });

  it('(a) a head of the queue does not block the lock, long after its process is gone', async () => {
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
        waiting.push(...(await fixture.enqueue([() => registry.run(KEY, () => void order.push(name))])));
      }
    } finally {
      dates.mockRestore();
    }
    expect(await fixture.admin.zCard(fixture.queue)).toBe(2);
    await lease.unlock().catch(() => undefined);
    await Promise.all(waiting);
    expect(order).toEqual(['a1', 'b1', 'a2', 'b2']);
  });
});
