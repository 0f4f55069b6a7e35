import { getEventListeners } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, it } from '@jest/globals';
import { describeReal } from '../../support/redis';
import { type Pair, pairsInMemory, queued, SharedFixture } from './shared-fixture';

/** ms; for this long after its grant a process that hears no messages lets readers in beside others. */
const SLICE = 60;

/** What holds wherever the lock is. The registries have fencing tokens. */
function readersAndWriters(pair: () => Promise<Pair>): void {
  it('A read/write lock has many readers or one writer, over all processes', async () => {
    const [one, other] = await pair();
    const [here, there] = [one.readWrite('key'), other.readWrite('key')];
    const readers = await Promise.all([here.read.lock(), here.read.lock(), there.read.lock()]);
    expect(readers.map(({ fencingToken }) => fencingToken)).toEqual([undefined, undefined, undefined]);
    expect(await here.write.tryLock()).toBeNull();
    expect(await there.write.tryLock()).toBeNull();
    await Promise.all(readers.map((lease) => lease.unlock()));
    const writer = await there.write.lock();
    expect(await here.read.tryLock()).toBeNull();
    expect(await there.read.tryLock()).toBeNull();
    expect(await here.write.tryLock()).toBeNull();
    await writer.unlock();
    expect(await here.read.inspect()).toMatchObject({ held: false, holders: 0 });
  });

  it('A read/write lock keeps later readers out while a writer waits, and lets them in together after it', async () => {
    const [one, other] = await pair();
    const [here, there] = [one.readWrite('key'), other.readWrite('key')];
    const order: string[] = [];
    const readers = [await here.read.lock(), await there.read.lock()];
    const writing = there.write.run(async () => order.push('write'));
    await queued(here.write, 1);
    await sleep(SLICE); // a process that has not listened yet lets readers in beside its own
    const reading = [here, there].map(({ read }) => read.lock().finally(() => order.push('read')));
    await queued(here.write, 3);
    for (const lease of readers) await lease.unlock();
    await Promise.race([writing, ...reading]);
    expect(order[0]).toBe('write');
    const leases = await Promise.all(reading);
    expect(order).toEqual(['write', 'read', 'read']);
    expect(await here.read.inspect()).toMatchObject({ holders: 2, waiting: 0, fencingToken: undefined });
    for (const lease of leases) await lease.unlock();
  });

  it.each([{}, { ttl: 20_000 }])(
    'A read/write lock is for all readers that wait when a writer leaves, before the next writer: %j',
    async (options) => {
      const [one, other] = await pair();
      const { read, write } = one.readWrite('key');
      const order: string[] = [];
      const writer = await write.lock();
      const first = read.run(() => sleep(50), options);
      await queued(write, 1);
      const there = other.readWrite('key');
      const writing = there.write.run(() => order.push('write'));
      await queued(write, 2);
      // In the other process, since one that is busy may be too late for those that queue here.
      const last = there.read.run(() => order.push('read'), options);
      await queued(write, 3);
      await writer.unlock();
      await Promise.all([first, writing, last]);
      expect(order).toEqual(['read', 'write']);
    },
  );
}

describe('A read/write lock in memory', () => {
  const pair = pairsInMemory({ fencing: true });
  readersAndWriters(async () => pair());
});

describeReal('A read/write lock', () => {
  const fixture = SharedFixture.install();
  readersAndWriters(() => fixture.pair({ fencing: true }));

  it('A read/write lock leaves no listener on the signal of a writer that would wait for itself (P8)', async () => {
    const [registry] = await fixture.pair();
    const lock = registry.readWrite('key');
    const { signal } = new AbortController();
    await lock.read.run(() => expect(lock.write.lock({ signal })).rejects.toThrow(/read/));
    expect(getEventListeners(signal, 'abort')).toHaveLength(0);
  });

  it.each(['attempt', 'release'])(
    'A read/write lock removes leases that have ended by the next %s of another process',
    async (next) => {
      const [one, other] = await fixture.pair({ expireAfter: 60_000 });
      const holders = () => fixture.members('key');
      const staying = await one.readWrite('key').read.lock();
      const leaving = await other.readWrite('key').read.lock();
      // An attempt that was executed after its caller had left: nobody tracks it.
      await fixture.client.zAdd(`${fixture.registryKey}:key`, { score: Date.now() - 1, value: 'read:nobody:1' });
      if (next === 'release') await leaving.unlock();
      else expect(await other.readWrite('key').write.tryLock()).toBeNull();
      expect(await holders()).not.toContain('read:nobody:1');
      await Promise.all([staying.unlock(), leaving.unlock()]);
    },
  );
});
