import { beforeEach, expect, it } from '@jest/globals';
import { type Lease, RedisLockRegistry, type RedisLockRegistryOptions } from '../../lib';
import { clock } from '../../lib/internal/clock';
import { collectGarbage } from '../support/collected';
import { FakeClock } from '../support/fake-clock';
import { DISTINCT_TYPES } from '../support/lock-types';
import { granted, mockRedis, nextReply, refused, sharedExpired, sharedGranted } from '../support/mock-redis';

const CALLS = 50;

const time = FakeClock.install();
let redis: ReturnType<typeof mockRedis>;
let registry: RedisLockRegistry;

beforeEach(() => {
  redis = mockRedis();
  registry = new RedisLockRegistry(redis, { registryKey: 'abandoned' });
});

/** As a server that finds every key. */
function found(keys: readonly string[] = []): unknown {
  return keys.length === 1 ? 1 : keys.map(() => 1);
}

/** From now on commands are answered when the test says so: those that are sent meanwhile a minute later. */
function unanswered(): () => Promise<void> {
  const answers: (() => void)[] = [];
  redis.evalSha.mockImplementation(
    (_, options) => new Promise((resolve) => answers.push(() => resolve(found(options?.keys)))),
  );
  return async () => {
    while (answers.length > 0) {
      for (const answer of answers.splice(0)) answer();
      await time.advance(60_000);
    }
  };
}

/** Commands fail with their connection. */
function disconnected(): void {
  redis.evalSha.mockRejectedValue(new Error('Socket closed unexpectedly'));
}

/** How many releases were sent. */
const releases = () => redis.calls.filter((options) => options?.arguments?.includes('UNLINK')).length;

/** A lock over a client that has one connection, and what makes that another one: the client repeats commands over it. */
function overOneConnection(options: Partial<RedisLockRegistryOptions> = {}) {
  const client = Object.assign(redis, { socketEpoch: 1 });
  const lock = new RedisLockRegistry(client, { registryKey: 'repeated', ...options }).obtain('key');
  return { lock, reconnect: () => client.socketEpoch++ };
}

it('A removal is made once more where its connection is found to be another one a turn of the event loop later', async () => {
  const { lock, reconnect } = overOneConnection();
  const { immediate } = clock;
  clock.immediate = async () => {
    await immediate();
    if (releases() === 1) reconnect();
  };
  redis.evalSha.mockRejectedValueOnce(new Error('Socket closed unexpectedly'));
  await time.settled(lock.tryLock());
  await time.advance(2_000);
  expect(releases()).toBe(2);
});

it('What abandoned calls may have left in Redis is removed by at most four commands for each call, and these go together', async () => {
  // The probe of the first burst: all keys are on one server.
  redis.eval.mockImplementation(async (_, { keys = [] } = {}) => keys.length);
  redis.evalSha.mockImplementation(async (_, options) => found(options?.keys));
  await Promise.all(Array.from({ length: CALLS }, (_, i) => registry.run(`before ${i}`, () => undefined)));
  disconnected();
  const keys = Array.from({ length: CALLS }, (_, i) => `key ${i}`);
  const ended = Promise.allSettled(keys.map((key) => registry.obtain(key).tryLock()));
  await time.advance(5_000);
  for (const outcome of await ended) {
    expect(outcome).toMatchObject({ status: 'rejected', reason: { name: 'CannotAcquireLockError' } });
  }
  const attempts = redis.calls.length;
  redis.evalSha.mockImplementation(async (_, options) => found(options?.keys));
  await time.advance(120_000);
  const removals = redis.calls.slice(attempts);
  const named = removals.flatMap((options) => options?.keys ?? []);
  const times = keys.map((key) => named.filter((name) => name === `abandoned:${key}`).length);
  expect(Math.min(...times)).toBeGreaterThan(0);
  expect(Math.max(...times)).toBeLessThanOrEqual(4);
  expect(removals.length).toBeLessThan(CALLS / 2);
});

it('What abandoned calls may have left in a queue is removed about once a second while Redis is away, however short the ttl', async () => {
  const fair = new RedisLockRegistry(redis, { registryKey: 'fair', lockType: 'fair' }).obtain('key');
  for (const lock of [fair, registry.semaphore('key', { permits: 1 })]) {
    disconnected();
    const ended = Promise.allSettled([lock.lock({ ttl: 60, waitTime: 100 })]);
    await time.advance(5_000);
    expect(await ended).toMatchObject([{ status: 'rejected' }]);
    const before = redis.calls.length;
    await time.advance(20_000);
    const { length } = redis.calls.slice(before);
    expect(length).toBeGreaterThanOrEqual(15);
    expect(length).toBeLessThanOrEqual(25);
    redis.evalSha.mockImplementation(async (_, options) => found(options?.keys));
    await time.advance(120_000);
  }
});

it('What abandoned calls may have left in Redis is removed for as long as a renewal or the next caller asked for, when nothing was answered', async () => {
  registry = new RedisLockRegistry(redis, { registryKey: 'longer', fencing: true });
  const lock = registry.obtain('key');
  // With fencing a hold needs a command before it is passed on: an acquisition brings one token.
  const forNext = (lease: Lease) => Promise.all([lock.lock({ ttl: 60_000, waitTime: 100 }), lease.unlock()]);
  const byRenewal = (lease: Lease) => lease.renew(60_000).catch(() => lease.unlock());
  for (const askForLongerLife of [forNext, byRenewal]) {
    redis.evalSha.mockImplementation(async () => granted);
    const lease = await lock.lock({ ttl: 300 });
    disconnected();
    const asking = Promise.allSettled([askForLongerLife(lease)]);
    await time.advance(10_000);
    expect(await asking).toMatchObject([{ status: 'rejected' }]);
    redis.evalSha.mockClear();
    redis.evalSha.mockImplementation(async (_, options) => found(options?.keys));
    await time.advance(5_000);
    expect(redis.evalSha).toHaveBeenCalled();
    await time.advance(120_000);
  }
});

it('What abandoned calls may have left in Redis is removed after the release too, when the client sent the attempt again over another connection', async () => {
  const { lock, reconnect } = overOneConnection();
  await (await lock.lock()).unlock();
  await time.advance(120_000);
  expect(releases()).toBe(1);
  redis.evalSha.mockImplementationOnce(async () => reconnect() && granted);
  const lease = await lock.lock();
  await lease.unlock();
  // Its own, and those of the follow-up: two soon, and then after 1 s and 10 s.
  const counts: number[] = [];
  for (const ms of [900, 300, 9_000, 1_000, 100_000]) {
    await time.advance(ms);
    counts.push(releases());
  }
  expect(counts).toEqual([3, 4, 4, 5, 5]);
});

it('What abandoned calls may have left in Redis is removed too when the answer to that copy was that somebody else has the lock', async () => {
  const { lock, reconnect } = overOneConnection();
  for (const isRepeated of [false, true]) {
    redis.evalSha.mockImplementationOnce(async () => {
      if (isRepeated) reconnect();
      return refused(20_000, 'another:1');
    });
    expect(await lock.tryLock()).toBeNull();
    await time.advance(120_000);
    expect(releases()).toBe(isRepeated ? 3 : 0);
  }
});

it('What abandoned calls may have left in Redis is removed again when that answer came after the caller had left', async () => {
  const { lock, reconnect } = overOneConnection({ commandTimeout: 500 });
  for (const isRepeated of [false, true]) {
    const before = releases();
    const attempt = nextReply(redis);
    expect(await time.settled(lock.tryLock())).toMatchObject({ error: { name: 'CannotAcquireLockError' } });
    await time.advance(100);
    if (isRepeated) reconnect();
    attempt.resolve(granted);
    await time.advance(120_000);
    expect(releases() - before).toBe(isRepeated ? 4 : 2);
  }
});

it('What abandoned calls may have left in Redis is of one owner value, while a copy of an attempt may still be executed', async () => {
  const { lock, reconnect } = overOneConnection();
  const owners = async (isCopied: boolean) => {
    const { length } = redis.calls;
    redis.evalSha.mockImplementationOnce(async () => {
      if (isCopied) reconnect();
      return refused(20, 'another:1');
    });
    const locking = lock.lock();
    await time.advance(1_000);
    await (await locking).unlock();
    return new Set(redis.calls.slice(length).map((options) => options?.arguments?.[0])).size;
  };
  expect([await owners(false), await owners(true)]).toEqual([2, 1]);
});

it('What abandoned calls may have left in Redis is removed once for readers that lost the lock together', async () => {
  redis.evalSha.mockImplementation(async () => sharedGranted);
  const { read } = registry.readWrite('key');
  const leases = await Promise.all(Array.from({ length: CALLS }, () => read.lock({ ttl: 1_000 })));
  redis.evalSha.mockImplementation(async () => sharedExpired);
  const before = redis.calls.length;
  await time.advance(2_000);
  for (const lease of leases) {
    await expect(lease.unlock()).rejects.toThrow('was lost');
    await time.advance(100);
  }
  expect(redis.calls.length - before).toBe(1);
});

it('What abandoned calls may have left in Redis is not removed for a reader whose own ttl is over while the unlock of another one is unanswered', async () => {
  redis.evalSha.mockImplementation(async () => sharedGranted);
  const { read } = registry.readWrite('key');
  const [lease, short] = await Promise.all([read.lock(), read.lock({ ttl: 100 })]);
  await time.advance(200);
  redis.evalSha.mockImplementation(() => new Promise(() => {}));
  const before = redis.calls.length;
  void lease.unlock().catch(() => undefined);
  await expect(short.unlock()).rejects.toMatchObject({ name: 'LockLostError', reason: 'expired' });
  await time.advance(200);
  expect(redis.calls.length - before).toBe(1);
});

it('What is left over a client that was closed meanwhile is removed within a second when the client is connected again, and costs no command until then', async () => {
  const client = Object.assign(redis, { isOpen: true });
  registry = new RedisLockRegistry(client, { registryKey: 'closed', commandTimeout: 500 });
  disconnected();
  const calls = Array.from({ length: CALLS }, (_, i) => registry.obtain(`key ${i}`).lock());
  const ended = Promise.allSettled(calls);
  await time.advance(20);
  class ClientClosedError extends Error {}
  client.isOpen = false;
  redis.evalSha.mockRejectedValue(new ClientClosedError('The client is closed'));
  await time.advance(1_000);
  await ended;
  const { sent } = redis;
  await time.advance(50_000);
  expect(redis.sent).toBe(sent);
  client.isOpen = true;
  redis.evalSha.mockImplementation(async (_, options) => found(options?.keys));
  const before = redis.calls.length;
  await time.advance(1_100);
  const removed = new Set(redis.calls.slice(before).flatMap((options) => options?.keys));
  expect(removed.size).toBe(CALLS);
});

it.each(DISTINCT_TYPES)(
  'What abandoned calls may have left in Redis is little after an outage of two minutes, and was not given to the client: %s',
  async (lockType) => {
    registry = new RedisLockRegistry(redis, { registryKey: 'outage', lockType, onWarning: () => undefined });
    const answerAll = unanswered();
    let calls = 0;
    const outcomes = new Set<string>();
    const heap = () => {
      collectGarbage();
      return process.memoryUsage().heapUsed;
    };
    let before = 0;
    for (let second = 0; second < 120; second++) {
      // By then V8 has compiled what runs, and the first calls have what they keep.
      if (second === 60) before = heap();
      for (let i = 0; i < CALLS; i++) {
        void registry
          .obtain(`key ${calls++ % 100}`)
          .lock({ waitTime: 200 })
          .catch((error: Error) => outcomes.add(error.name));
      }
      await time.advance(1_000);
    }
    expect(outcomes).toEqual(new Set(['CannotAcquireLockError']));
    // A trace of each call would be more.
    expect(heap() - before).toBeLessThan((calls / 2) * 512);
    // Those of the first moment, and one in a second.
    expect(redis.sent).toBeLessThan(500);
    const { sent } = redis;
    await answerAll();
    expect(redis.sent - sent).toBeLessThan(3 * sent);
  },
);
