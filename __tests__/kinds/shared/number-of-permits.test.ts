import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, it } from '@jest/globals';
import type { DistributedLock } from '../../../lib';
import type { BackedLockRegistry } from '../../../lib/registry/backed-lock-registry';
import { InMemoryLocks } from '../../../lib/testing';
import { describeReal } from '../../support/redis';
import { until } from '../../support/until';
import { type Pair, pairsInMemory, queued, SharedFixture } from './shared-fixture';

/** A waiter polls after ten of these ms: within a test it enters by a message, or by a call. */
const RARELY = { idleBetweenTries: 5_000 };

function semaphore(registry: BackedLockRegistry, permits: number): DistributedLock {
  return registry.semaphore('key', { permits });
}

/** What holds wherever the semaphore is. */
function latestNumberCounts(pair: (options: { readonly idleBetweenTries: number }) => Promise<Pair>): void {
  it.each([
    ['a process with a waiter', [0], 0],
    ['one of two processes with waiters', [0, 1], 1],
    ['a process without a waiter', [0], 1],
  ])('All waiters of a semaphore enter at once when %s gives more permits', async (_who, waiting, giving) => {
    const registries = await pair(RARELY);
    const held = semaphore(registries[0], 1);
    const leases = [await held.lock()];
    const waiters = waiting.map((i) => semaphore(registries[i] as BackedLockRegistry, 1).lock());
    await queued(held, waiting.length);
    const giver = registries[giving] as BackedLockRegistry;
    // There is a permit for it beside all waiters.
    const tried = await semaphore(giver, 5).tryLock();
    expect(tried).not.toBeNull();
    leases.push(await semaphore(giver, 5).lock(), ...(await Promise.all(waiters)));
    for (const lease of [...leases, tried]) await lease?.unlock();
  });

  it.each([
    ['a process with a waiter', 0],
    ['another process', 1],
  ])(
    'No waiter of a semaphore enters when %s gives fewer permits, before enough holders have left',
    async (_who, giving) => {
      const registries = await pair({ idleBetweenTries: 20 });
      const held = semaphore(registries[0], 3);
      const leases = await Promise.all([held.lock(), held.lock(), held.lock()]);
      let entered = 0;
      const waiter = held.lock().finally(() => entered++);
      await queued(held, 1);
      const fewer = semaphore(registries[giving] as BackedLockRegistry, 1).lock();
      void fewer.then(() => entered++);
      await queued(held, 1 + giving);
      await sleep(60); // until then a process passes on what it has, though another one has given another number
      await leases[0]?.unlock();
      await leases[1]?.unlock();
      await sleep(300); // a poll
      expect(entered).toBe(0);
      expect(await held.inspect()).toMatchObject({ holders: 1 });
      await leases[2]?.unlock();
      await (await waiter).unlock();
      await (await fewer).unlock();
    },
  );

  it('The number of permits counts for a caller that waited in its process, though nobody is left in the queue', async () => {
    const [one, other] = await pair(RARELY);
    const held = semaphore(one, 3);
    const leases = await Promise.all([held.lock(), held.lock(), held.lock()]);
    const waiters = [semaphore(other, 3).lock(), semaphore(other, 3).lock()];
    await queued(held, 1);
    await sleep(50); // numbers of one ms have no order
    expect(await semaphore(one, 1).tryLock()).toBeNull();
    for (const lease of leases) await lease.unlock();
    const first = await Promise.race(waiters);
    await sleep(300); // the next caller makes its attempt at once
    expect(await held.inspect()).toMatchObject({ holders: 1 });
    await first.unlock();
    for (const lease of await Promise.all(waiters)) if (lease !== first) await lease.unlock();
  });

  it('The number of permits of a later call counts, though an earlier caller of another process reaches the queue after it', async () => {
    const [one, other] = await pair(RARELY);
    const held = semaphore(one, 1);
    const first = await held.lock();
    const waiters = [held.lock(), held.lock()];
    await queued(held, 1);
    const later = semaphore(other, 2).lock();
    // The second permit is for the waiter in front, and the queue has the other two then.
    const second = await Promise.race(waiters);
    await queued(held, 2);
    await first.unlock();
    await until(async () => (await held.inspect()).holders === 2);
    await second.unlock();
    for (const lease of await Promise.all([...waiters, later])) if (lease !== second) await lease.unlock();
  });

  it('The number of permits that was given while nobody waited counts for a caller that waits later with an earlier one', async () => {
    const [one, other] = await pair(RARELY);
    const earlier = semaphore(other, 1);
    await sleep(1_200); // a number that was reported before counts only if it is later by a second
    const later = semaphore(one, 2);
    const lease = await later.lock();
    const waiter = earlier.lock();
    await queued(later, 1);
    expect(await later.tryLock()).toBeNull();
    await (await waiter).unlock();
    await lease.unlock();
  });

  it('The number of permits of another process counts for the next caller too, though nobody waits any more', async () => {
    const [one, other] = await pair(RARELY);
    const earlier = semaphore(one, 1);
    await sleep(50);
    const later = semaphore(other, 2);
    const leases = [await later.lock(), await later.lock()];
    const waiter = later.lock({ waitTime: 300 });
    await queued(later, 1);
    expect(await earlier.tryLock()).toBeNull();
    await expect(waiter).rejects.toMatchObject({ name: 'LockTimeoutError' });
    for (const lease of leases) await lease.unlock();
    await (await earlier.lock({ permits: 2 })).unlock();
  });
}

describeReal('The number of permits that was given last', () => {
  const fixture = SharedFixture.install();
  latestNumberCounts((options) => fixture.pair(options));
});

describe('The number of permits that was given last, in memory', () => {
  const pair = pairsInMemory();
  latestNumberCounts(async () => pair());

  it('In memory, the number of permits that was given last counts for a caller that waited before it too, also after a silence', async () => {
    const locks = new InMemoryLocks();
    const [one, other] = pair(locks);
    const held = semaphore(one, 2);
    const leases = [await held.lock(), await held.lock()];
    const waiter = held.lock();
    await queued(held, 1);
    expect(await semaphore(other, 1).tryLock()).toBeNull();
    locks.goSilent();
    await sleep(20);
    locks.comeBack();
    await leases[0]?.unlock();
    expect(await held.inspect()).toMatchObject({ holders: 1, waiting: 1 });
    await leases[1]?.unlock();
    await (await waiter).unlock();
  });
});
