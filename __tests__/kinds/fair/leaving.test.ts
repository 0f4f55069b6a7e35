import { setTimeout as sleep } from 'node:timers/promises';
import { beforeEach, expect, it } from '@jest/globals';
import type { Lease, RedisLockRegistry } from '../../../lib';
import { machineDelay } from '../../support/machine-delay';
import { describePrivate } from '../../support/private-redis';
import { until } from '../../support/until';
import { FairFixture, lock, SLACK } from './fair-fixture';
import { KEY } from './worker';

describePrivate('What a fair lock leaves behind', () => {
  const fixture = FairFixture.install();
  let a: RedisLockRegistry;
  let b: RedisLockRegistry;

  beforeEach(async () => {
    [a, b] = await Promise.all([fixture.process(), fixture.process()]);
  });

  const tickets = () => fixture.admin.zCard(fixture.queue);
  const gone = () => until(async () => (await fixture.keys()).length === 0);

  it('What a fair lock leaves behind is no key without an expiry, also where one was evicted while the other stayed', async () => {
    const lease = await a.obtain(KEY).lock();
    const waiting = await fixture.enqueue([() => b.obtain(KEY).lock()]);
    for (const evicted of [fixture.tickets, fixture.queue]) {
      await fixture.admin.del(evicted);
      const c = await fixture.process();
      // Its attempt writes both keys. The polls of the others come later.
      waiting.push(c.obtain(KEY).lock());
      await until(async () => (await fixture.admin.exists(evicted)) === 1);
      expect(await fixture.admin.pTTL(fixture.tickets)).toBeGreaterThan(0);
      expect(await fixture.admin.pTTL(fixture.queue)).toBeGreaterThan(0);
    }
    await lease.unlock();
    await Promise.all(waiting.map(async (one) => (await one).unlock()));
    await gone();
  });

  it('What a fair lock leaves behind has a life of its own also when the last ticket was granted and is not claimed', async () => {
    const waiter = await fixture.proxied();
    const lease = await a.obtain(KEY).lock();
    const [waiting] = await fixture.enqueue([() => waiter.registry.obtain(KEY).lock()]);
    waiter.commands.requests.hold = true;
    await lease.unlock();
    // What says how the process is notified: it may have other callers.
    expect(await fixture.admin.exists(fixture.tickets)).toBe(1);
    expect(await fixture.admin.pTTL(fixture.tickets)).toBeGreaterThan(0);
    waiter.commands.requests.hold = false;
    await (await waiting)?.unlock();
    await gone();
  });

  it('What a fair lock leaves behind is repaired after FLUSHALL: every caller acquires the lock, those of one process in order', async () => {
    const lease = await lock(await fixture.process({ expireAfter: 1_500 }))();
    const order: string[] = [];
    const names = ['a1', 'b1', 'a2', 'b2', 'a3', 'b3'];
    const waiting = await fixture.enqueue(
      names.map((name) => () => (name[0] === 'a' ? a : b).run(KEY, () => void order.push(name))),
    );
    const begun = performance.now();
    await fixture.admin.flushAll();
    await Promise.all(waiting);
    expect(performance.now() - begun).toBeLessThan(1_500 + SLACK + machineDelay());
    expect(order.filter((name) => name[0] === 'a')).toEqual(['a1', 'a2', 'a3']);
    expect(order.filter((name) => name[0] === 'b')).toEqual(['b1', 'b2', 'b3']);
    await expect(lease.unlock()).rejects.toMatchObject({ name: 'LockLostError' });
    await gone();
  });

  it('A fair lock works on a server without memory: hand-over and release succeed, and refused callers leave no key', async () => {
    const lease = await a.obtain(KEY).lock();
    const waiting = await fixture.enqueue([() => b.obtain(KEY).lock(), () => a.obtain(KEY).lock()]);
    const c = await fixture.process();
    await fixture.admin.configSet('maxmemory', '1');
    try {
      const refused = expect(c.obtain(KEY).lock({ waitTime: 5_000 })).rejects.toMatchObject({
        name: 'CannotAcquireLockError',
        message: expect.stringContaining('OOM'),
      });
      await refused;
      expect(await c.obtain(KEY).tryLock()).toBeNull();
      // The second caller is of the holder's process.
      expect(await tickets()).toBe(1);
      await lease.unlock();
      for (const next of waiting) await (await next).unlock();
      await gone();
    } finally {
      await fixture.admin.configSet('maxmemory', '0');
    }
  });

  it.each([
    ['is kept until its minHold ends', (lease: Lease) => lease.unlock()],
    ['is detached', (lease: Lease) => lease.detach()],
    ['is lost', () => a.obtain(KEY).forceUnlock()],
  ])('What a fair lock leaves behind is no channel where the last lease that was passed on %s (P8)', async (_, end) => {
    const channels = () => fixture.admin.pubSubChannels(`*${fixture.registryKey}*`);
    const first = await a.obtain(KEY).lock();
    const next = a.obtain(KEY).lock({ minHold: 1_000 });
    await first.unlock();
    const last = await next;
    await until(async () => (await channels()).length > 0);
    await end(last);
    await until(async () => (await channels()).length === 0);
  });

  const dead = Object.fromEntries(Array.from({ length: 100 }, (_, i) => [`dead ${i}`, '1:1:message']));

  it('What a fair lock leaves behind is no field of a process that is gone, also while the queue is never empty', async () => {
    const { admin, tickets: fields } = fixture;
    const lease = await lock(await fixture.process())();
    const waiting = lock(await fixture.process())();
    await fixture.queued(1);
    await admin.hSet(fields, dead);
    await until(async () => (await admin.hLen(fields)) < 5);
    await lease.unlock();
    await (await waiting).unlock();
  });

  it('What a fair lock leaves behind is no such field where nobody waits for long enough to poll', async () => {
    const { admin, tickets: fields } = fixture;
    let isOver = false;
    let turns = 0;
    const takeTurns = async (registry: RedisLockRegistry) => {
      for (; !isOver; turns++) await registry.run(KEY, () => sleep(2));
    };
    // So nobody polls as a matter of routine.
    const processes = await Promise.all([1, 2, 3].map(() => fixture.process({ idleBetweenTries: 60_000 })));
    const callers = processes.flatMap((process) => [takeTurns(process), takeTurns(process)]);
    const channels = `${fixture.names.companion('grants')}:*`;
    await until(async () => turns > 20 && (await admin.pubSubChannels(channels)).length === processes.length);
    await admin.hSet(fields, dead);
    await until(async () => (await admin.hLen(fields)) < 5);
    isOver = true;
    await Promise.all(callers);
  });
});
