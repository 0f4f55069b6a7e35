import { expect, it } from '@jest/globals';
import type { Lease } from '../../lib';
import { CLAIM_WINDOW } from '../../lib/protocols/fair/fair-scripts';
import { HoldableClient } from '../support/held-commands';
import { machineDelay } from '../support/machine-delay';
import { describePrivate } from '../support/private-redis';
import { until } from '../support/until';
import { FairFixture, lock, settlesWithin, ThreeProcesses } from './fair-fixture';
import { KEY } from './worker';

describePrivate('A fair lock that is granted to a caller that has left', () => {
  const fixture = ThreeProcesses.install();

  it('goes to the next caller at once', async () => {
    const lease = await lock(fixture.holder)();
    const aborting = new AbortController();
    const [abandoned, next] = await fixture.enqueue([
      () => fixture.waiter.registry.obtain(KEY).lock({ signal: aborting.signal }),
      lock(fixture.other),
    ]);
    const rejected = expect(abandoned).rejects.toBe('aborted');
    fixture.waiter.commands.requests.hold = true;
    aborting.abort('aborted');
    await rejected;
    await lease.unlock();
    expect(await settlesWithin(next as Promise<Lease>, 100)).toBe(false);
    fixture.waiter.commands.requests.hold = false;
    const begun = performance.now();
    const entered = await next;
    expect(performance.now() - begun).toBeLessThan(CLAIM_WINDOW / 2 + machineDelay());
    await entered?.unlock();
  });

  it('goes to the next caller at once also where nobody of this process has left its ticket in the queue', async () => {
    const lease = await lock(fixture.holder)();
    const [mine, next] = await fixture.enqueue([lock(fixture.waiter.registry), lock(fixture.other)]);
    const [ticket] = await fixture.admin.zRange(fixture.queue, 0, 0);
    // As of an enqueueing that was given up, and that the server carried out much later.
    const ghost = ticket?.replace(/\d+$/, '999') as string;
    await fixture.admin.zAdd(fixture.queue, { score: 1, value: ghost });
    const begun = performance.now();
    await lease.unlock();
    await (await mine)?.unlock();
    await (await next)?.unlock();
    expect(performance.now() - begun).toBeLessThan(CLAIM_WINDOW / 2 + machineDelay());
    expect(await fixture.keys()).toEqual([]);
  });
});

describePrivate('A grant that was entered, and is to be kept for its minHold', () => {
  const fixture = FairFixture.install();

  it('is not released by a message that reports it once more before it is kept', async () => {
    const holder = await fixture.process();
    const client = new HoldableClient(await fixture.redis.connect());
    const messages = await fixture.redis.connect();
    const waiter = fixture.on(client, { subscriber: messages });
    const sent: (readonly [channel: string, message: string])[] = [];
    const observer = await fixture.redis.connect();
    await observer.pSubscribe(`*${fixture.registryKey}*`, (message, channel) => {
      if (message.startsWith('grant ')) sent.push([channel, message]);
    });
    const before = await lock(holder)();
    const [waiting] = await fixture.enqueue([() => waiter.obtain(KEY).lock({ minHold: 30_000 })]);
    await before.unlock();
    const lease = await waiting;
    await until(() => sent.length > 0);
    // As in a pool with one slow connection: whatever else is sent overtakes it.
    const caught = client.catchNext('held');
    const unlocking = lease?.unlock();
    const keeping = await caught;
    const [channel, message] = sent[0] as readonly [string, string];
    await fixture.admin.publish(channel, message);
    await messages.ping();
    await until(() => client.inFlight === 0);
    expect(await fixture.admin.exists(fixture.names.lock)).toBe(1);
    await keeping.deliver();
    await unlocking;
    expect(await fixture.admin.get(fixture.names.lock)).toMatch(/^kept@/);
  });
});
