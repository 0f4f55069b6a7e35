import { tracingChannel } from 'node:diagnostics_channel';
import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { CannotAcquireLockError, RedisLockRegistry } from '../../lib';
import { RedisLock } from '../../lib/core/lock';
import { LockCache } from '../../lib/core/lock-cache';
import { FakeClock } from '../support/fake-clock';
import { mockRedis, refused } from '../support/mock-redis';

describe('the cache of a registry', () => {
  let registry: RedisLockRegistry;
  let redis: ReturnType<typeof mockRedis>;

  beforeEach(() => {
    redis = mockRedis();
    registry = new RedisLockRegistry(redis, { registryKey: 'orders', cacheCapacity: 3, idleBetweenTries: 5 });
  });

  afterEach(() => registry.close({ timeout: 0 }));

  it('The cache of a registry evicts the least recently used lock', () => {
    const [a, b, c] = ['a', 'b', 'c'].map((key) => registry.obtain(key));
    expect(registry.obtain('a')).toBe(a); // now b is the least recently used
    registry.obtain('d');
    expect(registry.size).toBe(3);
    expect(registry.obtain('a')).toBe(a);
    expect(registry.obtain('c')).toBe(c);
    expect(registry.obtain('b')).not.toBe(b);
  });

  it('The cache of a registry never evicts a held lock', async () => {
    const held = registry.obtain('held');
    const lease = await held.lock();
    for (const key of ['a', 'b', 'c', 'd']) registry.obtain(key);
    expect(registry.size).toBe(3);
    expect(registry.obtain('held')).toBe(held);
    await lease.unlock();
    for (const key of ['a', 'b', 'c']) registry.obtain(key);
    expect(registry.obtain('held')).not.toBe(held);
  });

  it('The cache of a registry never evicts a lock with waiters', async () => {
    redis.evalSha.mockResolvedValue(refused(60_000));
    const waitedFor = registry.obtain('waited for');
    const rejected = expect(waitedFor.lock()).rejects.toThrow('closed');
    for (const key of ['a', 'b', 'c', 'd']) registry.obtain(key);
    expect(registry.obtain('waited for')).toBe(waitedFor);
    await registry.close({ timeout: 0 });
    await rejected;
  });

  it('The cache of a registry never evicts a lock while a call of it is published', async () => {
    const called = registry.obtain('called');
    const start = tracingChannel('redis-lock-registry:acquire').start;
    const evict = () => registry.expireUnusedOlderThan(-1);
    start.subscribe(evict);
    const lease = await called.lock();
    start.unsubscribe(evict);
    expect(registry.obtain('called')).toBe(called);
    await lease.unlock();
    expect(called.isInUse).toBe(false);
  });

  it('The cache of a registry never evicts the lock of a run that has lost its lease, and has others evicted give back only', async () => {
    const held = registry.obtain('held');
    const retire = jest.fn();
    Object.assign(registry.obtain('a').passing.openProtocol(), { retire });
    const ran = held.run(
      (lease) => {
        while (lease.remaining > 0);
        expect(() => lease.assertHeld()).toThrow('expired');
        for (const key of ['b', 'c', 'd']) registry.obtain(key);
        return registry.obtain('held') === held;
      },
      { ttl: 5, renew: false },
    );
    await expect(ran).rejects.toMatchObject({ name: 'LockLostError', result: true });
    expect(retire).toHaveBeenCalledTimes(1);
  });

  it('The cache of a registry throws, with the numbers, when all cached locks are in use, and works again when one is free', async () => {
    const [a] = await Promise.all(['a', 'b', 'c'].map((key) => registry.obtain(key).lock()));
    const obtain = () => registry.obtain('d');
    expect(obtain).toThrow(CannotAcquireLockError);
    expect(obtain).toThrow(/"d".*3.*"orders"/);
    await expect(registry.run('d', () => undefined)).rejects.toThrow(CannotAcquireLockError);
    expect(registry.size).toBe(3);
    registry.obtain('b'); // a cached lock needs no room
    await a?.unlock();
    await (await obtain().lock()).unlock();
    expect(registry.size).toBe(3);
  });

  it('The cache of a registry does not search through all locks in use for each eviction', async () => {
    const many = new RedisLockRegistry(mockRedis(), { registryKey: 'orders', cacheCapacity: 300, renew: false });
    await Promise.all(Array.from({ length: 200 }, (_, i) => many.obtain(`held ${i}`).lock()));
    const reads = jest.spyOn(RedisLock.prototype, 'isInUse', 'get');
    for (let i = 0; i < 1_000; i++) many.obtain(`fresh ${i}`);
    expect(reads.mock.calls.length).toBeLessThan(5_000); // 200 for each would be 180,000
    reads.mockRestore();
    await many.close({ timeout: 0 });
  });
});

it('A lock that was evicted is cached again, unless another one of its key is', () => {
  const cache = new LockCache(1, 'orders');
  const lockOf = (key: string) => ({ key, isInUse: false, evicted: true }) as unknown as RedisLock;
  const [one, other] = [lockOf('key'), lockOf('key')];
  expect([cache.readmit(one), cache.readmit(other), cache.size]).toEqual([one, one, 1]);
  expect([cache.inUse, one.evicted]).toEqual([[], false]);
  Object.assign(one, { isInUse: true });
  expect([cache.add(one), cache.size, cache.inUse]).toEqual([one, 1, [one]]);
});

describe('expireUnusedOlderThan', () => {
  const time = FakeClock.install();

  it('expireUnusedOlderThan keeps the locks that are in use, or were used since, and not those that were obtained', async () => {
    const registry = new RedisLockRegistry(mockRedis(), { registryKey: 'orders' });
    await registry.obtain('held').lock();
    const idle = registry.obtain('idle');
    for (let i = 0; i < 2; i++) {
      await idle.run(() => undefined);
      registry.expireUnusedOlderThan(60_000);
      registry.expireUnusedOlderThan(Number.POSITIVE_INFINITY);
      await time.advance(25);
      expect(registry.obtain('idle')).toBe(idle);
      registry.expireUnusedOlderThan(25);
      expect(registry.size).toBe(2);
    }
    registry.obtain('fresh');
    registry.expireUnusedOlderThan(20);
    expect(registry.size).toBe(2);
    expect(registry.obtain('idle')).not.toBe(idle);
  });
});
