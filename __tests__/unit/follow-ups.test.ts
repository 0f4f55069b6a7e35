import { beforeEach, expect, it } from '@jest/globals';
import {
  type EvalOptions,
  type Lease,
  type LockType,
  RedisLockRegistry,
  type RedisLockRegistryOptions,
} from '../../lib';
import { collectGarbage } from '../support/collected';
import { FakeClock } from '../support/fake-clock';
import { DISTINCT_TYPES } from '../support/lock-types';
import { granted, lateReply, mockRedis, refused, sharedExpired, sharedGranted } from '../support/mock-redis';

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

/** Calls that end without a lock. */
async function abandoned(): Promise<void> {
  const calls = Array.from({ length: CALLS }, (_, i) => registry.obtain(`key ${i}`).tryLock());
  const ended = Promise.allSettled(calls);
  await time.advance(5_000);
  for (const outcome of await ended) {
    expect(outcome).toMatchObject({ status: 'rejected', reason: { name: 'CannotAcquireLockError' } });
  }
}

/** How many releases were sent. */
const releases = () => redis.calls.filter((options) => options?.arguments?.includes('UNLINK')).length;

/** A lock over a client that has one connection, and what makes that another one: the client repeats commands over it. */
function overOneConnection(options: Partial<RedisLockRegistryOptions> = {}) {
  const client = Object.assign(redis, { socketEpoch: 1 });
  const lock = new RedisLockRegistry(client, { registryKey: 'repeated', ...options }).obtain('key');
  return { lock, reconnect: () => client.socketEpoch++ };
}

/** How often each key was named in a command, and in how many commands. */
function sentAbout(calls: readonly (EvalOptions | undefined)[]) {
  const times = new Map<string, number>();
  for (const key of calls.flatMap((options) => options?.keys ?? [])) times.set(key, (times.get(key) ?? 0) + 1);
  return { most: Math.max(0, ...times.values()), commands: calls.length };
}

it('What abandoned calls may have left in Redis is removed by at most three commands for each call, and these go together', async () => {
  // The probe of the first burst: all keys are on one server.
  redis.eval.mockImplementation(async (_, { keys = [] } = {}) => keys.length);
  redis.evalSha.mockImplementation(async (_, options) => found(options?.keys));
  await Promise.all(Array.from({ length: CALLS }, (_, i) => registry.run(`before ${i}`, () => undefined)));
  disconnected();
  await abandoned();
  const attempts = redis.calls.length;
  redis.evalSha.mockImplementation(async (_, options) => found(options?.keys));
  await time.advance(120_000);
  const { most, commands } = sentAbout(redis.calls.slice(attempts));
  expect(most).toBeGreaterThan(0);
  expect(most).toBeLessThanOrEqual(3);
  expect(commands).toBeLessThan(CALLS / 2);
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

it('What abandoned calls may have left in Redis is removed when a lease of several keys ends by its ttl, though one key was acquired with a longer one', async () => {
  const first = await registry.obtain('a').lock({ ttl: 30_000 });
  const several = registry.multi(['a', 'b']).lock({ ttl: 300 });
  await time.advance(10);
  await first.unlock();
  const lease = await several;
  const { length } = redis.calls;
  await time.advance(1_000);
  expect(lease.remaining).toBe(0);
  expect(redis.calls.slice(length).flatMap((options) => options?.keys)).toContain('abandoned:a');
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
  for (const [isRepeated, removals] of [
    [false, 0],
    [true, 3],
  ] as const) {
    redis.evalSha.mockImplementationOnce(async () => {
      if (isRepeated) reconnect();
      return refused(20_000, 'another:1');
    });
    expect(await lock.tryLock()).toBeNull();
    await time.advance(120_000);
    expect(releases()).toBe(removals);
  }
});

it('What abandoned calls may have left in Redis is removed for as long as that copy may come, though the hold was passed on to a lease with a shorter ttl', async () => {
  const { lock, reconnect } = overOneConnection();
  const attempt = lateReply();
  redis.evalSha.mockReturnValueOnce(attempt.promise);
  const [locking, next] = [lock.lock({ ttl: 30_000 }), lock.lock({ ttl: 600 })];
  await time.advance(10);
  reconnect();
  attempt.resolve(granted);
  await (await locking).unlock();
  await (await next).unlock();
  await time.advance(9_000);
  const { sent } = redis;
  await time.advance(3_000);
  expect(redis.sent).toBe(sent + 1);
});

it('What abandoned calls may have left in Redis is removed again when that answer came after the caller had left', async () => {
  const { lock, reconnect } = overOneConnection({ commandTimeout: 500 });
  for (const [isRepeated, removals] of [
    [false, 2],
    [true, 3],
  ] as const) {
    const before = releases();
    const attempt = lateReply();
    redis.evalSha.mockReturnValueOnce(attempt.promise);
    const rejected = expect(lock.tryLock()).rejects.toMatchObject({ name: 'CannotAcquireLockError' });
    await time.advance(600);
    await rejected;
    if (isRepeated) reconnect();
    attempt.resolve(granted);
    await time.advance(120_000);
    expect(releases() - before).toBe(removals);
  }
});

it('What abandoned calls may have left in Redis is removed again over a client with several connections, which have no order', async () => {
  const lock = registry.obtain('key');
  disconnected();
  await expect(Promise.all([lock.tryLock(), time.advance(5_000)])).rejects.toThrow('Socket closed');
  redis.evalSha.mockResolvedValue(1);
  const before = releases();
  await time.advance(120_000);
  expect(releases() - before).toBe(3);
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

it('What abandoned calls may have left in Redis is not removed any more by a registry that is closed', async () => {
  disconnected();
  await abandoned();
  const closing = registry.close();
  await time.advance(10_000);
  await closing;
  const before = redis.sent;
  await time.advance(120_000);
  expect(redis.sent).toBe(before);
});

class ClientClosedError extends Error {}

/** A client that is open, with a connection. `close`: from then on it rejects what it is given. */
const closable = (lockType: LockType = 'spin') => {
  const client = Object.assign(redis, { isOpen: true });
  registry = new RedisLockRegistry(client, { registryKey: 'closed', lockType, commandTimeout: 500 });
  const close = () => {
    client.isOpen = false;
    redis.evalSha.mockRejectedValue(new ClientClosedError('The client is closed'));
  };
  const connect = () => {
    client.isOpen = true;
    redis.evalSha.mockImplementation(async (_, options) => found(options?.keys));
  };
  return { close, connect };
};

/** Attempts are lost with their connection, and the client is closed then. Returns what connects it again. */
const lost = async (lockType?: LockType) => {
  const { close, connect } = closable(lockType);
  disconnected();
  const calls = Array.from({ length: CALLS }, (_, i) => registry.obtain(`key ${i}`).lock());
  const ended = Promise.allSettled(calls);
  await time.advance(20);
  close();
  await time.advance(1_000);
  await ended;
  return connect;
};

it('What is left over a client that was closed meanwhile is removed within a second when the client is connected again, and costs no command until then', async () => {
  const connect = await lost();
  const { sent } = redis;
  await time.advance(50_000);
  expect(redis.sent).toBe(sent);
  connect();
  const before = redis.calls.length;
  await time.advance(1_100);
  const removed = new Set(redis.calls.slice(before).flatMap((options) => options?.keys));
  expect(removed.size).toBe(CALLS);
});

it.each<[LockType, number]>([
  ['spin', 60_000],
  ['fair', 60_000],
  ['redisson-fair', 30_000 + 300_000 + 10_000],
])(
  'What is left over a client that was closed meanwhile is given up when a key or position of a %s lock has ended by itself',
  async (lockType, life) => {
    const connect = await lost(lockType);
    await time.advance(life);
    expect(time.pending).toBe(0);
    connect();
    const { sent } = redis;
    await time.advance(120_000);
    expect(redis.sent).toBe(sent);
  },
);

it.each(DISTINCT_TYPES)(
  'What is left over a client that was closed meanwhile is nothing when it was closed before the attempt, %s',
  async (lockType) => {
    const { close } = closable(lockType);
    const locks = Array.from({ length: CALLS }, (_, i) => registry.obtain(`key ${i}`));
    // Two callers of a process, of which the second one waits for the first.
    await Promise.all(locks.flatMap((lock) => [lock.run(() => undefined), lock.run(() => undefined)]));
    await time.advance(120_000);
    close();
    for (const outcome of await Promise.allSettled(locks.map((lock) => lock.lock())))
      expect(outcome.status).toBe('rejected');
    expect(time.keepingAlive).toBe(0);
    const { sent } = redis;
    await time.advance(120_000);
    expect(redis.sent).toBe(sent);
  },
);

it('What is left over a client that was closed meanwhile keeps neither the process alive nor `close()` waiting', async () => {
  await lost();
  expect(time.keepingAlive).toBe(0);
  let isClosed = false;
  void registry.close().then(() => (isClosed = true));
  await time.advance(0);
  expect(isClosed).toBe(true);
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

it('What abandoned calls may have left in Redis is not removed again while a removal is unanswered, however long that takes', async () => {
  const answerAll = unanswered();
  await abandoned();
  await time.advance(600_000);
  // The attempt, and one removal.
  expect(sentAbout(redis.calls).most).toBe(2);
  const before = redis.sent;
  await answerAll();
  // The attempt may have been executed after that one.
  const { most } = sentAbout(redis.calls.slice(before));
  expect(most).toBeGreaterThanOrEqual(1);
  expect(most).toBeLessThanOrEqual(3);
});
