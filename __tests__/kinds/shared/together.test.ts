import { setTimeout as sleep } from 'node:timers/promises';
import { expect, it } from '@jest/globals';
import type { DistributedLock, Lease, LockOptions, RedisLockRegistry } from '../../../lib';
import { machineDelay } from '../../support/machine-delay';
import { describeReal } from '../../support/redis';
import { until } from '../../support/until';
import { ownerOf, SharedFixture } from './shared-fixture';

/** ms; for this long after its grant a hold is passed on, or joined, without a command. */
const SLICE = 50;

/** Leases of one hold. On a busy machine an answer may come so late that nobody joins any more: then once more. */
async function together(read: DistributedLock, ...options: LockOptions[]): Promise<Lease[]> {
  for (;;) {
    const leases: Lease[] = [];
    for (const one of options) leases.push(await read.lock(one));
    if (new Set(leases.map(ownerOf)).size === 1) return leases;
    await Promise.all(leases.map((lease) => lease.unlock()));
  }
}

describeReal('The readers of a process', () => {
  const fixture = SharedFixture.install();
  const members = () => fixture.members('key');
  const readOf = (registry: RedisLockRegistry) => registry.readWrite('key').read;

  it('The readers of a process that close() gave up keep writers out until the last of them has left', async () => {
    const registry = await fixture.registry();
    const [first, second] = (await together(readOf(registry), {}, {})) as [Lease, Lease];
    await registry.close({ timeout: 0 });
    await expect(first.unlock()).rejects.toMatchObject({ reason: 'closed' });
    expect(await (await fixture.registry()).readWrite('key').write.tryLock({ waitTime: 500 })).toBeNull();
    await expect(second.unlock()).rejects.toMatchObject({ reason: 'closed' });
    await until(async () => (await members()).length === 0);
  });

  it('The readers of a process have one hold: further ones enter without a command, and the last one gives it back', async () => {
    const registry = await fixture.registry();
    const read = readOf(registry);
    await read.run(() => undefined); // the server has the scripts from now on
    const [first, ...others] = (await together(read, {}, {}, {}, {})) as [Lease, Lease, Lease, Lease];
    expect(await members()).toEqual([`read:${ownerOf(first)}`]);
    const leaving = await fixture.commandsOf(async () => {
      for (const lease of others) await lease.unlock();
      expect(read.isAcquiredInThisProcess).toBe(true);
      first.assertHeld();
    });
    expect(leaving).toEqual([]);
    await first.unlock();
    expect(await fixture.keys()).toEqual([]);
    const startedAt = performance.now();
    const requests = await fixture.requestsOf(() =>
      Promise.all(Array.from({ length: 100 }, () => read.run(() => sleep(1)))),
    );
    // It is 2 where the machine does nothing else. A hold is joined for 50 ms at a time.
    expect(requests.length).toBeLessThan(30 + (2 * (performance.now() - startedAt)) / 50);
  });

  it('The readers of a process each have their own ttl, loss and signal', async () => {
    const read = readOf(await fixture.registry());
    const [renewed, fixed] = (await together(read, { ttl: 600, renew: true }, { ttl: 200 })) as [Lease, Lease];
    expect(fixed.remaining).toBeLessThanOrEqual(200);
    await until(() => fixed.signal.aborted);
    expect(fixed.signal.reason).toMatchObject({ reason: 'expired' });
    await expect(fixed.unlock()).rejects.toMatchObject({ code: 'ERR_LOCK_LOST' });
    await sleep(900); // longer than the ttl: the hold is renewed for the one that is left
    renewed.assertHeld();
    expect(await members()).toEqual([`read:${ownerOf(renewed)}`]);
    await renewed.unlock();
    expect(await members()).toEqual([]);
  });

  it('The readers of a process stay a reader until the longest minHold of theirs ends', async () => {
    const [one, other] = await fixture.pair();
    const leases = await together(readOf(one), {}, { ttl: 50_000, minHold: 30_000 }, {});
    for (const lease of leases) await lease.unlock();
    expect(await other.readWrite('key').write.tryLock()).toBeNull();
    expect(await other.readWrite('key').read.inspect()).toMatchObject({ owner: `kept@${ownerOf(leases[0] as Lease)}` });
  });

  it('The readers of a process let nobody in from the moment on in which a writer waits, where they listen', async () => {
    const [one, other] = await fixture.pair();
    const { read, write } = one.readWrite('key');
    // It listens since a reader has waited for a writer.
    const before = await other.readWrite('key').write.lock();
    const waiting = read.lock();
    await fixture.queued('key', 1);
    await before.unlock();
    await (await waiting).unlock();

    const reader = await read.lock();
    const writing = other.readWrite('key').write.lock();
    await fixture.queued('key', 1);
    await sleep(10);
    expect(await read.tryLock()).toBeNull();
    await reader.unlock();
    const writer = await writing;
    expect(await write.tryLock()).toBeNull();
    await writer.unlock();
  });

  it('The readers of a process wait for one writer at most, and enter together in every process', async () => {
    const registries = [await fixture.registry(), await fixture.registry(), await fixture.registry()];
    const order: string[] = [];
    const [one, other, third] = registries as [RedisLockRegistry, RedisLockRegistry, RedisLockRegistry];
    const busy = await one.readWrite('key').write.lock();
    const write = async () => {
      order.push('write');
      await sleep(20);
    };
    const writing = [other, third].map((registry) => registry.readWrite('key').write.run(write));
    await fixture.queued('key', 2);
    let inside = 0;
    let most = 0;
    const reading = registries.flatMap((registry) =>
      [1, 2, 3].map(() =>
        readOf(registry).run(async () => {
          order.push('read');
          most = Math.max(most, ++inside);
          await sleep(600);
          inside--;
        }),
      ),
    );
    await fixture.queued('key', 5);
    await busy.unlock();
    await Promise.all([...writing, ...reading]);
    expect(order).toEqual([...new Array(9).fill('read'), 'write', 'write']);
    expect(most).toBe(9);
  });

  it('The readers of a process enter at once when the writer that they wait for gives up', async () => {
    const [one, other] = await fixture.pair();
    const reader = await readOf(one).lock();
    const writing = other
      .readWrite('key')
      .write.lock({ waitTime: 300 })
      .catch((error: Error) => error.name);
    await fixture.queued('key', 1);
    await sleep(SLICE + 10);
    const next = await readOf(one).lock({ waitTime: 10_000 });
    expect(await writing).toBe('LockTimeoutError');
    await Promise.all([reader.unlock(), next.unlock()]);
  });
});

describeReal('The permits of a semaphore', () => {
  const fixture = SharedFixture.install();
  const semaphoreOf = (registry: RedisLockRegistry, permits: number): DistributedLock =>
    registry.semaphore('key', { permits });

  it('The permits of a semaphore go from caller to caller of a process, in their order and mostly without a command', async () => {
    const [one, other] = await fixture.pair();
    const semaphore = semaphoreOf(one, 2);
    await semaphore.run(() => undefined);
    const order: number[] = [];
    let inside = 0;
    const startedAt = performance.now();
    const requests = await fixture.requestsOf(async () => {
      const tasks = Array.from({ length: 100 }, (_, i) =>
        semaphore.run(async () => {
          order.push(i);
          expect(++inside).toBeLessThanOrEqual(2);
          await sleep(1);
          inside--;
        }),
      );
      await Promise.all(tasks);
    });
    expect(order).toEqual(Array.from({ length: 100 }, (_, i) => i));
    // Each permit is passed on for 50 ms at a time, and this may be a slow machine.
    expect(requests.length).toBeLessThan(40 + (2 * 2 * (performance.now() - startedAt)) / 50);
    expect(await fixture.keys()).toEqual([]);
    await semaphoreOf(other, 2).run(() => undefined);
  });

  it('The permits of a semaphore are given to a process that waits when their slice is over', async () => {
    const [one, other] = await fixture.pair();
    let isOver = false;
    const busy = [1, 2, 3, 4].map(async () => {
      while (!isOver) await semaphoreOf(one, 2).run(() => sleep(5));
    });
    await sleep(100);
    for (let i = 0; i < 5; i++) {
      const startedAt = performance.now();
      const lease = await semaphoreOf(other, 2).lock({ waitTime: 20_000 });
      expect(performance.now() - startedAt).toBeLessThan(2_000 + machineDelay());
      await lease.unlock();
    }
    isOver = true;
    await Promise.all(busy);
  });
});
