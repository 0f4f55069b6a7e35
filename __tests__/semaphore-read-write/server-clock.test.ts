import { expect, it } from '@jest/globals';
import { describeReal } from '../support/redis';
import { WAIT_LIMIT } from '../support/until';
import { SharedFixture } from './shared-fixture';

const STEP = 30_000;

describeReal('the clock of the server is set back', () => {
  const fixture = SharedFixture.install();

  it('the ticket of a process that died does not hold up others for as long as the step', async () => {
    const [one, other] = await fixture.pair();
    const held = await one.semaphore('key', { permits: 1 }).lock();
    const abort = new AbortController();
    const dead = other.semaphore('key', { permits: 1 }).lock({ signal: abort.signal });
    await fixture.queued('key', 1);
    const waiters = `{${fixture.registryKey}:key}:waiters`;
    // A script sees a clock that was set back as times that lie ahead. It is entered again, for a process that is gone.
    const tickets = Object.entries(await fixture.client.hGetAll(waiters)).filter(([name]) => name !== 'permits');
    abort.abort();
    await dead.catch(() => undefined);
    for (const [name, value] of tickets) {
      const [arrival, ...ends] = value.split(':').map(Number);
      const ahead = [(arrival ?? 0) + STEP * 1_000, ...ends.map((end) => end + STEP)].join(':');
      await fixture.client.hSet(waiters, `${name}0`, ahead);
    }
    await fixture.client.pExpire(waiters, 2 * STEP);
    await held.unlock();
    const calledAt = performance.now();
    const lease = await one.semaphore('key', { permits: 1 }).lock({ waitTime: WAIT_LIMIT });
    expect(performance.now() - calledAt).toBeLessThan(STEP / 2);
    await lease.unlock();
  });
});
