import { beforeEach, expect, it, jest } from '@jest/globals';
import { LockError } from '../../lib';
import { FakeClock } from '../support/fake-clock';
import { lastsFor, lateReply, mockRedis, renewed, silence, stolen } from '../support/mock-redis';
import { createRegistry } from '../support/test-registry';

const time = FakeClock.install();
let redis: ReturnType<typeof mockRedis>;

beforeEach(() => {
  redis = mockRedis();
});

it('A lease counts a renewal from before its request was sent (P3)', async () => {
  const lease = await createRegistry(redis).registry.obtain('key').lock({ ttl: 10_000 });
  const reply = lateReply();
  redis.evalSha.mockReturnValueOnce(reply.promise);
  const renewing = lease.renew();
  await time.advance(4_000);
  reply.resolve(lastsFor(10_000));
  await renewing;
  expect(lease.remaining).toBe(10_000 - 11 - 4_000);
});

it('renew() of a lease that Redis does not answer rejects by the end of the lease', async () => {
  const lease = await createRegistry(redis).registry.obtain('key').lock({ ttl: 300 });
  redis.evalSha.mockImplementation(silence);
  const outcome: unknown[] = [];
  lease.renew().catch((error: unknown) => outcome.push(error));
  await time.advance(290);
  expect(outcome).toEqual([]);
  await time.advance(10);
  expect(outcome).toEqual([expect.any(LockError)]);
  expect(lease.remaining).toBe(0);
});

it('A lease counts the answer to a renewal that comes after its timeout', async () => {
  const lease = await createRegistry(redis, { expireAfter: 3_000 }).registry.obtain('key').lock();
  const reply = lateReply();
  redis.evalSha.mockImplementation(silence).mockReturnValueOnce(reply.promise);
  // It is sent after 1 s, and has half of what is left then to be answered.
  await time.advance(2_500);
  reply.resolve(renewed);
  await time.advance(1_000);
  lease.assertHeld();
  expect(lease.remaining).toBe(4_000 - 4 - 3_500);
});

it('A lease does not abort its signal after its unlock, for any reply to a renewal in flight (P7)', async () => {
  const { registry, warnings } = createRegistry(redis, { expireAfter: 3_000 });
  const lease = await registry.obtain('key').lock();
  const reply = lateReply();
  redis.evalSha.mockReturnValueOnce(reply.promise);
  await time.advance(1_000);
  await lease.unlock();
  const sent = redis.sent;
  reply.resolve(stolen);
  await time.advance(60_000);
  expect(lease.signal.aborted).toBe(false);
  expect(redis.sent).toBe(sent);
  expect(warnings).toEqual([]);
});

it('A lease is not affected by a wall clock that drifts slowly (P12)', async () => {
  const lease = await createRegistry(redis).registry.obtain('key').lock({ ttl: 60_000 });
  for (let i = 0; i < 50; i++) {
    time.wallNow += 1;
    await time.advance(100);
    expect(lease.remaining).toBeGreaterThan(0);
  }
});

it('An unlock that Redis refuses for good rejects at once (P7)', async () => {
  const lease = await createRegistry(redis).registry.obtain('key').lock();
  redis.evalSha.mockRejectedValue(new Error("NOPERM User locks has no permissions to run the 'evalsha' command"));
  const rejected = jest.fn();
  lease.unlock().catch(rejected);
  await time.advance(0);
  const refused = { name: 'LockReleaseError', message: expect.stringContaining('refused it: NOPERM') };
  expect(rejected).toHaveBeenCalledWith(expect.objectContaining(refused));
});
