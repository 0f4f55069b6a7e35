import { setTimeout as sleep } from 'node:timers/promises';
import { beforeAll, beforeEach, expect, it } from '@jest/globals';
import { describePrivate } from '../support/private-redis';
import { FairFixture } from './fair-fixture';
import { measured } from './measured';
import { KEY } from './worker';

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
