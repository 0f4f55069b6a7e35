import { setTimeout as sleep } from 'node:timers/promises';
import { beforeAll, beforeEach, expect, it } from '@jest/globals';
import type { RedisLockRegistry } from '../../lib';
import { connectTo, describePrivate } from '../support/private-redis';
import { FairFixture } from './fair-fixture';
import { measured, median } from './measured';
import { KEY } from './worker';

const DELAY = 10;

describePrivate('What a fair lock costs', () => {
  let fixture: FairFixture;

  beforeAll(async () => {
    fixture = await FairFixture.open();
  });

  beforeEach(() => fixture.beginTest());

  /** Scripts that clients asked for since the last CONFIG RESETSTAT. */
  const calls = async () => {
    const stats = await fixture.admin.info('commandstats');
    return [...stats.matchAll(/cmdstat_eval(?:sha)?:calls=(\d+)/g)].reduce((sum, [, n]) => sum + Number(n), 0);
  };

  const timed = async (task: () => Promise<unknown>) => {
    const begun = performance.now();
    await task();
    return performance.now() - begun;
  };

  it.each([
    ['another process', true],
    ['the same process', false],
  ])('a hand-over to %s takes one round trip', async (_, toAnother) => {
    const proxy = await fixture.redis.proxy();
    const clients = await Promise.all([connectTo(proxy.address), connectTo(proxy.address)]);
    const [from, to] = clients.map((client) => fixture.on(client)) as [RedisLockRegistry, RedisLockRegistry];
    // A duplicate connects to where its client did: messages come through the proxy too.
    proxy.requests.delay = DELAY;
    proxy.replies.delay = DELAY;
    const pings: number[] = [];
    const handOvers: number[] = [];
    for (let i = 0; i < 16; i++) {
      const lease = await from.obtain(KEY).lock();
      const [waiting] = await fixture.enqueue([() => (toAnother ? to : from).obtain(KEY).lock()]);
      pings.push(await timed(() => clients[0]?.ping() as Promise<unknown>));
      const begun = performance.now();
      const entered = waiting?.then((next) => ({ next, after: performance.now() - begun }));
      await lease.unlock();
      const outcome = await entered;
      if (i > 0) handOvers.push(outcome?.after ?? Number.NaN);
      await outcome?.next.unlock();
    }
    measured(`hand-over to ${_}`, {
      ping: median(pings),
      handOver: median(handOvers),
      worst: Math.max(...handOvers),
    });
    expect(median(pings)).toBeGreaterThanOrEqual(2 * DELAY - 2);
    expect(median(handOvers)).toBeLessThan(1.25 * median(pings));
  });

  it.each([
    [1, 10, 3],
    [2, 10, 3],
    [4, 5, 3],
  ])(
    'is, with %d processes of %d callers each, at most %d commands for an acquisition',
    async (processes, callers, most) => {
      const registries = await Promise.all(Array.from({ length: processes }, () => fixture.process()));
      const rounds = async (times: number) => {
        await Promise.all(
          registries.flatMap((registry) =>
            Array.from({ length: callers }, async () => {
              for (let i = 0; i < times; i++) await registry.run(KEY, () => undefined);
            }),
          ),
        );
      };
      await rounds(2);
      await fixture.admin.configResetStat();
      await rounds(30);
      const perAcquisition = (await calls()) / (processes * callers * 30);
      measured(`commands, ${processes} x ${callers}`, { perAcquisition });
      expect(perAcquisition).toBeLessThanOrEqual(most + 0.1);
    },
  );

  it('is two commands without contention, and no connection', async () => {
    const registry = await fixture.process();
    await registry.run(KEY, () => undefined);
    const before = (await fixture.admin.clientList()).length;
    await fixture.admin.configResetStat();
    for (let i = 0; i < 10; i++) await registry.run(KEY, () => undefined);
    expect(await calls()).toBe(20);
    expect((await fixture.admin.clientList()).length).toBe(before);
  });

  it('is, for 100 waiters in 2 processes, one request a second for each process (P9)', async () => {
    const TTL = 1_800;
    const TIME = 3_600;
    const holder = await fixture.process({ expireAfter: TTL });
    // They poll once in ten of these intervals.
    const every = { idleBetweenTries: 100 };
    const waiters = await Promise.all([fixture.process(every), fixture.process(every)]);
    const lease = await holder.obtain(KEY).lock();
    const waiting = waiters.flatMap((registry) => Array.from({ length: 50 }, () => registry.run(KEY, () => undefined)));
    await fixture.queued(100);
    await fixture.admin.configResetStat();
    const begun = performance.now();
    await sleep(TIME);
    const elapsed = performance.now() - begun;
    const renewals = Math.ceil(elapsed / (TTL / 3));
    const asked = await calls();
    // At any moment the key lives for two thirds of the ttl at least, which is longer than a second.
    const polls = 2 * Math.ceil(elapsed / 1_000);
    measured('100 waiters, 2 processes', { elapsed, asked, renewals, polls });
    expect(asked).toBeLessThanOrEqual(renewals + polls + 1);
    expect(lease.remaining).toBeGreaterThan(0);
    await lease.unlock();
    await Promise.all(waiting);
    expect(await fixture.keys()).toEqual([]);
  });
});
