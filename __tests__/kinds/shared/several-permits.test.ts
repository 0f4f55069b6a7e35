import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, it } from '@jest/globals';
import type { DistributedLock } from '../../../lib';
import type { BackedLockRegistry } from '../../../lib/registry/backed-lock-registry';
import { describeReal } from '../../support/redis';
import { ownerOf, type Pair, pairsInMemory, queued, SharedFixture } from './shared-fixture';

function semaphore(registry: BackedLockRegistry, permits = 4): DistributedLock {
  return registry.semaphore('key', { permits });
}

/** What holds wherever the semaphore is. */
function severalPermits(pair: () => Promise<Pair>): void {
  it('Several permits are taken all or none, and given back together', async () => {
    const [one, other] = await pair();
    const three = await semaphore(one).lock({ permits: 3 });
    expect(await semaphore(other).tryLock({ permits: 2 })).toBeNull();
    const last = await semaphore(other).tryLock({ permits: 1 });
    expect(await semaphore(one).inspect()).toMatchObject({ held: true, holders: 4 });
    expect(await semaphore(one).tryLock()).toBeNull();
    await three.unlock();
    expect(await semaphore(one).inspect()).toMatchObject({ holders: 1 });
    expect(await semaphore(one).run(() => 'two', { permits: 2 })).toBe('two');
    expect(await semaphore(other).tryRun(() => 'three', { permits: 3 })).toEqual({ ran: true, value: 'three' });
    await last?.unlock();
    expect(await semaphore(one).inspect()).toMatchObject({ held: false });
  });

  it('Several permits are given back when the ttl of a vanished holder ends, and no others', async () => {
    const [one, other] = await pair();
    const alive = await semaphore(other).lock({ ttl: 60_000 });
    const dead = await semaphore(one).lock({ permits: 3, ttl: 300 });
    const next = await semaphore(other).lock({ permits: 3, waitTime: 10_000 });
    expect(dead.remaining).toBe(0);
    alive.assertHeld();
    expect(await semaphore(one).tryLock()).toBeNull();
    await expect(dead.unlock()).rejects.toMatchObject({ name: 'LockLostError', reason: 'expired' });
    // The release of a lost lease gave back nobody else's.
    expect(await semaphore(one).inspect()).toMatchObject({ holders: 4 });
    await Promise.all([alive.unlock(), next.unlock()]);
  });

  it('Several permits are not overtaken for ever: who asks for many stops those behind, of every process', async () => {
    const [one, other] = await pair();
    const held = [await semaphore(one).lock(), await semaphore(other).lock()];
    const order: string[] = [];
    const many = semaphore(one).run(() => void order.push('many'), { permits: 4 });
    await queued(semaphore(one), 1);
    const few = [one, other].map((registry) => semaphore(registry).run(() => void order.push('few')));
    await sleep(100);
    expect(order).toEqual([]);
    for (const lease of held) await lease.unlock();
    await Promise.all([many, ...few]);
    expect(order).toEqual(['many', 'few', 'few']);
  });

  it('Several permits count for all there are when the number was lowered meanwhile', async () => {
    const [one, other] = await pair();
    const held = await semaphore(one).lock();
    const many = semaphore(one).lock({ permits: 4, waitTime: 20_000 });
    await queued(semaphore(one), 1);
    expect(await semaphore(other, 2).tryLock()).toBeNull();
    await held.unlock();
    const lease = await many;
    expect(await semaphore(other, 2).tryLock()).toBeNull();
    await lease.unlock();
  });
}

describeReal('Several permits', () => {
  const fixture = SharedFixture.install();
  severalPermits(() => fixture.pair());

  it('Several permits are listed, unlocked by force and kept as they are', async () => {
    const [one, other] = await fixture.pair();
    const three = await semaphore(one).lock({ permits: 3, ttl: 60_000, minHold: 30_000 });
    await three.unlock();
    expect(await semaphore(other).inspect()).toMatchObject({ holders: 3, owner: `kept@${ownerOf(three)}` });
    expect(await semaphore(other).tryLock({ permits: 2 })).toBeNull();
    const listed = [];
    for await (const lock of other.list()) listed.push(lock);
    expect(listed).toMatchObject([{ key: 'key', holders: 3, name: expect.any(String) }]);
    await semaphore(other).forceUnlock();
    await (await semaphore(other).lock({ permits: 4 })).unlock();
  });
});

describe('Several permits, in memory', () => {
  const pair = pairsInMemory();
  severalPermits(async () => pair());
});
