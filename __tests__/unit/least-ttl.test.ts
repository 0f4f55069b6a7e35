import { describe, expect, it } from '@jest/globals';
import { RedisLockRegistry } from '../../lib';
import { LOCK_TYPES } from '../support/lock-types';
import { mockRedis } from '../support/mock-redis';

/** ms; with the margin for drift, nothing is left of it. */
const TOO_SHORT = [0.5, 1];

/** What a refusal says is the least that can work. */
function leastIn({ message }: Error): number {
  const [, least] = /(\d+(?:\.\d+)?)/.exec(message.replace(/got .*/s, '')) ?? [];
  return Number(least);
}

describe.each(LOCK_TYPES)('A ttl of a %s lock that leaves no time to hold it', (lockType) => {
  const open = () => {
    const redis = mockRedis();
    return { redis, registry: new RedisLockRegistry(redis, { registryKey: 'orders', lockType }) };
  };

  it.each(TOO_SHORT)('is a RangeError that says the least that can work: %p', async (ttl) => {
    const { redis, registry } = open();
    const lock = registry.obtain('42');
    const options = { ttl, waitTime: 50 };
    for (const take of [() => lock.lock(options), () => lock.tryLock(options), () => lock.run(() => 0, options)]) {
      const error = await take().catch((reason: unknown) => reason);
      expect(error).toBeInstanceOf(RangeError);
      expect(String(error)).toContain('`ttl`');
      const least = leastIn(error as Error);
      expect(least).toBeGreaterThan(ttl);
      // The least is accepted: whether it is long enough for an answer is another matter.
      const outcome = await lock.tryLock({ ttl: least }).catch((reason: unknown) => reason);
      expect(outcome).not.toBeInstanceOf(RangeError);
      if (outcome !== null && !(outcome instanceof Error)) {
        await (outcome as { unlock(): Promise<void> }).unlock().catch(() => undefined);
      }
    }
    expect(redis.sent).toBeLessThan(20);
  });

  it.each(TOO_SHORT)('is refused for a renewal, and for `expireAfter`: %p', async (ttl) => {
    const { registry } = open();
    const lease = await registry.obtain('42').lock();
    await expect(lease.renew(ttl)).rejects.toThrow(RangeError);
    await expect(registry.renewLock('42', ttl)).rejects.toThrow(RangeError);
    lease.assertHeld();
    await lease.unlock();
    expect(() => new RedisLockRegistry(mockRedis(), { registryKey: 'orders', lockType, expireAfter: ttl })).toThrow(
      RangeError,
    );
  });
});
