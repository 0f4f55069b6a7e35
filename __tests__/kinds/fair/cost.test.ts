import { setTimeout as sleep } from 'node:timers/promises';
import { expect, it } from '@jest/globals';
import { describePrivate } from '../../support/private-redis';
import { FairFixture } from './fair-fixture';
import { KEY } from './worker';

describePrivate('What a fair lock costs', () => {
  const fixture = FairFixture.install();

  it('The cost of a fair lock is at most 2 scripts for an acquisition: a release hands it over, and the grant is renewed', async () => {
    const registries = await Promise.all([1, 2, 3, 4].map(() => fixture.process()));
    const callers = registries.flatMap((registry) => Array.from({ length: 5 }, () => registry));
    const rounds = async (times: number) => {
      const each = callers.map(async (registry) => {
        for (let i = 0; i < times; i++) await registry.run(KEY, () => undefined);
      });
      await Promise.all(each);
    };
    await rounds(2);
    await fixture.admin.configResetStat();
    const begun = performance.now();
    await rounds(30);
    const seconds = (performance.now() - begun) / 1_000;
    // Waiters also poll: about once a second, and when the window of a grant ends.
    const polls = 2 * registries.length * Math.ceil(seconds);
    expect(((await fixture.scriptsRun()) - polls) / (30 * callers.length)).toBeLessThanOrEqual(2.1);
  });

  it('The cost of a fair lock is, for 100 waiters in 2 processes, one request a second for each process (P9)', async () => {
    const TTL = 1_800;
    const TIME = 1_800;
    const holder = await fixture.process({ expireAfter: TTL });
    // They poll once in ten of these intervals.
    const every = { idleBetweenTries: 100 };
    const waiters = await Promise.all([fixture.process(every), fixture.process(every)]);
    const lease = await holder.obtain(KEY).lock();
    const waiting = waiters.flatMap((registry) => Array.from({ length: 50 }, () => registry.run(KEY, () => undefined)));
    // One ticket of each process.
    await fixture.queued(2);
    await fixture.admin.configResetStat();
    const begun = performance.now();
    await sleep(TIME);
    const elapsed = performance.now() - begun;
    const renewals = Math.ceil(elapsed / (TTL / 3));
    const asked = await fixture.scriptsRun();
    // At any moment the key lives for two thirds of the ttl at least, which is longer than a second.
    const polls = 2 * Math.ceil(elapsed / 1_000);
    expect(asked).toBeLessThanOrEqual(renewals + polls + 1);
    expect(lease.remaining).toBeGreaterThan(0);
    await lease.unlock();
    await Promise.all(waiting);
    expect(await fixture.keys()).toEqual([]);
  });
});
