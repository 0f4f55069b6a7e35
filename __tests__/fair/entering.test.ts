import { expect, it } from '@jest/globals';
import type { Lease } from '../../lib';
import { CLAIM_WINDOW } from '../../lib/protocols/fair/fair-scripts';
import { machineDelay } from '../support/machine-delay';
import { describePrivate } from '../support/private-redis';
import { lossOf } from '../support/test-registry';
import { until } from '../support/until';
import { lock, SLACK, settlesWithin, ThreeProcesses } from './fair-fixture';
import { KEY } from './worker';

describePrivate('Entering on a message', () => {
  const fixture = ThreeProcesses.install();

  /** The waiter is granted the lock, and has no reply to its enqueueing: its subscription lingers from the wait before. */
  async function grantedWithoutReply(): Promise<{ readonly lease: Lease; readonly waiting: Promise<Lease> }> {
    await fixture.handOverOnce(fixture.holder, fixture.waiter.registry);
    const lease = await lock(fixture.holder)();
    fixture.waiter.commands.replies.hold = true;
    const waiting = fixture.waiter.registry.obtain(KEY).lock();
    await fixture.queued(1);
    await lease.unlock();
    return { lease, waiting };
  }

  it('needs no reply: the grant is proved by an exchange from before, and the lease lives on its first renewal', async () => {
    const { lease, waiting } = await fixture.longWait(fixture.holder, fixture.waiter.registry);
    fixture.waiter.commands.replies.hold = true;
    await lease.unlock();
    const entered = await waiting;
    expect(entered.remaining).toBeGreaterThan(0);
    expect(entered.remaining).toBeLessThanOrEqual(CLAIM_WINDOW);
    expect(entered.fencingToken).toBeGreaterThan(lease.fencingToken as number);
    fixture.waiter.commands.replies.hold = false;
    await until(() => entered.remaining > 2 * CLAIM_WINDOW);
    await entered.unlock();
  });

  it('waits for the first renewal when the connection is another one than when the clock was read', async () => {
    // It polls once a second.
    const { client, commands, registry } = await fixture.proxied({ idleBetweenTries: 100 });
    const { lease, waiting } = await fixture.longWait(fixture.holder, registry);
    for (let before = -1; (await fixture.scriptsRun()) !== before; ) {
      // A poll may have read the clock over the new connection: then once more.
      commands.replies.hold = false;
      before = await fixture.scriptsRun();
      const { socketEpoch } = client;
      commands.reset();
      await until(() => client.socketEpoch !== socketEpoch && client.isReady);
      commands.replies.hold = true;
    }
    await lease.unlock();
    expect(await settlesWithin(waiting, 200)).toBe(false);
    expect(await fixture.admin.pTTL(fixture.names.lock)).toBeGreaterThan(2 * CLAIM_WINDOW);
    commands.replies.hold = false;
    await (await waiting).unlock();
  });

  it('waits for the first renewal when a minHold may end after the window', async () => {
    const lease = await lock(fixture.holder)();
    const minHold = 2 * CLAIM_WINDOW;
    const [waiting] = await fixture.enqueue([() => fixture.waiter.registry.obtain(KEY).lock({ minHold })]);
    fixture.waiter.commands.replies.hold = true;
    await lease.unlock();
    expect(await settlesWithin(waiting as Promise<Lease>, 200)).toBe(false);
    await until(async () => (await fixture.admin.pTTL(fixture.names.lock)) > minHold);
    fixture.waiter.commands.replies.hold = false;
    await (await waiting)?.unlock();
  });

  it('accepts a grant that overtakes the reply to the enqueueing', async () => {
    const { lease, waiting } = await grantedWithoutReply();
    await until(async () => (await fixture.admin.pTTL(fixture.names.lock)) > 2 * CLAIM_WINDOW);
    fixture.waiter.commands.replies.hold = false;
    const entered = await waiting;
    expect(entered.fencingToken).toBeGreaterThan(lease.fencingToken as number);
    await entered.unlock();
    expect(await fixture.keys()).toEqual([]);
  });

  it('does not happen on a grant older than its window: the renewal is refused, and the waiter keeps its position', async () => {
    const { lease, waiting } = await fixture.longWait(fixture.holder, fixture.waiter.registry);
    const [next] = await fixture.enqueue([lock(fixture.other)]);
    // The grant runs out: its process gets no message, and cannot poll.
    fixture.waiter.messages.replies.hold = true;
    fixture.waiter.commands.requests.hold = true;
    await lease.unlock();
    const second = await (next as Promise<Lease>);
    const order: string[] = [];
    void waiting.then(() => order.push('late'));
    const [last] = await fixture.enqueue([
      () => lock(fixture.holder)().then((l) => l.unlock().then(() => order.push('last'))),
    ]);
    fixture.waiter.messages.replies.hold = false;
    await fixture.waiter.subscriber.ping();
    fixture.waiter.commands.requests.hold = false;
    await fixture.queued(2, 'any');
    expect(order).toEqual([]);
    expect(second.remaining).toBeGreaterThan(0);
    await second.unlock();
    await (await waiting).unlock();
    await last;
    expect(order).toEqual(['late', 'last']);
  });

  it('loses the lease at the end of its window when the renewal does not arrive', async () => {
    const { lease, waiting } = await fixture.longWait(fixture.holder, fixture.waiter.registry);
    fixture.waiter.commands.requests.hold = true;
    await lease.unlock();
    const entered = await waiting;
    const enteredAt = performance.now();
    const { at } = await lossOf(entered);
    expect(at - enteredAt).toBeLessThan(CLAIM_WINDOW + SLACK / 5 + machineDelay());
    expect(await fixture.admin.pTTL(fixture.names.lock)).toBeLessThanOrEqual(50);
    fixture.waiter.commands.requests.hold = false;
    await expect(entered.unlock()).rejects.toMatchObject({ name: 'LockLostError' });
    await until(async () => (await fixture.keys()).length === 0);
  });
});
