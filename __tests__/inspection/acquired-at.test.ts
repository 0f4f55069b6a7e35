import { beforeAll, describe, expect, it } from '@jest/globals';
import type { DistributedLock, LockRegistry, RedisLockRegistry } from '../../lib';
import { findLocks } from '../../lib/inspection/find-locks';
import { LOCK_TYPES } from '../../lib/protocols/lock-types';
import { InMemoryLockRegistry, InMemoryLocks } from '../../lib/testing';
import { describePrivate, PrivateRedis } from '../support/private-redis';
import type { TestClient } from '../support/redis';
import { createRegistry } from '../support/test-registry';
import { until } from '../support/until';

/** ms; a caller waits for so long that the time of its call is not taken for that of its lease. */
const WAIT = 1_500;

/** ms; a shared lock that is handed over says when its caller made its last attempt, at most so long before. */
const LET_IN_WITHIN = 100 + 2;

interface Registries {
  readonly first: LockRegistry;
  readonly second: LockRegistry;
}

const SHARED: Record<string, (registry: LockRegistry) => DistributedLock> = {
  semaphore: (registry) => registry.semaphore('key', { permits: 1 }),
  read: (registry) => registry.readWrite('key').read,
  write: (registry) => registry.readWrite('key').write,
};

function acquiredAt(
  open: () => Registries,
  lockOf: (registry: LockRegistry) => DistributedLock,
  lockType: string,
): void {
  it('The time of an acquisition is that of its attempt, and stays so when the lock is renewed', async () => {
    const { first, second } = open();
    expect((await lockOf(first).inspect()).acquiredAt).toBeUndefined();
    const before = Date.now();
    const lease = await lockOf(first).lock();
    const after = Date.now();
    const { acquiredAt: at } = await lockOf(second).inspect();
    expect(at).toBeGreaterThanOrEqual(before);
    expect(at).toBeLessThanOrEqual(after);
    await lease.renew(90_000);
    expect((await lockOf(second).inspect()).acquiredAt).toBe(at);
    await lease.unlock();
  });

  it('The time of an acquisition is when a caller that waited got the lock, and not when it called', async () => {
    const { first, second } = open();
    const held = await (lockType === 'read' ? (SHARED.write as typeof lockOf) : lockOf)(first).lock();
    const calledAt = performance.now();
    const waiting = lockOf(second).lock();
    await until(() => performance.now() - calledAt > WAIT);
    const releasedAt = Date.now();
    await held.unlock();
    const lease = await waiting;
    const { acquiredAt: at } = await lockOf(first).inspect();
    expect(at).toBeGreaterThanOrEqual(releasedAt - LET_IN_WITHIN);
    expect(at).toBeLessThanOrEqual(Date.now());
    await lease.unlock();
  });

  it('The time of an acquisition stays while the `minHold` of an unlocked lock has not ended', async () => {
    const { first, second } = open();
    const lease = await lockOf(first).lock({ minHold: 20_000 });
    const { acquiredAt: at } = await lockOf(second).inspect();
    await lease.unlock();
    expect(await lockOf(second).inspect()).toMatchObject({
      owner: expect.stringContaining('kept@'),
      acquiredAt: at,
    });
  });
}

describePrivate('In Redis', () => {
  const redis = PrivateRedis.install();
  let clients: [TestClient, TestClient];

  beforeAll(async () => {
    clients = [await redis.connect(), await redis.connect()];
  });

  const two = (lockType: (typeof LOCK_TYPES)[number], fencing: boolean) => {
    const first = createRegistry(clients[0], { lockType, fencing });
    const { registry: second } = createRegistry(clients[1], {
      lockType,
      fencing,
      registryKey: first.registryKey,
    });
    return { first: first.registry, second, registryKey: first.registryKey };
  };

  describe.each(LOCK_TYPES)('of type %s', (lockType) => {
    acquiredAt(
      () => two(lockType, false),
      (registry) => registry.obtain('key'),
      lockType,
    );
  });

  describe.each(['fair', 'pub-sub'] as const)('of type %s with fencing', (lockType) => {
    acquiredAt(
      () => two(lockType, true),
      (registry) => registry.obtain('key'),
      lockType,
    );
  });

  describe.each(Object.entries(SHARED))('of kind %s', (kind, lockOf) => {
    acquiredAt(() => two('spin', false), lockOf, kind);
  });

  it('The time of an acquisition is in a list, and in what is found, for each holder of a shared lock by itself', async () => {
    const { first, second, registryKey } = two('spin', false);
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

  it.each(['8bfa1e76-70c1-4b13-9c53-7b3a3f6a2a0e', 'web-7:1:h0pCmsO5S7mSQpHDOZJ1Sw:17'])(
    'The time of an acquisition is not known of %s: Java and older versions do not say it',
    async (owner) => {
      const { first, registryKey } = two('spin', false);
      await clients[0].set(`${registryKey}:key`, owner, { PX: 60_000 });
      expect((await first.obtain('key').inspect()).acquiredAt).toBeUndefined();
      const { locks } = await findLocks(clients[0], { registryKey });
      expect(locks).toMatchObject([
        {
          acquiredAt: null,
          heldFor: null,
          holders: [{ acquiredAt: null, heldFor: null }],
        },
      ]);
    },
  );
});

describe('In memory', () => {
  const two = (): Registries => {
    const locks = new InMemoryLocks();
    return {
      first: new InMemoryLockRegistry({ locks }),
      second: new InMemoryLockRegistry({ locks }),
    };
  };

  describe.each([['lock', (registry: LockRegistry) => registry.obtain('key')], ...Object.entries(SHARED)] as const)(
    'of a %s',
    (kind, lockOf) => {
      acquiredAt(two, lockOf, kind);
    },
  );
});
