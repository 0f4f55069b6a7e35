import { beforeAll, describe, expect, it } from '@jest/globals';
import type { DistributedLock, LockRegistry, LockType, RedisLockRegistry } from '../../../lib';
import { LOCK_TYPES } from '../../../lib/kinds';
import { InMemoryLockRegistry, InMemoryLocks } from '../../../lib/testing';
import { findLocks } from '../../../lib/tools/inspection/find-locks';
import { describePrivate, PrivateRedis } from '../../support/private-redis';
import type { TestClient } from '../../support/redis';
import { createRegistry } from '../../support/test-registry';
import { until } from '../../support/until';

/** ms; a caller waits for so long that the time of its call is not taken for that of its lease. */
const WAIT = 1_500;

/** ms; a shared lock that is handed over says when its caller made its last attempt, at most so long before. */
const LET_IN_WITHIN = 100 + 2;

interface Registries {
  readonly first: LockRegistry;
  readonly second: LockRegistry;
}

type LockOf = (registry: LockRegistry) => DistributedLock;

const ONE: LockOf = (registry) => registry.obtain('key');
const WRITE: LockOf = (registry) => registry.readWrite('key').write;
const SHARED: Record<string, LockOf> = {
  semaphore: (registry) => registry.semaphore('key', { permits: 1 }),
  read: (registry) => registry.readWrite('key').read,
  write: WRITE,
};

interface Kind {
  readonly kind: string;
  readonly lockOf: LockOf;
  readonly open: () => Registries;
}

/** How long after the release a caller that waited for it acquired the lock, in ms and by the time of its lease. */
async function acquiredAfterRelease({ kind, lockOf, open }: Kind): Promise<number> {
  const { first, second } = open();
  const held = await (kind === 'read' ? WRITE : lockOf)(first).lock();
  const calledAt = performance.now();
  const waiting = lockOf(second).lock();
  await until(() => performance.now() - calledAt > WAIT);
  const releasedAt = Date.now();
  await held.unlock();
  const lease = await waiting;
  const { acquiredAt: at } = await lockOf(first).inspect();
  expect(at).toBeLessThanOrEqual(Date.now());
  await lease.unlock();
  return (at as number) - releasedAt;
}

function acquiredAt(kinds: readonly Kind[]): void {
  it.each(kinds)(
    'The time of an acquisition is that of its attempt, and stays so when it is renewed, or kept for its `minHold`: $kind',
    async ({ open, lockOf }) => {
      const { first, second } = open();
      expect((await lockOf(first).inspect()).acquiredAt).toBeUndefined();
      const before = Date.now();
      const lease = await lockOf(first).lock({ minHold: 20_000 });
      const after = Date.now();
      const { acquiredAt: at } = await lockOf(second).inspect();
      expect(at).toBeGreaterThanOrEqual(before);
      expect(at).toBeLessThanOrEqual(after);
      await lease.renew(90_000);
      expect((await lockOf(second).inspect()).acquiredAt).toBe(at);
      await lease.unlock();
      const kept = { owner: expect.stringContaining('kept@'), acquiredAt: at };
      expect(await lockOf(second).inspect()).toMatchObject(kept);
    },
  );

  it('The time of an acquisition is when a caller that waited got the lock, and not when it called, of each kind', async () => {
    const found = kinds.map(async (one) => [one.kind, await acquiredAfterRelease(one)] as const);
    const early = (await Promise.all(found)).filter(([, after]) => !(after >= -LET_IN_WITHIN));
    expect(early).toEqual([]);
  });
}

describePrivate('In Redis', () => {
  const redis = PrivateRedis.install();
  let clients: [TestClient, TestClient];

  beforeAll(async () => {
    clients = [await redis.connect(), await redis.connect()];
  });

  const two = (lockType: LockType, fencing = false) => {
    const options = { lockType, fencing };
    const first = createRegistry(clients[0], options);
    const { registryKey } = first;
    const second = createRegistry(clients[1], { ...options, registryKey });
    return { first: first.registry, second: second.registry, registryKey };
  };

  acquiredAt([
    ...LOCK_TYPES.map((kind) => ({ kind, lockOf: ONE, open: () => two(kind) })),
    ...(['fair', 'pub-sub'] as const).map((lockType) => ({
      ...{ kind: `${lockType} with fencing`, lockOf: ONE },
      open: () => two(lockType, true),
    })),
    ...Object.entries(SHARED).map(([kind, lockOf]) => ({ kind, lockOf, open: () => two('spin') })),
  ]);

  it('The time of an acquisition is in a list, and in what is found, for each holder of a shared lock by itself', async () => {
    const { first, second, registryKey } = two('spin');
    const semaphores = [first, second].map((registry) => registry.semaphore('key', { permits: 2 }));
    const [one, other] = semaphores as [DistributedLock, DistributedLock];
    await one.lock();
    const between = Date.now();
    await until(() => Date.now() > between);
    await other.lock();
    const { locks } = await findLocks(clients[0], { registryKey });
    const [lock] = locks;
    const heldFor = lock?.holders.map((holder) => holder.heldFor as number);
    const times = lock?.holders.map((holder) => holder.acquiredAt as number) ?? [];
    expect(times).toHaveLength(2);
    expect(Math.min(...times)).toBeLessThanOrEqual(between);
    expect(Math.max(...times)).toBeGreaterThan(between);
    expect([lock?.acquiredAt, lock?.heldFor]).toEqual([times[0], heldFor?.[0]]);
    for await (const listed of (first as RedisLockRegistry).list()) expect(listed.acquiredAt).toBe(times[0]);
  });
});

describe('In memory', () => {
  const open = (): Registries => {
    const locks = new InMemoryLocks();
    return { first: new InMemoryLockRegistry({ locks }), second: new InMemoryLockRegistry({ locks }) };
  };

  acquiredAt(Object.entries({ lock: ONE, ...SHARED }).map(([kind, lockOf]) => ({ kind, lockOf, open })));
});
