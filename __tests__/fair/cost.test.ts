import { setTimeout as sleep } from 'node:timers/promises';
import { expect, it } from '@jest/globals';
import { HoldableClient } from '../support/held-commands';
import { describePrivate } from '../support/private-redis';
import { until } from '../support/until';
import { FairFixture } from './fair-fixture';
import { KEY } from './worker';

describePrivate('What a fair lock costs', () => {
  const fixture = FairFixture.install();

  it.each([
    // Within a process, a release hands the lock over for its full ttl. Between two, the grant is also renewed.
    [1, 10, 1],
    [2, 5, 2],
    [4, 5, 2],
  ])(
    'The cost of a fair lock is, with %d processes of %d callers each, at most %d scripts for an acquisition',
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
      const begun = performance.now();
      await rounds(30);
      const seconds = (performance.now() - begun) / 1_000;
      const acquisitions = processes * callers * 30;
      // Waiters also poll: about once a second, and when the window of a grant ends.
      const polls = 2 * processes * Math.ceil(seconds);
      const perAcquisition = ((await fixture.scriptsRun()) - polls) / acquisitions;
      expect(perAcquisition).toBeLessThanOrEqual(most + 0.1);
    },
  );

  it('The cost of a fair lock is about one request a second for a process that waits while another one serves earlier callers of its own', async () => {
    const client = new HoldableClient(await fixture.redis.connect());
    // It polls once in ten of these intervals.
    const waiter = fixture.on(client, { idleBetweenTries: 100, subscriber: await fixture.redis.connect() });
    const busy = await fixture.process();
    const serving = Array.from({ length: 250 }, () => busy.run(KEY, () => sleep(10)));
    await until(async () => (await fixture.admin.exists(fixture.names.lock)) === 1);
    await sleep(20);
    const begun = performance.now();
    const waiting = waiter.run(KEY, () => undefined);
    await fixture.queued(1);
    await Promise.all(serving);
    const seconds = Math.ceil((performance.now() - begun) / 1_000);
    // One more for the attempt, the poll after the subscription, and the first sight of a holder that is not known yet.
    const asked = client.answered;
    expect(asked).toBeLessThanOrEqual(2 * seconds + 4);
    await waiting;
  });

  it('The cost of a fair lock is, for 100 waiters in 2 processes, one request a second for each process (P9)', async () => {
    const TTL = 1_800;
    const TIME = 3_600;
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
