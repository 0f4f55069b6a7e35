import { setTimeout as sleep } from 'node:timers/promises';
import { beforeAll, beforeEach, expect, it } from '@jest/globals';
import type { Lease, RedisLockRegistry } from '../../lib';
import { CLAIM_WINDOW } from '../../lib/protocols/fair/fair-scripts';
import { machineDelay } from '../support/machine-delay';
import { describePrivate } from '../support/private-redis';
import { lossOf } from '../support/test-registry';
import { until } from '../support/until';
import { FairFixture, type ProxiedProcess, SLACK } from './fair-fixture';
import { KEY } from './worker';

function block(ms: number): void {
  const end = performance.now() + ms;
  while (performance.now() < end);
}

describePrivate('Entering on a message', () => {
  let fixture: FairFixture;
  let holder: RedisLockRegistry;
  let waiter: ProxiedProcess;
  let other: RedisLockRegistry;

  beforeAll(async () => {
    fixture = await FairFixture.open();
  });

  beforeEach(async () => {
    fixture.beginTest();
    [holder, waiter, other] = await Promise.all([fixture.process(), fixture.proxied(), fixture.process()]);
  });

  const lock = (registry: RedisLockRegistry) => () => registry.obtain(KEY).lock();

  const settlesWithin = (promise: Promise<unknown>, ms: number) =>
    Promise.race([promise.then(() => true), sleep(ms, false)]);

  /** The holder's lease, and a waiter's that is longer in the queue than any window: its own sending proves nothing. */
  const longWait = async (registry = waiter.registry) => {
    const lease = await lock(holder)();
    const [waiting] = await fixture.enqueue([lock(registry)]);
    await sleep(1.2 * CLAIM_WINDOW);
    return { lease, waiting: waiting as Promise<Lease> };
  };

  it('needs no reply: the grant is proved by an exchange from before, and the lease lives on its first renewal', async () => {
    const { lease, waiting } = await longWait();
    waiter.commands.replies.hold = true;
    await lease.unlock();
    const entered = await waiting;
    expect(entered.remaining).toBeGreaterThan(0);
    expect(entered.remaining).toBeLessThanOrEqual(CLAIM_WINDOW);
    expect(entered.fencingToken).toBeGreaterThan(lease.fencingToken as number);
    waiter.commands.replies.hold = false;
    await until(() => entered.remaining > 2 * CLAIM_WINDOW);
    await entered.unlock();
  });

  it('waits for the first renewal when the connection is another one than when the clock was read', async () => {
    const { lease, waiting } = await longWait();
    const { socketEpoch } = waiter.client;
    waiter.commands.reset();
    await until(() => waiter.client.socketEpoch !== socketEpoch && waiter.client.isReady);
    waiter.commands.replies.hold = true;
    await lease.unlock();
    expect(await settlesWithin(waiting, 200)).toBe(false);
    expect(await fixture.admin.pTTL(fixture.names.lock)).toBeGreaterThan(2 * CLAIM_WINDOW);
    waiter.commands.replies.hold = false;
    await (await waiting).unlock();
  });

  it('accepts a grant that overtakes the reply to the enqueueing', async () => {
    // Its subscription lingers from the wait before.
    const before = await lock(holder)();
    const [waited] = await fixture.enqueue([lock(waiter.registry)]);
    await before.unlock();
    await (await waited)?.unlock();
    const lease = await lock(holder)();
    waiter.commands.replies.hold = true;
    const waiting = waiter.registry.obtain(KEY).lock();
    await fixture.queued(1);
    await lease.unlock();
    await until(async () => (await fixture.admin.pTTL(fixture.names.lock)) > 2 * CLAIM_WINDOW);
    waiter.commands.replies.hold = false;
    const entered = await waiting;
    expect(entered.fencingToken).toBeGreaterThan(lease.fencingToken as number);
    await entered.unlock();
    expect(await fixture.keys()).toEqual([]);
  });

  it('accepts a grant that overtakes the reply to the enqueueing by more than its window', async () => {
    const before = await lock(holder)();
    const [waited] = await fixture.enqueue([lock(waiter.registry)]);
    await before.unlock();
    await (await waited)?.unlock();
    const lease = await lock(holder)();
    waiter.commands.replies.hold = true;
    const waiting = waiter.registry.obtain(KEY).lock();
    await fixture.queued(1);
    await lease.unlock();
    await sleep(1.3 * CLAIM_WINDOW);
    waiter.commands.replies.hold = false;
    const entered = await waiting;
    entered.assertHeld();
    await entered.unlock();
    expect(await fixture.keys()).toEqual([]);
  });

  /** A task that blocks the event loop as soon as it has the lock. Not through a proxy, which would be blocked too. */
  const blockedFor = async (ms: number) => {
    const { lease, waiting } = await longWait(other);
    const running = waiting.then((entered) => {
      block(ms);
      return entered;
    });
    await lease.unlock();
    const entered = await running;
    expect(await fixture.admin.pTTL(fixture.names.lock)).toBeGreaterThan(2 * CLAIM_WINDOW);
    expect(entered.signal.aborted).toBe(false);
    await until(() => entered.remaining > 2 * CLAIM_WINDOW);
    await entered.unlock();
  };

  /** So that the server knows every script. */
  const handOverOnce = async () => {
    const lease = await lock(holder)();
    const [waiting] = await fixture.enqueue([lock(other)]);
    await lease.unlock();
    await (await waiting)?.unlock();
  };

  it.each([0.8 * CLAIM_WINDOW, 1.5 * CLAIM_WINDOW])(
    'has its renewal on the way: a task that blocks the event loop at once for %d ms keeps its lease',
    async (ms) => {
      await handOverOnce();
      await blockedFor(ms);
    },
  );

  it('has its renewal on the way also over a connection on which none was made yet, to a server that knows no script', async () => {
    const { lease, waiting } = await longWait(other);
    await fixture.admin.scriptFlush();
    const running = waiting.then((entered) => {
      block(0.8 * CLAIM_WINDOW);
      return entered;
    });
    await lease.unlock();
    const entered = await running;
    expect(await fixture.admin.pTTL(fixture.names.lock)).toBeGreaterThan(2 * CLAIM_WINDOW);
    await entered.unlock();
  });

  it('does not happen on a grant older than its window: the renewal is refused, and the waiter keeps its position', async () => {
    const { lease, waiting } = await longWait();
    const [next] = await fixture.enqueue([lock(other)]);
    // The grant runs out: its process gets no message, and cannot poll.
    waiter.messages.replies.hold = true;
    waiter.commands.requests.hold = true;
    await lease.unlock();
    const second = await (next as Promise<Lease>);
    const order: string[] = [];
    void waiting.then(() => order.push('late'));
    const [last] = await fixture.enqueue([() => lock(holder)().then((l) => l.unlock().then(() => order.push('last')))]);
    waiter.messages.replies.hold = false;
    await waiter.subscriber.ping();
    waiter.commands.requests.hold = false;
    await fixture.queued(2, 'any');
    expect(order).toEqual([]);
    expect(second.remaining).toBeGreaterThan(0);
    await second.unlock();
    await (await waiting).unlock();
    await last;
    expect(order).toEqual(['late', 'last']);
  });

  it('loses the lease at the end of its window when the renewal does not arrive', async () => {
    const { lease, waiting } = await longWait();
    waiter.commands.requests.hold = true;
    await lease.unlock();
    const entered = await waiting;
    const enteredAt = performance.now();
    const { at } = await lossOf(entered);
    expect(at - enteredAt).toBeLessThan(CLAIM_WINDOW + SLACK / 5 + machineDelay());
    expect(await fixture.admin.pTTL(fixture.names.lock)).toBeLessThanOrEqual(50);
    waiter.commands.requests.hold = false;
    await expect(entered.unlock()).rejects.toMatchObject({ name: 'LockLostError' });
    await until(async () => (await fixture.keys()).length === 0);
  });

  it('passes on at once a grant whose caller has left', async () => {
    const lease = await lock(holder)();
    const aborting = new AbortController();
    const [abandoned, next] = await fixture.enqueue([
      () => waiter.registry.obtain(KEY).lock({ signal: aborting.signal }),
      lock(other),
    ]);
    const rejected = expect(abandoned).rejects.toBe('aborted');
    waiter.commands.requests.hold = true;
    aborting.abort('aborted');
    await rejected;
    await lease.unlock();
    expect(await settlesWithin(next as Promise<Lease>, 100)).toBe(false);
    waiter.commands.requests.hold = false;
    const begun = performance.now();
    const entered = await next;
    expect(performance.now() - begun).toBeLessThan(CLAIM_WINDOW / 2 + machineDelay());
    await entered?.unlock();
  });

  it('passes on at once a grant to a ticket of its process that stands in the queue though nobody left it there', async () => {
    const lease = await lock(holder)();
    const [mine, next] = await fixture.enqueue([lock(waiter.registry), lock(other)]);
    const [ticket] = await fixture.admin.zRange(fixture.queue, 0, 0);
    // As of an enqueueing that was given up, and that the server carried out much later.
    const ghost = ticket?.replace(/\d+$/, '999') as string;
    await fixture.admin.zAdd(fixture.queue, { score: 1, value: ghost });
    await fixture.admin.hSet(
      fixture.tickets,
      ghost,
      (await fixture.admin.hGet(fixture.tickets, ticket as string)) as string,
    );
    const begun = performance.now();
    await lease.unlock();
    await (await mine)?.unlock();
    await (await next)?.unlock();
    expect(performance.now() - begun).toBeLessThan(CLAIM_WINDOW / 2 + machineDelay());
    expect(await fixture.keys()).toEqual([]);
  });

  it('costs no window, whenever a caller gives up', async () => {
    let longest = 0;
    for (let i = 0; i < 25; i++) {
      const lease = await lock(holder)();
      const aborting = new AbortController();
      const [abandoned, next] = await fixture.enqueue([
        () => waiter.registry.obtain(KEY).lock({ signal: aborting.signal }),
        lock(other),
      ]);
      const given = abandoned?.then((l) => l.unlock()).catch(() => undefined);
      const begun = performance.now();
      const unlocked = lease.unlock();
      setTimeout(() => aborting.abort(), Math.random() * 4);
      const entered = await next;
      longest = Math.max(longest, performance.now() - begun);
      await Promise.all([entered?.unlock(), unlocked, given]);
    }
    expect(longest).toBeLessThan(CLAIM_WINDOW / 2 + machineDelay());
    await until(async () => (await fixture.keys()).length === 0);
  });
});
