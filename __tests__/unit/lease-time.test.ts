import { afterEach, beforeEach, expect, it } from '@jest/globals';
import { CannotAcquireLockError, LockLostError, RedisLockRegistry } from '../../lib';
import { FakeClock } from '../support/fake-clock';
import { mockRedis } from '../support/mock-redis';

let time: FakeClock;

beforeEach(() => {
  time = new FakeClock();
});

afterEach(() => time.restore());

it('counts a lease from before its request was sent (P3)', async () => {
  const redis = mockRedis();
  redis.evalSha.mockImplementationOnce(async () => {
    time.now += 400; // the answer takes that long
    return 1;
  });
  const lease = await new RedisLockRegistry(redis, { registryKey: 'orders' }).obtain('42').lock({ ttl: 1_000 });
  expect(lease.remaining).toBe(1_000 - 400 - 2);
});

it('takes a grant that came when its ttl was over for none, and gives it back (P3)', async () => {
  const redis = mockRedis();
  redis.evalSha.mockImplementationOnce(async () => {
    time.now += 1_000;
    return 1;
  });
  const lock = new RedisLockRegistry(redis, { registryKey: 'orders' }).obtain('42');
  const rejected = expect(lock.tryLock({ ttl: 1_000 })).rejects.toThrow(CannotAcquireLockError);
  await time.advance(0);
  await rejected;
  await time.advance(5_000);
  expect(redis.calls[1]?.arguments).toContain('UNLINK');
  expect(redis.calls[1]?.arguments?.[0]).toBe(redis.calls[0]?.arguments?.[0]);
});

it('is accurate immediately after a pause of the process, before any timer has run (P5)', async () => {
  const lease = await new RedisLockRegistry(mockRedis(), { registryKey: 'orders' }).obtain('42').lock({ ttl: 1_000 });
  expect(lease.remaining).toBeGreaterThan(990);
  time.now += 2_000; // nothing is advanced: no timer fires
  expect(lease.remaining).toBe(0);
  expect(() => lease.assertHeld()).toThrow(LockLostError);
  expect(lease.signal.aborted).toBe(true);
  await expect(lease.renew()).rejects.toThrow(LockLostError);
});

it('signals the end by a local timer, with no answer of Redis (P4)', async () => {
  const redis = mockRedis();
  const lease = await new RedisLockRegistry(redis, { registryKey: 'orders' }).obtain('42').lock({ ttl: 1_000 });
  const { signal } = lease;
  await time.advance(997);
  expect(signal.aborted).toBe(false);
  await time.advance(2);
  expect(signal.reason).toMatchObject({ reason: 'expired' });
  expect(redis.sent).toBe(1);
});

it('does not care for steps of the wall clock backwards, and asks Redis after one forwards (P12)', async () => {
  const redis = mockRedis();
  const lease = await new RedisLockRegistry(redis, { registryKey: 'orders' }).obtain('42').lock();
  time.wallNow -= 3_600_000;
  expect(lease.remaining).toBeGreaterThan(59_000);
  time.wallNow += 2 * 3_600_000; // suspended, or set by hand
  expect(lease.remaining).toBe(0);
  expect(() => lease.assertHeld()).toThrow(LockLostError);
  redis.evalSha.mockResolvedValueOnce([60_000]);
  await time.advance(10);
  expect(redis.sent).toBe(2);
  expect(lease.remaining).toBeGreaterThan(59_000);
  lease.assertHeld();
});

it('renews at a third of the ttl', async () => {
  const redis = mockRedis();
  redis.evalSha.mockResolvedValueOnce(1).mockResolvedValue([30_000]);
  const lease = await new RedisLockRegistry(redis, { registryKey: 'orders', expireAfter: 30_000 }).obtain('42').lock();
  await time.advance(9_000);
  expect(redis.sent).toBe(1);
  await time.advance(51_000);
  expect(redis.sent).toBeGreaterThanOrEqual(5);
  expect(redis.sent).toBeLessThanOrEqual(8);
  expect(lease.remaining).toBeGreaterThan(19_000);
});

it('renews the leases of a registry together, in one command', async () => {
  const redis = mockRedis();
  // The probe of the first burst: all keys are on one server.
  redis.eval.mockImplementation(async (_, { keys = [] } = {}) => keys.length);
  const registry = new RedisLockRegistry(redis, { registryKey: 'orders', expireAfter: 30_000 });
  const leases = await Promise.all(Array.from({ length: 50 }, (_, i) => registry.obtain(`order ${i}`).lock()));
  redis.evalSha.mockImplementation(async (_, options) => options?.keys?.map(() => 1));
  await time.advance(11_000);
  expect(redis.calls).toHaveLength(51);
  expect(redis.calls[50]?.keys).toHaveLength(50);
  for (const lease of leases) expect(lease.remaining).toBeGreaterThan(25_000);
});

it('tries again after a failed renewal, until the deadline; then the lease is unconfirmed (P4, P6)', async () => {
  const redis = mockRedis();
  redis.evalSha.mockResolvedValueOnce(1).mockRejectedValue(new Error('Socket closed unexpectedly'));
  const registry = new RedisLockRegistry(redis, { registryKey: 'orders', expireAfter: 30_000 });
  const lease = await registry.obtain('42').lock();
  const { signal } = lease;
  await time.advance(29_900);
  expect(signal.aborted).toBe(false);
  lease.assertHeld();
  expect(redis.sent).toBeGreaterThan(3);
  await time.advance(100);
  expect(signal.reason).toMatchObject({ reason: 'unconfirmed' });
});

it('keeps the process alive by no timer: not while a lease is held, nor once everything is over (P8)', async () => {
  const redis = mockRedis();
  const registry = new RedisLockRegistry(redis, { registryKey: 'orders' });
  await registry.run('42', () => expect(time.keepingAlive).toBe(0));
  expect(time.keepingAlive).toBe(0);
  await registry.close();
  expect(time.keepingAlive).toBe(0);
});
