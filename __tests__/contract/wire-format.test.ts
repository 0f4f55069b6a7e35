import { beforeEach, expect, it } from '@jest/globals';
import type { SetOptions } from 'redis';
import type { RedisLockRegistryOptions } from '../../lib';
import { machineDelay } from '../support/machine-delay';
import { createRealClient, describeReal, type TestClient, uniqueKey } from '../support/redis';
import { createRegistry } from '../support/test-registry';
import { until, WAIT_LIMIT } from '../support/until';
import { SLACK } from './timing';

describeReal("The spin lock, as Spring Integration's RedisLockRegistry sees it", () => {
  let client: TestClient;
  let spring: TestClient;
  let registryKey: string;
  let name: string;

  const registry = (options: Partial<RedisLockRegistryOptions> = {}) =>
    createRegistry(client, { registryKey, lockType: 'spin', idleBetweenTries: 10, ...options }).registry;

  beforeEach(async () => {
    client ??= await createRealClient();
    spring ??= await createRealClient();
    registryKey = uniqueKey('spring');
    name = `${registryKey}:order:42`;
  });

  it("A spin lock, for Spring Integration's RedisLockRegistry, is a string at registryKey:key, with an expiry, and nothing else", async () => {
    const lease = await registry({ expireAfter: 30_000 }).obtain('order:42').lock();
    expect(await spring.keys(`*${registryKey}*`)).toEqual([name]);
    expect(await spring.type(name)).toBe('string');
    const life = await spring.pTTL(name);
    expect(life).toBeLessThanOrEqual(30_000);
    expect(life).toBeGreaterThan(30_000 - SLACK - machineDelay());
    await lease.unlock();
    expect(await spring.keys(`*${registryKey}*`)).toEqual([]);
  });

  it("A spin lock, for Spring Integration's RedisLockRegistry, publishes nothing when there was nothing to release", async () => {
    const subscriber = await createRealClient();
    const messages: string[] = [];
    await subscriber.pSubscribe(`${registryKey}-channel:*`, (message) => void messages.push(message));
    const gone = await registry().obtain('gone').lock();
    const stolen = await registry().obtain('stolen').lock();
    await spring.del(`${registryKey}:gone`);
    await spring.set(`${registryKey}:stolen`, 'spring', { PX: 1_000 });
    await expect(gone.unlock()).rejects.toMatchObject({ reason: 'expired' });
    await expect(stolen.unlock()).rejects.toMatchObject({ reason: 'stolen' });
    await registry().run('last', () => undefined);
    await until(() => messages.length > 0);
    expect(messages).toEqual([`${registryKey}:last`]);
  });

  it.each<[string, SetOptions]>([
    ['with an expiry, as of Spring', { PX: 60_000 }],
    ['without one, as of a user of redis-cli', {}],
  ])(
    "A spin lock, for Spring Integration's RedisLockRegistry, is refused while there is a foreign key %s, which stays as it is; then foreign keys are",
    async (_, expiry) => {
      await spring.set(name, 'foreign', expiry);
      const lock = registry().obtain('order:42');
      expect(await lock.tryLock()).toBeNull();
      const waiting = lock.lock();
      expect(await registry().obtain('order:42').tryLock({ waitTime: 400 })).toBeNull();
      expect(lock.isAcquiredInThisProcess).toBe(false);
      expect(await spring.get(name)).toBe('foreign');
      expect((await spring.pTTL(name)) > 0).toBe('PX' in expiry);
      await spring.unlink(name); // spin locks of Spring publish nothing
      const lease = await waiting;
      expect(await spring.set(name, 'spring', { PX: 60_000, condition: 'NX' })).toBeNull();
      await lease.unlock();
      expect(await spring.set(name, 'spring', { PX: 60_000, condition: 'NX' })).toBe('OK');
      await spring.del(name);
    },
  );

  it("A spin lock, for Spring Integration's RedisLockRegistry, gets its expiry back at the next renewal when it was removed or shortened; a longer one counts (P6)", async () => {
    const TTL = 3_000;
    const lease = await registry({ expireAfter: TTL }).obtain('order:42').lock();
    await spring.persist(name);
    // PTTL is -1 after PERSIST, which is less than any ttl.
    await until(async () => (await spring.pTTL(name)) > 0, { within: WAIT_LIMIT });
    await spring.pExpire(name, 0.8 * TTL);
    await until(async () => (await spring.pTTL(name)) > 0.8 * TTL, { within: WAIT_LIMIT });
    await spring.pExpire(name, 60_000);
    await until(() => lease.remaining > TTL, { within: WAIT_LIMIT });
    expect(await spring.pTTL(name)).toBeGreaterThan(lease.remaining);
    await lease.unlock();
    expect(await spring.exists(name)).toBe(0);
  });

  it("A spin lock, for Spring Integration's RedisLockRegistry, keeps its fencing counter beside it, in its hash slot, with an expiry of its own", async () => {
    const lease = await registry({ fencing: true }).obtain('order:42').lock();
    expect((await spring.keys(`*${registryKey}*`)).sort()).toEqual([name, `{${name}}:fence`].sort());
    // A refused attempt takes no token.
    expect(await registry({ fencing: true }).obtain('order:42').tryLock({ waitTime: 400 })).toBeNull();
    expect(await spring.get(`{${name}}:fence`)).toBe(String(lease.fencingToken));
    const hours = (await spring.pTTL(`{${name}}:fence`)) / 3_600_000;
    expect(hours).toBeGreaterThan(23);
    expect(hours).toBeLessThanOrEqual(24);
    await lease.unlock();
  });
});
