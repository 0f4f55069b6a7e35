import { describe, expect, it } from '@jest/globals';
import { RedisLockRegistry } from '../../lib';
import { LOCK_TYPES } from '../support/lock-types';
import { mockRedis } from '../support/mock-redis';

/** Lone surrogates: in UTF-8 all of them become the same character, and different keys the same lock. */
const illFormed = ['\ud800', 'order:\udc00', '\udc00\ud800', 'a\ud83d'];

describe.each(LOCK_TYPES)('A registry of %s locks', (lockType) => {
  it.each(illFormed)('refuses the key %j, which is not well-formed', async (key) => {
    const redis = mockRedis();
    const registry = new RedisLockRegistry(redis, { registryKey: 'orders', lockType });
    expect(() => registry.obtain(key)).toThrow(TypeError);
    expect(() => registry.obtain(key)).toThrow(/well-formed/);
    await expect(registry.run(key, () => undefined)).rejects.toThrow(TypeError);
    await expect(registry.renewLock(key)).rejects.toThrow(TypeError);
    expect(redis.sent).toBe(0);
    expect(registry.size).toBe(0);
  });

  it.each(illFormed)('refuses the registryKey %j', (registryKey) => {
    expect(() => new RedisLockRegistry(mockRedis(), { registryKey, lockType })).toThrow(TypeError);
  });

  it('takes a key with characters beyond the basic plane', () => {
    const registry = new RedisLockRegistry(mockRedis(), { registryKey: 'orders', lockType });
    expect(registry.obtain('order:\u{1f600}').key).toBe('order:\u{1f600}');
  });
});
