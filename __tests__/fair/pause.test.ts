import { describe, expect, it } from '@jest/globals';
import { RELEASE } from '../../lib/protocols/fair/fair-scripts';
import { until } from '../support/until';
import { FairFixture, lock, settlesWithin } from './fair-fixture';

/** ms that the pause lasts, and from one to the next. */
const PAUSE = 300;
const INTERVAL = 5_000;

describe('A pause of a fair lock for pollers', () => {
  const fair = FairFixture.install();

  it('A pause of a fair lock for pollers is published as a release to waiters of pub-sub, and keeps the waiters of fair out until it ends', async () => {
    const { names, registryKey, admin } = fair;
    const owner = 'busy:1';
    await admin.set(names.lock, owner, { PX: 60_000 });
    const listener = await fair.redis.connect();
    const messages: string[] = [];
    await listener.subscribe(names.channel, (message) => messages.push(message));
    const waiting = lock(await fair.process())();
    await fair.queued(1);
    const since = performance.now();
    const reply = await admin.eval(RELEASE.source, {
      keys: [names.lock, fair.queue, fair.tickets],
      arguments: [owner, 'DEL', `PUBLISH message 10000 0 0 0  ${PAUSE} ${INTERVAL} 0 0 0`, `${registryKey}-channel`],
    });
    expect((reply as unknown[]).at(-1)).toBe(0);
    const lease = await waiting;
    expect(performance.now() - since).toBeGreaterThan(0.9 * PAUSE);
    await until(() => messages.length > 0);
    expect(messages).toEqual([names.lock]);
    await lease.unlock();
  });

  it('A pause of a fair lock for pollers is over when the server clock was set back: a free lock goes to the first waiter', async () => {
    const { admin, names, tickets } = fair;
    await admin.set(names.lock, 'dead:1', { PX: 500 });
    const waiting = lock(await fair.process())();
    await fair.queued(1);
    await admin.hSet(tickets, 'pause', String((Date.now() + 30_000) * 1_000));
    expect(await settlesWithin(waiting, 5_000)).toBe(true);
    await (await waiting).unlock();
  });
});
