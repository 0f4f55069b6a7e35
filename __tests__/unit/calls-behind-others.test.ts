import { beforeEach, expect, it } from '@jest/globals';
import type { RedisLockRegistry, RedisLockRegistryOptions } from '../../lib';
import { FakeClock } from '../support/fake-clock';
import { DISTINCT_TYPES } from '../support/lock-types';
import {
  granted,
  mockRedis,
  nextReply,
  refused,
  released,
  sharedGranted,
  sharedRefused,
  silence,
} from '../support/mock-redis';
import { createRegistry } from '../support/test-registry';

// Calls behind an attempt, or an unlock, of their own process.

const time = FakeClock.install();
let redis: ReturnType<typeof mockRedis>;

beforeEach(() => {
  redis = mockRedis();
});

const registryOf = (options: Partial<RedisLockRegistryOptions> = {}) =>
  createRegistry(Object.assign(redis, { socketEpoch: 1 }), options).registry;

const settled = (call: Promise<unknown>) => time.settled(call);

it('A caller that does not wait is told what Redis answers to the attempt in front of it, and asks itself where that fails', async () => {
  const lock = registryOf().obtain('key');
  redis.evalSha.mockResolvedValueOnce(refused(60_000));
  const attempt = nextReply(redis);
  await lock.tryLock();
  const [first, second] = [settled(lock.tryLock()), settled(lock.tryLock())];
  await time.advance(20);
  attempt.reject(new Error('Socket closed unexpectedly'));
  expect(await first).toMatchObject({ error: { name: 'CannotAcquireLockError' } });
  expect(await second).toMatchObject({ after: 20, value: { key: 'key' } });
  const other = registryOf().obtain('other');
  const refusal = nextReply(redis);
  const both = [settled(other.tryLock()), settled(other.tryLock())];
  await time.advance(20);
  const { sent } = redis;
  refusal.resolve(refused(60_000));
  expect(await Promise.all(both)).toMatchObject([{ value: null }, { value: null }]);
  expect(redis.sent).toBe(sent);
});

it('A caller that does not wait is refused where the attempt in front of it fails, and another owner had the lock just now', async () => {
  const lock = registryOf({ idleBetweenTries: 100 }).obtain('key');
  redis.evalSha.mockResolvedValueOnce(refused(60_000));
  const poll = nextReply(redis);
  redis.evalSha.mockResolvedValue(refused(60_000));
  lock.lock().catch(() => undefined);
  await time.advance(110);
  const trying = settled(lock.tryLock());
  await time.advance(10);
  poll.reject(new Error('Socket closed unexpectedly'));
  expect(await trying).toMatchObject({ value: null });
});

it.each([
  ['at its waitTime', 300],
  ['by its signal', 3_000],
])('A caller asks Redis itself when a call for several keys has ended before the answer: %s', async (how, waitTime) => {
  const registry = registryOf();
  const stop = new AbortController();
  const [attempt] = [nextReply(redis), nextReply(redis)];
  const ended = settled(registry.multi(['key', 'other']).lock({ waitTime, signal: stop.signal }));
  await time.advance(10);
  if (how === 'by its signal') stop.abort(new Error('stop'));
  await time.advance(340);
  expect(await ended).toMatchObject({ error: expect.any(Error) });
  const trying = settled(registry.obtain('key').tryLock());
  await time.advance(10);
  // By then its lock may be free.
  attempt.resolve(refused(60_000));
  expect(await trying).toMatchObject({ after: 0, value: { key: 'key' } });
});

it.each([
  ['is told what Redis answers to the caller that was quicker', 301, 5_000, 0],
  ['is told within its commandTimeout, though that caller is not answered (P1)', 480, 500, 330],
])('Behind a slow unlock, a caller that does not wait %s', async (_, ms, commandTimeout, later) => {
  const lock = registryOf({ commandTimeout }).obtain('key');
  const lease = await lock.lock();
  const [release, attempt] = [nextReply(redis), nextReply(redis)];
  const unlocked = lease.unlock();
  await time.advance(300);
  const outcomes: unknown[] = [];
  const noted = (outcome: unknown) => void outcomes.push(outcome);
  lock.tryLock().then(noted, noted);
  const waiting = lock.lock();
  await time.advance(ms - 300);
  release.resolve(1);
  await unlocked;
  await time.advance(1);
  expect([redis.sent, outcomes]).toEqual([3, []]);
  if (later === 0) attempt.resolve(granted);
  await time.advance(later);
  expect(outcomes).toMatchObject([later === 0 ? null : { name: 'CannotAcquireLockError' }]);
  attempt.resolve(granted);
  await (await waiting).unlock();
});

it.each([
  [249, 'LockTimeoutError'],
  [250, 'CannotAcquireLockError'],
])('An unlock that Redis has not answered for %d ms makes %s of the end of a wait', async (waitTime, name) => {
  const lock = registryOf().obtain('key');
  const lease = await lock.lock();
  redis.evalSha.mockImplementation(silence);
  const unlocked = settled(lease.unlock());
  expect(await settled(lock.lock({ waitTime }))).toMatchObject({ after: waitTime, error: { name } });
  await unlocked;
});

it.each(DISTINCT_TYPES.flatMap((lockType) => [0, 1].map((waiters) => ({ lockType, waiters }))))(
  'An unlock of a $lockType lock that is not answered is silence to other callers, with $waiters waiters (P1)',
  async ({ lockType, waiters }) => {
    const lock = registryOf({ lockType, commandTimeout: 1_000 }).obtain('key');
    const lease = await lock.lock();
    const waiting = Array.from({ length: waiters }, () => settled(lock.lock({ waitTime: 600 })));
    await time.advance(80);
    redis.evalSha.mockImplementation(silence);
    const unlocked = settled(lease.unlock());
    await time.advance(300);
    const others = [lock.tryLock({ waitTime: 100 }), lock.lock({ waitTime: 100 }), lock.tryLock()].map(settled);
    const message = expect.stringMatching(/not answer(ed)? (for|within) [1-9]\d+ ms/);
    for (const end of await Promise.all([...waiting, ...others])) {
      expect(end).toMatchObject({ error: { name: 'CannotAcquireLockError', message } });
    }
    await unlocked;
  },
);

it.each(DISTINCT_TYPES)(
  'A tryLock of a %s lock waits for the answer to an unlock that is not answered for long',
  async (lockType) => {
    const lock = registryOf({ lockType }).obtain('key');
    const lease = await lock.lock();
    await time.advance(80);
    const release = nextReply(redis);
    const unlocked = lease.unlock();
    await time.advance(200);
    expect(await settled(lock.tryLock())).toMatchObject({ after: 0, value: null });
    await time.advance(100);
    const trying = settled(lock.tryLock());
    await time.advance(50);
    expect(redis.sent).toBe(2);
    release.resolve(released);
    await unlocked;
    expect(await trying).toMatchObject({ value: { key: 'key' } });
  },
);

it('A reader that does not wait is refused without a question where the one in front of it was', async () => {
  redis.evalSha.mockResolvedValue(sharedRefused(20_000, 0));
  const { read } = registryOf().readWrite('key');
  void read.lock().catch(() => undefined);
  await time.advance(1);
  const { sent } = redis;
  expect(await read.tryLock()).toBeNull();
  expect(redis.sent).toBe(sent);
});

it.each([
  ['fair', (registry: RedisLockRegistry) => registry.obtain('key'), granted],
  ['shared', (registry: RedisLockRegistry) => registry.semaphore('key', { permits: 1 }), sharedGranted],
] as const)(
  'A call waits no longer than unavailableAfter for the script that ends a %s lease for it (P1)',
  async (_, lockOf, reply) => {
    redis.evalSha.mockResolvedValueOnce(reply).mockResolvedValue(sharedRefused(20_000, 1));
    const lock = lockOf(registryOf({ lockType: 'fair', unavailableAfter: 500 }));
    const lease = await lock.lock();
    const next = settled(lock.lock());
    await time.advance(60);
    redis.evalSha.mockImplementation(silence);
    const unlocked = settled(lease.unlock());
    const end = await next;
    expect(end).toMatchObject({ error: { name: 'CannotAcquireLockError' } });
    // After the last attempt it pauses once more.
    expect(end?.after).toBeLessThanOrEqual(60 + 500 + 50);
    await unlocked;
  },
);

it('A call of several keys that has waited waits no longer than unavailableAfter for the whole ttl of its leases (P1)', async () => {
  const registry = registryOf({ unavailableAfter: 500 });
  redis.evalSha
    .mockResolvedValueOnce(refused(60_000))
    .mockImplementation(() => (redis.sent > 5 ? silence() : Promise.resolve(granted)));
  const end = await settled(registry.multi(['a', 'b']).lock({ renew: false, ttl: 10_000 }));
  // It gives back what it has for another 50 ms.
  expect(end).toMatchObject({ after: 550, error: { name: 'CannotAcquireLockError' } });
});

it('A nested call waits no longer than unavailableAfter for its ttl (P1)', async () => {
  const lock = registryOf({ unavailableAfter: 500 }).obtain('key');
  let end: unknown;
  await lock.run(async () => {
    redis.evalSha.mockImplementation(silence);
    end = await settled(lock.lock({ ttl: 100_000 }));
    redis.evalSha.mockResolvedValue(released);
  });
  expect(end).toMatchObject({ after: 500, error: { name: 'CannotAcquireLockError' } });
});
