import { beforeEach, expect, it } from '@jest/globals';
import { LockLostError, NotLockOwnerError } from '../../lib';
import type { InternalLease } from '../../lib/core/internal-lease';
import { UnlockOrder } from '../../lib/core/unlock-order';
import { InMemoryLockRegistry } from '../../lib/testing';
import { lossOf } from '../support/test-registry';

let registry: InMemoryLockRegistry;

beforeEach(() => {
  registry = new InMemoryLockRegistry();
});

it.each([
  ['a semaphore', () => registry.semaphore('key', { permits: 3 })],
  ['a lock for reading', () => registry.readWrite('key').read],
])(
  'unlock() of a lock that this process holds several times takes a lost lease of %s for none of them: it reports the loss, and then unlocks the other one',
  async (_, of) => {
    const lock = of();
    // One that a run has is not of those that unlock() ends.
    let end = (): void => undefined;
    const running = lock.run(() => new Promise<void>((resolve) => (end = resolve)));
    const short = await lock.lock({ ttl: 20 });
    const other = await lock.lock();
    await lossOf(short);
    await expect(lock.unlock()).rejects.toThrow(LockLostError);
    other.assertHeld();
    await lock.unlock();
    expect(other.remaining).toBe(0);
    end();
    await running;
  },
);

it('unlock() of a lock that this process holds several times is refused while two of its leases are held, and unlocks neither', async () => {
  const lock = registry.semaphore('key', { permits: 3 });
  const leases = [await lock.lock(), await lock.lock()];
  await expect(lock.unlock()).rejects.toThrow(NotLockOwnerError);
  for (const lease of leases) lease.assertHeld();
  for (const lease of leases) await lease.unlock();
});

it('The unlock order of a lock keeps 16 of 100 lost leases and counts the others: unlock() reports each, and then ends the one that is held', async () => {
  let looks = 0;
  let unlocked = 0;
  const lease = (checkLost: () => boolean) => {
    let isUnlocked = false;
    const one = {
      get isUnlocked() {
        looks++;
        return isUnlocked;
      },
      checkLost,
      lossError: () => new LockLostError('key', 'expired'),
      async unlock() {
        unlocked++;
        isUnlocked = true;
        if (checkLost()) throw one.lossError();
      },
    };
    return one as unknown as InternalLease;
  };
  const order = new UnlockOrder();
  expect([order.isUnlocked, await order.unlockNext()]).toEqual([true, false]);
  for (let i = 0; i < 100; i++) order.add(lease(() => true));
  expect(looks).toBeLessThan(2_000);
  order.add(lease(() => false));
  for (let i = 0; i < 100; i++) {
    expect(order.isUnlocked).toBe(false);
    await expect(order.unlockNext()).rejects.toThrow(LockLostError);
  }
  expect([order.isUnlocked, await order.unlockNext()]).toEqual([false, true]);
  expect([order.isUnlocked, await order.unlockNext(), unlocked]).toEqual([true, false, 17]);
  order.add(lease(() => false));
  expect([order.isUnlocked, await order.unlockNext(), order.isUnlocked]).toEqual([false, true, true]);
  const lost = Array.from({ length: 18 }, () => lease(() => true));
  for (const one of lost) order.add(one);
  for (const one of lost) await one.unlock().catch(() => undefined);
  expect([order.isUnlocked, await order.unlockNext().catch(() => 'lost'), order.isUnlocked]).toEqual([
    false,
    'lost',
    true,
  ]);
});

it('Leases of a shared lock that are held are never counted as lost, however many there are', async () => {
  const semaphore = registry.semaphore('key', { permits: 20 });
  const leases = await Promise.all(Array.from({ length: 20 }, () => semaphore.lock()));
  for (const lease of leases) await lease.unlock();
  const last = await semaphore.lock();
  await semaphore.unlock();
  expect(last.remaining).toBe(0);
});

it('The unlock order of a shared lock looks at each of many leases that are held a few times only, however many there are', () => {
  let looks = 0;
  const order = new UnlockOrder();
  for (let i = 0; i < 1_000; i++) {
    order.add({
      get isUnlocked() {
        looks++;
        return false;
      },
      checkLost() {
        looks++;
        return false;
      },
    } as InternalLease);
  }
  expect(looks).toBeLessThan(10_000);
});
