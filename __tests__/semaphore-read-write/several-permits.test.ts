import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, it } from '@jest/globals';
import { CannotAcquireLockError, type DistributedLock, type LockOptions } from '../../lib';
import type { BackedLockRegistry } from '../../lib/registry/backed-lock-registry';
import { describeReal } from '../support/redis';
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

  it('Several permits that are more than there are, are a RangeError that quotes the number', async () => {
    const [one] = await pair();
    await expect(semaphore(one).lock({ permits: 5 })).rejects.toThrow(RangeError);
    await expect(semaphore(one).tryLock({ permits: 5 })).rejects.toThrow('from 1 to 4, got 5');
    await expect(one.obtain('lock').lock({ permits: 2 })).rejects.toThrow('to be 1, got 2');
    await expect(one.readWrite('other').read.run(() => 1, { permits: 2 })).rejects.toThrow(RangeError);
    await expect(one.multi(['a', 'b']).lock({ permits: 2 })).rejects.toThrow(RangeError);
    for (const permits of [0, 1.5, -1, Number.NaN]) {
      await expect(semaphore(one).lock({ permits })).rejects.toThrow(RangeError);
    }
    await expect(semaphore(one).lock({ permits: '2' } as unknown as LockOptions)).rejects.toThrow(TypeError);
    await (await one.obtain('lock').lock({ permits: 1 })).unlock();
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

  it('Several permits are not taken again inside `run`, and a nested request for more is an error at once, in every way', async () => {
    const [one] = await pair();
    const lock = semaphore(one);
    await lock.run(
      async () => {
        const inside = await lock.run(() => lock.run(() => 'inside', { permits: 2 }), { permits: 3 });
        expect(inside).toBe('inside');
        const sibling = await lock.lock(); // not even its turn is waited for
        const more = { permits: 4, waitTime: 5_000 };
        for (const attempt of [
          () => lock.run(() => 1, more),
          () => lock.tryRun(() => 1, more),
          () => lock.lock(more),
          () => lock.tryLock(more),
        ]) {
          const error = await attempt().catch((reason: Error) => reason);
          expect(error).toBeInstanceOf(CannotAcquireLockError);
          expect(error).toMatchObject({
            key: 'key',
            message: expect.stringContaining('with 4 permits inside its own'),
          });
        }
        await sibling.unlock();
        expect(await lock.run(() => lock.tryRun(() => 'deep'))).toEqual({ ran: true, value: 'deep' });
        await lock.run(() => expect(lock.tryLock(more)).rejects.toThrow('which has 3'));
      },
      { permits: 3 },
    );
    expect(await lock.inspect()).toMatchObject({ held: false });
  });
}

describeReal('Several permits', () => {
  const fixture = SharedFixture.install();
  severalPermits(() => fixture.pair());

  it('Several permits are passed on to a caller that asks for as many, and to no other', async () => {
    const registry = await fixture.registry();
    const held = await semaphore(registry).lock({ permits: 3 });
    const same = semaphore(registry).lock({ permits: 3 });
    await queued(semaphore(registry), 1);
    await held.unlock();
    const next = await same;
    const one = semaphore(registry).lock({ permits: 2 });
    await queued(semaphore(registry), 1);
    await next.unlock();
    const other = await one;
    expect(ownerOf(other)).not.toBe(ownerOf(next));
    expect(await semaphore(registry).inspect()).toMatchObject({ holders: 2 });
    await other.renew(70_000);
    await expect(other.eval('return 1')).resolves.toBe(1);
    await other.unlock();
    expect(await fixture.client.exists(`${fixture.registryKey}:key`)).toBe(0);
  });

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
