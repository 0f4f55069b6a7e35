import { setTimeout as sleep } from 'node:timers/promises';
import { beforeAll, beforeEach, expect, it } from '@jest/globals';
import type { Lease, RedisLockRegistry } from '../../../lib';
import { ACQUIRE, CLAIM_WINDOW, HAND_OVER } from '../../../lib/kinds/fair/scripts';
import type { LockScript } from '../../../lib/redis/script';
import { machineDelay } from '../../support/machine-delay';
import { describePrivate } from '../../support/private-redis';
import type { ProxiedRegistry } from '../../support/proxied-registry';
import { until } from '../../support/until';
import { FairFixture, lock, SLACK } from './fair-fixture';
import { KEY } from './worker';

/** ms; a silence of 250 ms counts as one. */
const SILENT = 300;

describePrivate('A fair lock whose replies are lost', () => {
  const fixture = FairFixture.install();
  let other: RedisLockRegistry;
  let cut: ProxiedRegistry;

  beforeAll(async () => {
    // The server knows every script: what is lost is named by its hash.
    const [one, two] = [await fixture.process(), await fixture.process()];
    await fixture.handOverOnce(one, two);
    await fixture.handOverOnce(one, one);
  });

  beforeEach(async () => {
    [other, cut] = await Promise.all([fixture.process(), fixture.proxied()]);
  });

  /** Whether it is sent by its hash or as text, alone or with others. */
  const lose = ({ sha1, source, forMany }: LockScript) =>
    Promise.race([sha1, source.slice(-100), forMany.sha1].map((match) => cut.commands.loseReply(match)));

  const leaves = async (lease: Lease | undefined) => {
    await lease?.unlock();
    await until(async () => (await fixture.keys()).length === 0, { within: 2 * CLAIM_WINDOW });
  };

  it('ACQUIRE of a held lock: one ticket, in the position of its first arrival', async () => {
    const held = await lock(other)();
    const lost = lose(ACQUIRE);
    const first = cut.registry.obtain(KEY).lock();
    await lost;
    await fixture.queued(1, 'any');
    const [second] = await fixture.enqueue([lock(await fixture.process())], 'any');
    await held.unlock();
    const lease = await first;
    await lease.unlock();
    await leaves(await second);
  });

  it('HAND_OVER to the next caller of the process, while another process waits: both get the lock', async () => {
    const held = await lock(cut.registry)();
    const waiting = await fixture.enqueue([lock(cut.registry), lock(other)]);
    const lost = lose(HAND_OVER);
    const begun = performance.now();
    await Promise.all([held.unlock(), lost]);
    const taken = waiting.map(async (one) => {
      const lease = await one;
      lease.assertHeld();
      await lease.unlock();
      return lease.fencingToken;
    });
    const tokens = await Promise.all(taken);
    expect(performance.now() - begun).toBeLessThan(CLAIM_WINDOW + SLACK + machineDelay());
    expect(new Set([held.fencingToken, ...tokens]).size).toBe(3);
    await leaves(undefined);
  });

  it('HAND_OVER that gave the next caller of the process a position: it gets the lock after the others, once', async () => {
    const held = await lock(cut.registry)();
    const [first, next] = await fixture.enqueue([lock(other), lock(cut.registry)]);
    const lost = lose(HAND_OVER);
    await Promise.all([held.unlock(), lost]);
    const lease = (await first) as Lease;
    // The ticket that the lost reply was about is taken out, and the caller has another one.
    await fixture.queued(1, 'any');
    await lease.unlock();
    const begun = performance.now();
    const entered = (await next) as Lease;
    expect(performance.now() - begun).toBeLessThan(CLAIM_WINDOW + SLACK + machineDelay());
    expect(entered.fencingToken).toBeGreaterThan(lease.fencingToken as number);
    await leaves(entered);
  });

  /** A caller of the process behind the proxies that has just come into the queue: it listens from a wait before. */
  const shortWait = async () => {
    await fixture.handOverOnce(other, cut.registry);
    const held = await lock(other)();
    const [waiting] = await fixture.enqueue([lock(cut.registry)]);
    return { held, waiting: waiting as Promise<Lease> };
  };

  it('A grant by hand-over is entered without a reply where its ticket was sent less than half a window before, and the lease lives on its first renewal', async () => {
    const { held, waiting } = await shortWait();
    cut.commands.replies.hold = true;
    await held.unlock();
    const entered = await waiting;
    expect(entered.remaining).toBeGreaterThan(0);
    expect(entered.remaining).toBeLessThanOrEqual(CLAIM_WINDOW);
    expect(entered.fencingToken).toBeGreaterThan(held.fencingToken as number);
    cut.commands.replies.hold = false;
    await until(() => entered.remaining > 2 * CLAIM_WINDOW);
    await leaves(entered);
  });

  it('A grant by hand-over is not entered after its window: the renewal is refused, and the waiter keeps its position', async () => {
    const { held, waiting } = await shortWait();
    await sleep(1.2 * CLAIM_WINDOW); // that its ticket was sent before proves nothing any more
    const [next] = await fixture.enqueue([lock(await fixture.process())]);
    // The grant runs out: its process gets no message, and cannot poll.
    cut.messages.replies.hold = true;
    cut.commands.requests.hold = true;
    await held.unlock();
    expect(await fixture.admin.pTTL(fixture.names.lock)).toBeGreaterThan(500);
    const second = (await next) as Lease;
    const order: string[] = [];
    void waiting.then(() => order.push('late'));
    const [last] = await fixture.enqueue([() => lock(other)().then((l) => l.unlock().then(() => order.push('last')))]);
    cut.messages.replies.hold = false;
    await cut.subscriber.ping();
    cut.commands.requests.hold = false;
    await fixture.queued(2, 'any');
    expect(order).toEqual([]);
    expect(second.remaining).toBeGreaterThan(0);
    await second.unlock();
    await (await waiting).unlock();
    await last;
    expect(order).toEqual(['late', 'last']);
  });

  it('P1: POLL, and a message grants the lock: others of the process meet contention, and no silence', async () => {
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
    await leaves(lease);
  });
});
