import { setTimeout as sleep } from 'node:timers/promises';
import { expect, it } from '@jest/globals';
import { describePrivate } from '../support/private-redis';
import { until } from '../support/until';
import { FairFixture, lock } from './fair-fixture';
import { KEY } from './worker';

/** ms; a silence of 250 ms counts as one. */
const SILENT = 300;

describePrivate('The reply to a poll is lost, and a message grants the lock', () => {
  const fixture = FairFixture.install();

  it('P1: others of the process meet contention, and no silence', async () => {
    const [other, cut] = await Promise.all([fixture.process(), fixture.proxied()]);
    await fixture.handOverOnce(other, cut.registry);
    const held = await lock(other)();
    const waiting = lock(cut.registry)();
    await fixture.queued(1);
    cut.commands.replies.swallow = true;
    const sent = cut.commands.requests.bytes;
    await until(() => cut.commands.requests.bytes > sent);
    await held.unlock();
    // The message is on its way, and the first renewal of the grant is lost as well.
    await sleep(50);
    cut.commands.replies.swallow = false;
    cut.commands.reset();
    const lease = await waiting;
    await sleep(SILENT);
    await lease.renew();
    expect(await cut.registry.obtain(KEY).tryLock({ waitTime: 20 })).toBeNull();
    await expect(cut.registry.obtain(KEY).lock({ waitTime: 20 })).rejects.toMatchObject({ name: 'LockTimeoutError' });
    await lease.unlock();
  });
});
