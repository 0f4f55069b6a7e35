import { afterEach, describe, expect, it } from '@jest/globals';
import type { DistributedLock, Lease } from '../../lib';
import { InMemoryLockRegistry, InMemoryLocks } from '../../lib/testing';
import { until } from '../support/until';

const registries: InMemoryLockRegistry[] = [];

afterEach(async () => {
  await Promise.all(registries.splice(0).map((registry) => registry.close({ timeout: 0 })));
});

/** Two registries, as of two processes. */
function openTwo() {
  const locks = new InMemoryLocks();
  const [ours, theirs] = [
    new InMemoryLockRegistry({ locks, fencing: true }),
    new InMemoryLockRegistry({ locks, fencing: true }),
  ];
  registries.push(ours, theirs);
  return { locks, ours, theirs };
}

/** Calls `lock`, and notes the name when it is acquired. */
function entering(entered: string[], name: string, lock: DistributedLock): Promise<Lease> {
  const leasing = lock.lock();
  void leasing.then(() => entered.push(name));
  return leasing;
}

describe('A semaphore in memory', () => {
  it('has up to `permits` leases over all registries, and is fair', async () => {
    const { ours, theirs } = openTwo();
    const [one, other] = [ours.semaphore('key', { permits: 2 }), theirs.semaphore('key', { permits: 2 })];
    const [first, second] = [await one.lock(), await other.lock()];
    const entered: string[] = [];
    const waiting = [entering(entered, 'third', one), entering(entered, 'fourth', other)];
    expect(await one.tryLock()).toBeNull();
    expect((await one.inspect()).waiting).toBe(2);
    await second.unlock();
    await until(() => entered.length === 1);
    expect(entered).toEqual(['third']);
    expect((await other.inspect()).holders).toBe(2);
    await first.unlock();
    for (const lease of await Promise.all(waiting)) await lease.unlock();
    expect((await one.inspect()).held).toBe(false);
  });

  it('takes the number that was given last, for those that wait too', async () => {
    const { ours, theirs } = openTwo();
    await ours.semaphore('key', { permits: 1 }).lock();
    const entered: string[] = [];
    const waiting = entering(entered, 'second', ours.semaphore('key', { permits: 1 }));
    await until(async () => (await ours.semaphore('key', { permits: 1 }).inspect()).waiting === 1);
    const third = await theirs.semaphore('key', { permits: 3 }).lock();
    await waiting;
    expect(await theirs.semaphore('key', { permits: 2 }).tryLock()).toBeNull();
    third.assertHeld();
  });

  it('gives back the permit of a lease whose ttl has ended, and no other', async () => {
    const { ours, theirs } = openTwo();
    const lock = ours.semaphore('key', { permits: 2 });
    const kept = await lock.lock();
    const short = await lock.lock({ ttl: 100, renew: false });
    const next = await theirs.semaphore('key', { permits: 2 }).lock();
    expect(short.remaining).toBe(0);
    kept.assertHeld();
    next.assertHeld();
    await expect(short.unlock()).rejects.toMatchObject({ name: 'LockLostError', reason: 'expired' });
  });

  it('can be stolen as a whole', async () => {
    const { locks, ours } = openTwo();
    const lock = ours.semaphore('key', { permits: 5 });
    const lease = await lock.lock();
    locks.steal('key', { ttl: 100 });
    expect(await lock.tryLock()).toBeNull();
    await expect(lease.renew()).rejects.toMatchObject({ name: 'LockLostError', reason: 'stolen' });
    await (await lock.lock()).unlock();
  });
});

describe('A read/write lock in memory', () => {
  it('has many readers or one writer; a waiting writer keeps later readers out', async () => {
    const { ours, theirs } = openTwo();
    const { read, write } = ours.readWrite('key');
    const other = theirs.readWrite('key');
    const readers = [await read.lock(), await other.read.lock()];
    const entered: string[] = [];
    const writing = entering(entered, 'writer', other.write);
    await until(async () => (await write.inspect()).waiting === 1);
    const reading = [entering(entered, 'reader', read), entering(entered, 'reader', other.read)];
    await until(async () => (await write.inspect()).waiting === 3);
    for (const reader of readers) await reader.unlock();
    const writer = await writing;
    expect(entered).toEqual(['writer']);
    expect(await read.tryLock()).toBeNull();
    await writer.unlock();
    await Promise.all(reading);
    expect(entered).toEqual(['writer', 'reader', 'reader']);
  });

  it('lets a reader enter inside its own write scope, and rejects a writer inside its own read scope', async () => {
    const { read, write } = openTwo().ours.readWrite('key');
    expect(await write.run(() => read.run(() => 'read'))).toBe('read');
    await expect(read.run(() => write.run(() => 'written'))).rejects.toThrow('it would wait for itself');
  });

  it('gives fencing tokens that rise to writers, and none to readers', async () => {
    const { ours, theirs } = openTwo();
    const first = await ours.readWrite('key').write.run((lease) => lease.fencingToken);
    const reader = await ours.readWrite('key').read.run((lease) => lease.fencingToken);
    const second = await theirs.readWrite('key').write.run((lease) => lease.fencingToken);
    expect(reader).toBeUndefined();
    expect(second).toBeGreaterThan(first as number);
  });
});

describe('A key in memory that is used as two things', () => {
  const uses = {
    'a lock': (registry: InMemoryLockRegistry) => registry.obtain('key'),
    'a semaphore': (registry: InMemoryLockRegistry) => registry.semaphore('key', { permits: 5 }),
    'a read/write lock': (registry: InMemoryLockRegistry) => registry.readWrite('key').read,
  } as const;
  const names = Object.keys(uses) as (keyof typeof uses)[];
  const pairs = names.flatMap((is) => names.filter((used) => used !== is).map((used) => [is, used] as const));

  it.each(pairs)('is an error that names both: %s, used as %s', async (is, used) => {
    const { ours, theirs } = openTwo();
    const lease = await uses[is](ours).lock();
    const refused = `It is ${is} in memory, and it is used as ${used} here`;
    await expect(uses[used](theirs).lock({ waitTime: 5_000 })).rejects.toMatchObject({
      name: 'CannotAcquireLockError',
      message: expect.stringContaining(refused),
    });
    lease.assertHeld();
    await lease.unlock();
    await (await uses[used](theirs).lock()).unlock();
  });
});
