import { setTimeout as sleep } from 'node:timers/promises';
import { expect, it } from '@jest/globals';
import type { AcquireMessage, DistributedLock } from '../../lib';
import type { BackedLockRegistry } from '../../lib/registry/backed-lock-registry';
import { pairsInMemory } from '../kinds/shared/shared-fixture';
import { published } from '../support/published';

const two = pairsInMemory({ maxWaiting: 1, onWarning: () => undefined });

const FULL = { name: 'LockQueueFullError', maxWaiting: 1 };
const settled = () => new Promise((resolve) => setImmediate(resolve));

it.each<[string, (registry: BackedLockRegistry) => DistributedLock, string]>([
  ['a lock', (registry) => registry.obtain('key'), 'key'],
  ['a semaphore', (registry) => registry.semaphore('key', { permits: 1 }), 'key'],
  ['a lock for writing', (registry) => registry.readWrite('key').write, 'key'],
  ['several keys', (registry) => registry.multi(['a', 'key']), 'a'],
])('maxWaiting limits the callers of one registry that wait for %s', async (_, of, key) => {
  const [ours, theirs] = two();
  const lease = await of(theirs).lock();
  const waiting = of(ours).lock();
  await settled();
  await expect(of(ours).lock({ waitTime: 500 })).rejects.toMatchObject({ ...FULL, key });
  await expect(of(ours).run(() => 'never', { waitTime: 500 })).rejects.toMatchObject(FULL);
  expect(await of(ours).tryLock()).toBeNull();
  // Another registry has a limit of its own.
  const other = of(theirs).lock();
  await settled();
  await expect(of(theirs).lock({ waitTime: 500 })).rejects.toMatchObject(FULL);
  await lease.unlock();
  await (await waiting).unlock();
  await (await other).unlock();
  // Those that waited count no more.
  const next = await of(ours).lock();
  const again = of(ours).lock();
  await settled();
  await next.unlock();
  await (await again).unlock();
});

it('maxWaiting leaves the callers of another key, and a lock that is free, alone', async () => {
  const [ours, theirs] = two();
  await theirs.obtain('key').lock();
  const waiting = ours.obtain('key').lock();
  void waiting.catch(() => undefined);
  const results = await Promise.all(['a', 'b'].map((key) => ours.run(key, () => 'ran')));
  expect(results).toEqual(['ran', 'ran']);
  // One has the lock, and one waits for it.
  expect(await Promise.all([1, 2].map(() => ours.run('c', () => 'ran')))).toEqual(['ran', 'ran']);
});

it('A call for segments waits for those that have room, and rejects when none has', async () => {
  const [ours, theirs] = two();
  // Each of its calls tries the segments in this order: 1, 2, 3, 0.
  const stock = () => ours.segmented('stock', { segments: 4, random: () => 0 });
  const leases = await Promise.all(stock().names.map((name) => theirs.obtain(name).lock()));
  const calls = [1, 2].map(() => stock().run(({ index }) => index));
  await settled();
  await settled();
  await expect(stock().run(() => 'never', { waitTime: 500 })).rejects.toMatchObject(FULL);
  // By now each of them would wait for one more.
  await sleep(150);
  for (const lease of leases) await lease.unlock();
  expect(await Promise.all(calls)).toMatchObject([{ served: true }, { served: true }]);
});

it('A call that finds the queue full is published as contention, and not as a failure', async () => {
  const [ours, theirs] = two();
  await theirs.obtain('key').lock();
  const refused = () => ours.run('key', () => 'never').catch(() => undefined);
  void refused();
  await settled();
  const messages = await published<AcquireMessage>('acquire', refused);
  expect(messages.map(({ outcome }) => outcome)).toEqual(['timed out']);
});
