import { expect, it } from '@jest/globals';
import type { Lease, LockTimeoutError } from '../../../lib';
import { messagesOn } from '../../support/messages';
import { createRealClient, describeReal } from '../../support/redis';
import { until, WAIT_LIMIT } from '../../support/until';
import { ownerOf, SharedFixture } from './shared-fixture';

/** ms; and by how much times of the server differ that are counted in whole ms. */
const MIN_HOLD = 800;
const ROUNDING = 5;

describeReal('minHold of a shared lock', () => {
  const fixture = SharedFixture.install();

  const members = () => fixture.members('key');

  it('minHold of a shared lock takes a permit until it ends, and no other one', async () => {
    const [one, other] = await fixture.pair();
    const [here, there] = [one.semaphore('key', { permits: 2 }), other.semaphore('key', { permits: 2 })];
    const calledAt = performance.now();
    const kept = await here.lock({ ttl: 60_000, minHold: 30_000 });
    const free = await here.lock();
    await kept.unlock();
    expect(await members()).toEqual([`semaphore:kept@${ownerOf(kept)}`, `semaphore:${ownerOf(free)}`]);
    expect(await there.tryLock()).toBeNull();
    const error = await there.lock({ waitTime: 400 }).catch((reason: LockTimeoutError) => reason);
    expect(String(error)).toMatch(/unlocked it, and its minHold ends in/);
    // Its ticket leaves the queue in the background: until then nobody behind it enters.
    await fixture.queued('key', 0);
    await free.unlock();
    const next = (await there.tryLock()) as Lease;
    expect(next).not.toBeNull();
    expect(await here.tryLock()).toBeNull();
    await next.unlock();
    const { remaining, owner, holders } = await there.inspect();
    expect({ owner, holders }).toEqual({ owner: `kept@${ownerOf(kept)}`, holders: 1 });
    expect(remaining).toBeLessThanOrEqual(30_000);
    expect(remaining).toBeGreaterThan(30_000 - (performance.now() - calledAt) - ROUNDING);
  });

  it('minHold of a shared lock keeps readers out after a write, and a writer out after a read, and then they enter', async () => {
    const [one, other] = await fixture.pair();
    const messages = await messagesOn(createRealClient(), fixture.channel('key'));
    const [here, there] = [one.readWrite('key'), other.readWrite('key')];
    for (const [first, next] of [
      [here.write, there.read],
      [here.read, there.write],
    ] as const) {
      const calledAt = performance.now();
      const held = await first.lock({ ttl: 60_000, minHold: MIN_HOLD });
      const waiting = next.lock({ waitTime: WAIT_LIMIT });
      await fixture.queued('key', 1);
      await held.unlock();
      const lease = await waiting;
      // It was notified, though it may not enter yet: it learns when it may.
      const kind = next === there.read ? 'read' : 'write';
      // The attempt that it was notified for came before the one that entered.
      const ticket = `${kind}:${ownerOf(lease).replace(/\d+$/, '')}`;
      const isTicket = (word: string): boolean => word.startsWith(ticket) && !word.includes('=');
      await until(() => messages.some((message) => message.split(' ').some(isTicket)));
      messages.length = 0;
      expect(performance.now() - calledAt).toBeGreaterThanOrEqual(MIN_HOLD - ROUNDING);
      await lease.unlock();
    }
  });

  it('minHold of a reader lets other readers in', async () => {
    const [one, other] = await fixture.pair();
    const held = await one.readWrite('key').read.lock({ ttl: 60_000, minHold: 30_000 });
    await held.unlock();
    // The key ends with it, and not with the ttl.
    expect(await fixture.client.pTTL(`${fixture.registryKey}:key`)).toBeLessThanOrEqual(30_000);
    const lease = (await other.readWrite('key').read.tryLock()) as Lease;
    await lease.unlock();
    expect(await other.readWrite('key').write.tryLock()).toBeNull();
  });
});
