import { beforeAll, beforeEach, expect, it } from '@jest/globals';
import type { Lease, RedisLockRegistry } from '../../../lib';
import { LOCK_TYPES } from '../../support/lock-types';
import { describePrivate, PrivateRedis } from '../../support/private-redis';
import type { TestClient } from '../../support/redis';
import { coded } from '../../support/since';
import { createRegistry, type TestRegistry } from '../../support/test-registry';

/** Calls that are made in the same moment: one goes to Redis alone, several in one script. */
const SIZES = [1, 20];

describePrivate.each(LOCK_TYPES)('Redis refuses calls about %s locks', (lockType) => {
  const redis = PrivateRedis.install();
  let admin: TestClient;
  let client: TestClient;
  let witnessed: TestRegistry;

  beforeAll(async () => {
    admin = redis.admin;
    client = await redis.connect();
  });

  beforeEach(async () => {
    witnessed = createRegistry(client, { lockType, expireAfter: 30_000 });
    await warmUp(witnessed.registry);
  });

  /** Batches begin once releases have shown that all keys are on one server. */
  const warmUp = async (registry: RedisLockRegistry) => {
    for (let round = 0; round < 2; round++) {
      const leases = await acquire(registry, 30, 'warm-up');
      for (const { value } of leases as PromiseFulfilledResult<Lease>[]) expect(value).not.toBeNull();
      await Promise.all((leases as PromiseFulfilledResult<Lease>[]).map(({ value }) => value.unlock()));
    }
  };

  const acquire = (registry: RedisLockRegistry, size: number, key = 'key') =>
    Promise.allSettled(Array.from({ length: size }, (_, i) => registry.obtain(`${key}-${i}`).tryLock()));

  const leasesOf = async (size: number): Promise<Lease[]> =>
    (await acquire(witnessed.registry, size)).map((result) => (result as PromiseFulfilledResult<Lease>).value);

  /** Keys of these locks, but for counters of tokens, which outlive a lock. */
  const left = async () =>
    (await admin.keys(`*${witnessed.nameOf('')}*`)).filter((key) => !/fence|token|warm-up/.test(key));

  it.each(SIZES)(
    'Where Redis refuses calls, a key of another type is refused at once and stays, and no other suffers (%d at a time)',
    async (size) => {
      await admin.rPush(witnessed.nameOf('key-0'), 'of another application');
      const [refused, ...others] = await acquire(witnessed.registry, size);
      expect(refused).toMatchObject({
        reason: { name: 'CannotAcquireLockError', cause: { message: expect.stringMatching(/^WRONGTYPE/) } },
      });
      for (const other of others)
        expect(other).toMatchObject({ status: 'fulfilled', value: { key: expect.anything() } });
      expect(await admin.lRange(witnessed.nameOf('key-0'), 0, -1)).toEqual(['of another application']);
    },
  );

  it.each(SIZES.flatMap((size) => (['renew', 'unlock'] as const).map((method) => [method, size] as const)))(
    'Where Redis refuses calls, a key that became another type is a loss for %s: stolen, and no other suffers (%d at a time)',
    async (method, size) => {
      const leases = await leasesOf(size);
      const key = witnessed.nameOf('key-0');
      await admin.multi().del(key).rPush(key, 'of another application').exec();
      const [stolen, ...others] = await Promise.allSettled(leases.map((lease) => lease[method]()));
      expect(stolen).toMatchObject({ reason: { name: 'LockLostError', reason: 'stolen' } });
      for (const other of others) expect(other).toMatchObject({ status: 'fulfilled' });
      expect(await admin.exists(key)).toBe(1);
    },
  );

  it.each(SIZES)(
    'P1 P7: without memory, nothing is granted or left, and holders renew and release (%d at a time)',
    async (size) => {
      const leases = await leasesOf(size);
      const other = createRegistry(admin, { lockType, registryKey: witnessed.registryKey });
      await admin.configSet('maxmemory', '1');
      // A lock of another owner is refused without an error. Redisson's queue is written to before.
      if (lockType !== 'redisson-fair') expect(await other.registry.obtain('key-0').tryLock()).toBeNull();
      await leases[0]?.renew(60_000);
      const refused = await acquire(witnessed.registry, size, 'more');
      const released = await Promise.allSettled(leases.map((lease) => lease.unlock()));
      await admin.configSet('maxmemory', '0');
      for (const result of refused) {
        expect(result).toMatchObject({
          reason: {
            name: 'CannotAcquireLockError',
            cause: { message: expect.stringMatching(`^${coded('OOM')}.*\\S$`) },
          },
        });
      }
      for (const result of released) expect(result).toMatchObject({ status: 'fulfilled' });
      expect(await left()).toEqual([]);
    },
  );
});
