import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { CannotAcquireLockError, RedisLockRegistry } from '../../lib';
import { RedisLock } from '../../lib/core/lock';
import { mockRedis, refused } from '../support/mock-redis';
import { until } from '../support/until';

describe('the cache of a registry', () => {
  let registry: RedisLockRegistry;
  let redis: ReturnType<typeof mockRedis>;

  beforeEach(() => {
    redis = mockRedis();
    registry = new RedisLockRegistry(redis, { registryKey: 'orders', cacheCapacity: 3, idleBetweenTries: 5 });
  });

  afterEach(() => registry.close({ timeout: 0 }));

  it('returns the same object for the same key, and another for another key', () => {
    expect(registry.obtain('a')).toBe(registry.obtain('a'));
    expect(registry.obtain('b')).not.toBe(registry.obtain('a'));
    expect(registry.size).toBe(2);
  });

  it('evicts the least recently used lock', () => {
    const [a, b, c] = ['a', 'b', 'c'].map((key) => registry.obtain(key));
    expect(registry.obtain('a')).toBe(a); // now b is the least recently used
    registry.obtain('d');
    expect(registry.size).toBe(3);
    expect(registry.obtain('a')).toBe(a);
    expect(registry.obtain('c')).toBe(c);
    expect(registry.obtain('b')).not.toBe(b);
  });

  it('never evicts a held lock', async () => {
    const held = registry.obtain('held');
    const lease = await held.lock();
    for (const key of ['a', 'b', 'c', 'd']) registry.obtain(key);
    expect(registry.size).toBe(3);
    expect(registry.obtain('held')).toBe(held);
    await lease.unlock();
    for (const key of ['a', 'b', 'c']) registry.obtain(key);
    expect(registry.obtain('held')).not.toBe(held);
  });

  it('never evicts a lock with waiters', async () => {
    redis.evalSha.mockResolvedValue(refused(60_000));
    const waitedFor = registry.obtain('waited for');
    const rejected = expect(waitedFor.lock()).rejects.toThrow('closed');
    for (const key of ['a', 'b', 'c', 'd']) registry.obtain(key);
    expect(registry.obtain('waited for')).toBe(waitedFor);
    await registry.close({ timeout: 0 });
    await rejected;
  });

  it('throws, with the numbers, when all cached locks are in use, and works again when one is free', async () => {
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

  it('does not search through all locks in use for each eviction', async () => {
    const many = new RedisLockRegistry(mockRedis(), { registryKey: 'orders', cacheCapacity: 300, renew: false });
    await Promise.all(Array.from({ length: 200 }, (_, i) => many.obtain(`held ${i}`).lock()));
    const reads = jest.spyOn(RedisLock.prototype, 'isInUse', 'get');
    for (let i = 0; i < 1_000; i++) many.obtain(`fresh ${i}`);
    expect(reads.mock.calls.length).toBeLessThan(5_000); // 200 for each would be 180,000
    reads.mockRestore();
    await many.close({ timeout: 0 });
  });

  it('keeps the lease of an evicted lock as it is', async () => {
    const evicted = registry.obtain('a');
    for (const key of ['b', 'c', 'd']) registry.obtain(key);
    const lease = await evicted.lock();
    expect(evicted.isAcquiredInThisProcess).toBe(true);
    expect(registry.obtain('a').isAcquiredInThisProcess).toBe(true);
    expect(await registry.obtain('a').tryLock()).toBeNull();
    await lease.unlock();
    expect(registry.obtain('a').isAcquiredInThisProcess).toBe(false);
  });
});

describe('expireUnusedOlderThan', () => {
  const used = async () => {
    const registry = new RedisLockRegistry(mockRedis(), { registryKey: 'orders' });
    const held = registry.obtain('held');
    const lease = await held.lock();
    const idle = registry.obtain('idle');
    await idle.run(() => undefined);
    return { registry, held, idle, lease };
  };

  it('evicts all locks that are not in use for a negative age', async () => {
    const { registry, held, idle, lease } = await used();
    registry.expireUnusedOlderThan(-1);
    expect(registry.size).toBe(1);
    expect(registry.obtain('held')).toBe(held);
    expect(registry.obtain('idle')).not.toBe(idle);
    await lease.unlock();
    await registry.close();
  });

  it('keeps the locks that were used since', async () => {
    const { registry, idle, lease } = await used();
    registry.expireUnusedOlderThan(60_000);
    expect(registry.obtain('idle')).toBe(idle);
    registry.expireUnusedOlderThan(Number.POSITIVE_INFINITY);
    expect(registry.size).toBe(2);
    const obtained = performance.now();
    await until(() => performance.now() - obtained > 25);
    registry.obtain('fresh');
    registry.expireUnusedOlderThan(20);
    expect(registry.size).toBe(2);
    expect(registry.obtain('idle')).not.toBe(idle);
    await lease.unlock();
    await registry.close();
  });

  it('counts the last use of a lock, not only when it was obtained', async () => {
    const { registry, idle, lease } = await used();
    const before = performance.now();
    await until(() => performance.now() - before > 400);
    await idle.run(() => undefined);
    registry.expireUnusedOlderThan(350);
    expect(registry.obtain('idle')).toBe(idle);
    await lease.unlock();
    await registry.close();
  });

  it('does not count that a lock is obtained again, only that it is called', async () => {
    const { registry, idle, lease } = await used();
    const before = performance.now();
    await until(() => performance.now() - before > 25);
    expect(registry.obtain('idle')).toBe(idle);
    registry.expireUnusedOlderThan(20);
    expect(registry.obtain('idle')).not.toBe(idle);
    await lease.unlock();
    await registry.close();
  });

  it.each([
    [Number.NaN, RangeError, 'NaN'],
    ['100', TypeError, "'100'"],
    [undefined, TypeError, 'undefined'],
  ] as const)('refuses %p', (age, kind, quoted) => {
    const registry = new RedisLockRegistry(mockRedis(), { registryKey: 'orders' });
    const expire = () => registry.expireUnusedOlderThan(age as number);
    expect(expire).toThrow(kind);
    expect(expire).toThrow(quoted);
  });
});
