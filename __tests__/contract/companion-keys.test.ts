import { expect, it } from '@jest/globals';
import { LOCK_TYPES } from '../support/lock-types';
import { describePrivate, PrivateRedis } from '../support/private-redis';
import { uniqueKey } from '../support/redis';
import { createRegistry } from '../support/test-registry';

/** What the library and Redisson append to a lock's name. */
const SUFFIXES = ['fence', 'queue', 'tickets', 'grants', 'waiters', 'evals', 'once', 'timeout', 'channel', 'token'];

const KEYS = [
  '{t}',
  ...SUFFIXES.map((suffix) => `{t}:${suffix}`),
  'plain',
  ...SUFFIXES.map((suffix) => `plain:${suffix}`),
];

describePrivate.each(LOCK_TYPES)('Keys of %s locks that look like companions of each other', (lockType) => {
  const redis = PrivateRedis.install();

  /** A key that would collide may be refused by name. */
  const usable = (registry: { obtain(key: string): unknown }) =>
    KEYS.filter((key) => {
      try {
        registry.obtain(key);
        return true;
      } catch (error) {
        expect(error).toBeInstanceOf(RangeError);
        return false;
      }
    });

  it.each(['first to last', 'last to first'])(
    'Keys of locks that look like companions of each other are different locks, taken from the %s',
    async (order) => {
      const registryKey = uniqueKey('companions');
      const { registry } = createRegistry(await redis.connect(), { registryKey, lockType, fencing: true });
      const other = createRegistry(await redis.connect(), { registryKey, lockType, fencing: true });
      const allowed = usable(registry);
      expect(allowed).toEqual(expect.arrayContaining(['{t}', 'plain']));
      const tokens = new Map<string, number>();
      for (let round = 0; round < 2; round++) {
        const held = [];
        for (const key of order === 'first to last' ? allowed : [...allowed].reverse()) {
          const lease = await registry.obtain(key).tryLock();
          expect({ key, isGranted: lease !== null }).toEqual({ key, isGranted: true });
          if (lease === null) continue;
          expect(lease.fencingToken).toBeGreaterThan(tokens.get(key) ?? 0);
          tokens.set(key, lease.fencingToken as number);
          held.push(lease);
          expect(await other.registry.obtain(key).tryLock()).toBeNull();
        }
        // Waiters make the companions that a queue needs.
        const waiting = ['{t}', 'plain'].map((key) => other.registry.obtain(key).tryLock({ waitTime: 100 }));
        expect(await Promise.all(waiting)).toEqual([null, null]);
        for (const lease of held) await lease.unlock();
      }
    },
  );
});
