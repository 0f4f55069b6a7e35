import { setTimeout as sleep } from 'node:timers/promises';
import { expect, it } from '@jest/globals';
import type { Lease } from '../../../lib';
import { describeReal } from '../../support/redis';
import { until } from '../../support/until';
import { SharedFixture } from './shared-fixture';

describeReal('A semaphore', () => {
  const fixture = SharedFixture.install();

  it('A semaphore has up to `permits` leases at a time, over all processes', async () => {
    const [one, other] = await fixture.pair();
    const [here, there] = [one.semaphore('key', { permits: 3 }), other.semaphore('key', { permits: 3 })];
    // At once: the grant of one caller says nothing about the others.
    const leases = await Promise.all([here.tryLock(), here.tryLock(), there.tryLock()]);
    expect(leases).not.toContain(null);
    expect(await here.tryLock()).toBeNull();
    expect(await there.tryLock()).toBeNull();
    await leases[0]?.unlock();
    const next = await there.lock();
    expect(await here.tryLock()).toBeNull();
    await Promise.all([...leases.slice(1), next].map((lease) => lease?.unlock()));
    expect(await fixture.keys()).toEqual([]);
    // So it is when a call was refused before.
    const later = await Promise.all([here.tryLock(), here.tryLock()]);
    expect(later).not.toContain(null);
    await Promise.all(later.map((lease) => lease?.unlock()));
  });

  it('A semaphore counts a ticket in front as if it had entered, as long as its process may come', async () => {
    const registry = await fixture.registry();
    const name = `{${fixture.registryKey}:key}:waiters`;
    const until = Date.now() + 1_500;
    await fixture.client.hSet(name, 'semaphore:elsewhere:1', `1000:${until}`);
    expect(await registry.semaphore('key', { permits: 1 }).tryLock()).toBeNull();
    const second = await registry.semaphore('key', { permits: 2 }).tryLock();
    expect(second).not.toBeNull();
    await second?.unlock();
    // Nobody polls for it any more: it is dropped.
    const lease = await registry.semaphore('key', { permits: 1 }).lock({ waitTime: 20_000 });
    expect(Date.now()).toBeGreaterThanOrEqual(until - 50);
    await lease.unlock();
  });

  it('A semaphore drops a ticket of a process that died before the clock of the server was set back', async () => {
    const semaphore = (await fixture.registry()).semaphore('key', { permits: 1 });
    // A script sees a clock that was set back as times that lie ahead.
    const waits = (ahead: number) =>
      fixture.client.hSet(`{${fixture.registryKey}:key}:waiters`, 'semaphore:dead:1', `1000:${ahead}:${ahead}:0`);
    // One that lies ahead by a little is that of a process which may come.
    await waits(Date.now() + 800);
    expect(await semaphore.tryLock()).toBeNull();
    await waits(Date.now() + 5_000);
    const lease = await semaphore.tryLock();
    expect(lease).not.toBeNull();
    await lease?.unlock();
  });

  it('A semaphore leaves no queue behind for ever: it has an expiry, with one waiter and with several', async () => {
    const [one, other] = await fixture.pair();
    const held = await one.semaphore('key', { permits: 1 }).lock();
    const waiters = `{${fixture.registryKey}:key}:waiters`;
    const waiting: Promise<Lease>[] = [];
    for (const registry of [one, other]) {
      waiting.push(registry.semaphore('key', { permits: 1 }).lock({ waitTime: 20_000 }));
      await fixture.queued('key', waiting.length);
      expect(await fixture.client.pTTL(waiters)).toBeGreaterThan(0);
    }
    await held.unlock();
    await Promise.all(waiting.map(async (lease) => (await lease).unlock()));
    expect(await fixture.client.exists(waiters)).toBe(0);
  });

  it('A semaphore can be inspected, listed and unlocked by force', async () => {
    const [one, other] = await fixture.pair({ lockType: 'redisson', expireAfter: 600 });
    const semaphore = one.semaphore('key', { permits: 2 });
    const leases = await Promise.all([semaphore.lock(), other.semaphore('key', { permits: 2 }).lock()]);
    expect(await semaphore.inspect()).toMatchObject({ held: true, holders: 2, waiting: 0, fencingToken: undefined });
    const listed = [];
    for await (const lock of one.list()) listed.push(lock);
    expect(listed).toMatchObject([{ key: 'key', held: true, holders: 2 }]);
    const waiting = other.semaphore('key', { permits: 2 }).lock();
    await fixture.queued('key', 1);
    expect(await semaphore.forceUnlock()).toMatchObject({ holders: 2, waiting: 1 });
    const next = await waiting;
    await until(() => leases.every((lease) => lease.signal.aborted));
    for (const lease of leases) expect(lease.signal.reason).toMatchObject({ reason: 'expired' });
    await next.unlock();
    expect(await semaphore.inspect()).toMatchObject({ held: false, owner: undefined, holders: 0, waiting: 0 });
  });

  it('A semaphore sends two commands for an uncontended lock and unlock, and no message', async () => {
    const registry = await fixture.registry();
    const semaphore = registry.semaphore('key', { permits: 2 });
    await semaphore.run(() => undefined); // the server has the scripts from now on
    const commands = await fixture.commandsOf(() => semaphore.run(() => undefined));
    const requests = commands.filter(({ source }) => source !== 'lua');
    expect(requests.map(({ name }) => name)).toEqual(['EVALSHA', 'EVALSHA']);
    expect(commands.filter(({ name }) => name === 'PUBLISH')).toEqual([]);
  });

  it('A semaphore costs a process under 2 requests a second, however many of its callers wait', async () => {
    const [one, other] = await fixture.pair();
    const held = await one.semaphore('key', { permits: 1 }).lock();
    const stop = new AbortController();
    const semaphore = other.semaphore('key', { permits: 1 });
    const waiting = Array.from({ length: 250 }, () => semaphore.lock({ signal: stop.signal }));
    const ended = Promise.allSettled(waiting);
    await fixture.queued('key', 1);
    // The script that proves the subscription is sent with its text once.
    await sleep(500);
    const startedAt = performance.now();
    const requests = await fixture.requestsOf(() => sleep(2_500));
    // A poll that falls on the edge counts once more, and so does a proof.
    expect(requests.length).toBeLessThan((2 * (performance.now() - startedAt)) / 1_000 + 1);
    stop.abort();
    await ended;
    await held.unlock();
  });
});
