import { expect, it } from '@jest/globals';
import type { Lease } from '../../lib';
import type { RedisLease } from '../../lib/core/lease';
import { CLAIM_WINDOW } from '../../lib/protocols/fair/fair-scripts';
import { machineDelay } from '../support/machine-delay';
import { describePrivate } from '../support/private-redis';
import { lossOf } from '../support/test-registry';
import { until } from '../support/until';
import { lock, SLACK, settlesWithin, ThreeProcesses } from './fair-fixture';
import { KEY } from './worker';

describePrivate('A grant by hand-over', () => {
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

  it('A grant by hand-over is entered without a reply where its ticket was sent less than half a window before, and the lease lives on its first renewal', async () => {
    const { lease, waiting } = await fixture.shortWait(fixture.holder, fixture.waiter.registry);
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

  it('A grant by hand-over waits for its first renewal when its ticket was sent more than a window before, and is held from its grant on', async () => {
    const { lease, waiting } = await fixture.longWait(fixture.holder, fixture.waiter.registry);
    fixture.waiter.commands.replies.hold = true;
    await lease.unlock();
    expect(await settlesWithin(waiting, 200)).toBe(false);
    expect(await fixture.admin.pTTL(fixture.names.lock)).toBeGreaterThan(2 * CLAIM_WINDOW);
    fixture.waiter.commands.replies.hold = false;
    const entered = await waiting;
    expect((entered as RedisLease).heldFor).toBeLessThan(CLAIM_WINDOW);
    await entered.unlock();
  });

  it('A grant by hand-over may overtake the reply to the enqueueing', async () => {
    const { lease, waiting } = await grantedWithoutReply();
    await until(async () => (await fixture.admin.pTTL(fixture.names.lock)) > 2 * CLAIM_WINDOW);
    fixture.waiter.commands.replies.hold = false;
    const entered = await waiting;
    expect(entered.fencingToken).toBeGreaterThan(lease.fencingToken as number);
    await entered.unlock();
    expect(await fixture.keys()).toEqual([]);
  });

  it('A grant by hand-over is not entered after its window: the renewal is refused, and the waiter keeps its position', async () => {
    const { lease, waiting } = await fixture.longWait(fixture.holder, fixture.waiter.registry);
    const [next] = await fixture.enqueue([lock(fixture.other)]);
    // The grant runs out: its process gets no message, and cannot poll.
    fixture.waiter.messages.replies.hold = true;
    fixture.waiter.commands.requests.hold = true;
    await lease.unlock();
    expect(await fixture.admin.pTTL(fixture.names.lock)).toBeGreaterThan(500);
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

  it('A grant by hand-over is lost at the end of its window when the renewal does not arrive', async () => {
    const { lease, waiting } = await fixture.shortWait(fixture.holder, fixture.waiter.registry);
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

  it('A grant by hand-over of a caller that has left goes to the next one at once', async () => {
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

  it('A grant by hand-over goes to the next caller at once where nobody of this process has left its ticket in the queue', async () => {
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
