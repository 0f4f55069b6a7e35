import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import { beforeEach, expect, it, jest } from '@jest/globals';
import { type Lease, LockError, type LostMessage, NotLockOwnerError, type RenewedMessage } from '../../lib';
import { InMemoryLockRegistry } from '../../lib/testing';
import { FakeClock } from '../support/fake-clock';
import { lastsFor, lateReply, mockRedis, nextReply, renewed, silence, stolen } from '../support/mock-redis';
import { published } from '../support/published';
import { createRegistry } from '../support/test-registry';

const time = FakeClock.install();
let redis: ReturnType<typeof mockRedis>;

beforeEach(() => {
  redis = mockRedis();
});

it('A lease counts a renewal from before its request was sent (P3)', async () => {
  const lease = await createRegistry(redis).registry.obtain('key').lock({ ttl: 10_000 });
  const reply = nextReply(redis);
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

it.each(['renewed', 'gone'])(
  'renew() of a lease that is unlocked before the answer rejects: the lock is %s',
  async (found) => {
    const lease = await createRegistry(redis).registry.obtain('key').lock();
    const reply = nextReply(redis);
    const renewing = lease.renew();
    await time.advance(0);
    await lease.unlock();
    reply.resolve(found === 'renewed' ? renewed : 0);
    await expect(renewing).rejects.toThrow(NotLockOwnerError);
  },
);

it('The section of a lease ends once, also where its unlock finds that the lock was lost before', async () => {
  const lock = createRegistry(redis).registry.obtain('key');
  const ended = await published('hold', async () => {
    const lease = await lock.lock();
    redis.evalSha.mockResolvedValueOnce(stolen);
    await expect(lease.unlock()).rejects.toMatchObject({ name: 'LockLostError', reason: 'stolen' });
    await lease.unlock();
  });
  expect(ended).toHaveLength(1);
});

it('A listener to the loss of a lease can take the lock again at once', async () => {
  const lock = createRegistry(redis).registry.obtain('key');
  const lease = await lock.lock();
  const again = new Promise<Lease | null>((resolve) => {
    lease.signal.addEventListener('abort', () => resolve(lock.tryLock()));
  });
  redis.evalSha.mockResolvedValueOnce(stolen);
  await expect(lease.renew()).rejects.toMatchObject({ name: 'LockLostError' });
  (await again)?.assertHeld();
  expect(await again).not.toBeNull();
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
  const reply = nextReply(redis);
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

it('A lease whose renew() was in flight while the machine was suspended is unconfirmed (P12)', async () => {
  const lease = await createRegistry(redis).registry.obtain('key').lock({ ttl: 10_000 });
  const reply = nextReply(redis);
  const renewing = lease.renew();
  await time.advance(1);
  time.wallNow += 60_000;
  reply.resolve(renewed);
  await renewing;
  expect(lease.remaining).toBe(0);
});

it('Leases that follow each other have the tokens of a block, one after the other, and its end costs one command', async () => {
  redis.evalSha.mockResolvedValueOnce(7).mockResolvedValueOnce('20 3').mockResolvedValue('30 2');
  const lock = createRegistry(redis, { fencing: true }).registry.obtain('key');
  let lease = await lock.lock();
  const seen = [[lease.fencingToken, redis.sent]];
  for (const next of [lock.lock(), lock.lock(), lock.lock(), lock.lock()]) {
    await lease.unlock();
    lease = await next;
    seen.push([lease.fencingToken, redis.sent]);
  }
  expect(seen.join(' ')).toBe('7,1 20,2 21,2 22,2 30,3');
});

it('A lease that is not renewed aborts its signal at its own end, though the hold was renewed for longer before (P4)', async () => {
  const lock = createRegistry(redis).registry.obtain('key');
  const [first, waiting] = [await lock.lock({ ttl: 1_000 }), lock.lock({ ttl: 1_000 })];
  await first.renew(60_000);
  await first.unlock();
  const { signal } = await waiting;
  await time.advance(990);
  expect(signal.aborted).toBe(false);
  await time.advance(10);
  expect(signal.reason).toMatchObject({ reason: 'expired' });
});

it('A lease is not lost, nor suspect again, by what comes late for a renewal of before: an error, or an answer from before a suspension', async () => {
  for (const isSuspended of [false, true]) {
    const lease = await createRegistry(redis, { expireAfter: 3_000 }).registry.obtain('key').lock();
    const reply = nextReply(redis);
    await time.advance(1_100);
    if (isSuspended) time.wallNow += 3_600_000;
    expect(lease.remaining > 0).toBe(!isSuspended);
    // Its timeout is over, and the next try is answered.
    await time.advance(1_200);
    lease.assertHeld();
    if (isSuspended) reply.resolve(renewed);
    else reply.reject(new Error('Socket closed unexpectedly'));
    await time.advance(1);
    lease.assertHeld();
    await lease.unlock();
  }
});

it('A lease whose renew() was answered while the process was blocked is unconfirmed until the answer is read, and held then', async () => {
  for (const isRenewed of [true, false]) {
    const lock = createRegistry(redis).registry.obtain('key');
    const lease = await lock.lock({ ttl: 1_000 });
    const reply = nextReply(redis);
    const renewing = lease.renew(10_000);
    await time.advance(0);
    time.now += 1_200;
    time.wallNow += 1_200;
    if (isRenewed) reply.resolve(lastsFor(10_000));
    expect(() => lease.assertHeld()).toThrow('unconfirmed');
    expect(lease.signal.aborted).toBe(false);
    if (!isRenewed) await expect(Promise.all([renewing, time.advance(1)])).rejects.toThrow(LockError);
    else await Promise.all([renewing, time.advance(1)]);
    expect([lease.signal.aborted, lease.remaining > 0]).toEqual([!isRenewed, isRenewed]);
  }
});

it('A lease that ends before its `minHold` is kept for what is left of it, by the age of its key only where it was its own', async () => {
  const lock = createRegistry(redis, { expireAfter: 10_000 }).registry.obtain('key');
  const released = async (unlocked: Promise<void>) => {
    await unlocked;
    return redis.calls.at(-1)?.arguments?.slice(1, 4);
  };
  const UNKNOWN = String(Number.MAX_SAFE_INTEGER);
  let lease = await lock.lock({ minHold: 1_000 });
  await time.advance(200);
  expect(await released(lease.unlock())).toEqual(['800', '1000', '10000']);
  const first = await lock.lock();
  await time.advance(20);
  const next = lock.lock({ minHold: 1_000 });
  await first.unlock();
  lease = await next;
  await time.advance(200);
  expect(await released(lease.unlock())).toEqual(['800', UNKNOWN, '10000']);
  const running = lock.run(async () => {
    await time.advance(300);
    for (const minHold of [1_000, 10]) await (await lock.lock({ minHold })).unlock();
  });
  expect(await released(running)).toEqual(['1000', UNKNOWN, '10000']);
  lease = await lock.lock({ minHold: 100 });
  await time.advance(100);
  expect((await released(lease.unlock()))?.[0]).toBe('UNLINK');
});

it('A fixed lease of a hold that was passed on lasts for as long as renew() asked for, if Redis confirmed it', async () => {
  const lock = createRegistry(redis).registry.obtain('key');
  const first = await lock.lock({ ttl: 60_000 });
  const next = lock.lock({ ttl: 1_000, renew: false });
  await time.advance(40);
  await first.unlock();
  const lease = await next;
  expect(Math.ceil(lease.remaining)).toBe(998);
  redis.evalSha.mockRejectedValueOnce(new Error('ERR busy')).mockResolvedValue(lastsFor(60_000));
  const failed = { name: 'CannotAcquireLockError', message: expect.stringContaining('not confirm it') };
  await expect(lease.renew(10_000)).rejects.toMatchObject({ ...failed, cause: { message: 'ERR busy' } });
  expect(Math.ceil(lease.remaining)).toBe(998);
  const told: number[] = [];
  const note = (message: unknown) => void told.push((message as RenewedMessage).remaining);
  subscribe('redis-lock-registry:renewed', note);
  await lease.renew(10_000);
  unsubscribe('redis-lock-registry:renewed', note);
  expect([lease.remaining, ...told].map(Math.ceil)).toEqual([9_989, 9_989]);
  await lease.renew(10);
  expect(Math.ceil(lease.remaining)).toBe(9_989);
});

it('A lease of a hold that was passed on is renewed, though a renew() of the fixed lease before was in flight', async () => {
  const lock = createRegistry(redis, { expireAfter: 3_000 }).registry.obtain('key');
  const first = await lock.lock({ ttl: 3_000 });
  const next = lock.lock();
  const reply = nextReply(redis);
  const renewing = first.renew().catch(() => undefined);
  await time.advance(1);
  await first.unlock();
  reply.resolve(renewed);
  await renewing;
  const lease = await next;
  await time.advance(10_000);
  lease.assertHeld();
});

it('A lease tells those who listen that it was renewed, and for how long it was held when it was lost', async () => {
  const messages: unknown[] = [];
  const note = (message: unknown) => messages.push(message);
  for (const what of ['renewed', 'lost']) subscribe(`redis-lock-registry:${what}`, note);
  const { registry, registryKey } = createRegistry(redis);
  const lease = await registry.obtain('key').lock({ ttl: 3_000, renew: true });
  await time.advance(1_001);
  redis.evalSha.mockResolvedValue(stolen);
  await time.advance(1_000);
  for (const what of ['renewed', 'lost']) unsubscribe(`redis-lock-registry:${what}`, note);
  const about = { key: 'key', registryKey, lockType: 'spin', lease, owner: expect.any(String) };
  expect(messages).toMatchObject([about, { ...about, reason: 'stolen', heldFor: 2_000 }]);
});

it('unlock() of a lease whose renewal was answered while the process was blocked waits until the answer is read', async () => {
  const lease = await createRegistry(redis).registry.obtain('key').lock({ ttl: 1_000 });
  const reply = nextReply(redis);
  const renewing = expect(lease.renew(10_000)).rejects.toThrow('stolen');
  await time.advance(0);
  time.now += 1_200;
  time.wallNow += 1_200;
  reply.resolve(stolen);
  const unlocked = expect(lease.unlock()).rejects.toMatchObject({ name: 'LockLostError', reason: 'stolen' });
  await time.advance(1);
  await Promise.all([renewing, unlocked]);
});

it('unlock() that finds the deadline past reports the loss, though a listener to the loss unlocks too', async () => {
  const lease = await createRegistry(redis).registry.obtain('key').lock({ ttl: 1_000 });
  const unlocks: Promise<void>[] = [];
  lease.signal.addEventListener('abort', () => void unlocks.push(lease.unlock()));
  // The event loop was blocked: no timer has run.
  time.now += 2_000;
  unlocks.push(lease.unlock());
  expect(await Promise.allSettled(unlocks)).toMatchObject([
    { status: 'rejected', reason: { name: 'LockLostError', reason: 'expired' } },
    { status: 'fulfilled' },
  ]);
});

it.each<['unlock' | 'detach', string]>([
  ['unlock', 'hold:asyncEnd'],
  ['unlock', 'release:start'],
  ['detach', 'hold:asyncEnd'],
])(
  '%s() rejects with the loss that a subscriber to %s finds, after it has blocked the process',
  async (call, event) => {
    const lock = createRegistry(redis).registry.obtain('key');
    const block = () => {
      time.now += 2_000;
      expect(() => lease.assertHeld()).toThrow('lost (expired)');
    };
    subscribe(`tracing:redis-lock-registry:${event}`, block);
    const lease = await lock.lock({ ttl: 1_000 });
    const next = lock.lock({ ttl: 1_000 });
    const ended = lease[call]();
    unsubscribe(`tracing:redis-lock-registry:${event}`, block);
    await expect(ended).rejects.toMatchObject({ name: 'LockLostError', reason: 'expired' });
    expect(lease.signal.aborted).toBe(true);
    (await next).assertHeld();
  },
);

it('The end of a block with `await using` warns of a release that failed, and not of a loss', async () => {
  const { registry, warnings } = createRegistry(redis);
  const refused = new Error("NOPERM User locks has no permissions to run the 'evalsha' command");
  for (const answer of [async () => stolen, () => Promise.reject(refused)]) {
    const lease = await registry.obtain('key').lock();
    redis.evalSha.mockImplementationOnce(answer);
    await lease[Symbol.asyncDispose]();
  }
  expect(warnings).toMatchObject([{ code: 'RELEASE_FAILED', key: 'key', message: expect.stringContaining('NOPERM') }]);
});

it('run() settles as its task did where the release fails, which is warned of (P7)', async () => {
  const { registry, warnings } = createRegistry(redis);
  const failure = new Error('out of stock');
  for (const task of [() => Promise.reject(failure), async () => 'sold']) {
    const ran = registry.run('key', () => {
      redis.evalSha.mockRejectedValueOnce(new Error('NOPERM no right'));
      return task();
    });
    expect(await ran.catch((error: unknown) => error)).toBe(await task().catch((error: unknown) => error));
  }
  const warning = { code: 'RELEASE_FAILED', key: 'key', cause: { name: 'LockReleaseError' } };
  expect(warnings).toMatchObject([warning, warning]);
});

it('A lease that is over refuses every call, says how it ended, and sends nothing', async () => {
  const lock = createRegistry(redis).registry.obtain('key');
  const unlocked = await lock.lock();
  await unlocked.unlock();
  const lost = await lock.lock({ ttl: 1_000, renew: false });
  await time.advance(1_000);
  const { sent } = redis;
  for (const [lease, why] of [
    [unlocked, 'unlocked'],
    [lost, 'lost (expired)'],
  ] as const) {
    expect(() => lease.assertHeld()).toThrow(why);
    for (const call of [lease.renew(), lease.eval('return 1'), lease.detach()]) await expect(call).rejects.toThrow(why);
  }
  expect(redis.sent).toBe(sent);
});

it.each<[string, (lease: Lease) => Promise<unknown>]>([
  ['renew', (lease) => lease.renew()],
  ['eval', (lease) => lease.eval('return 1')],
  ['detach', (lease) => lease.detach()],
])(
  '%s() after a block of the event loop sends nothing where the lease is over, or an answer that lay unread says so',
  async (_, call) => {
    for (const isUnread of [true, false]) {
      const lease = await createRegistry(redis).registry.obtain('key').lock({ ttl: 1_000 });
      const reply = lateReply();
      if (isUnread) {
        redis.evalSha.mockReturnValueOnce(reply.promise);
        lease.renew().catch(() => undefined);
      }
      await time.advance(0);
      time.now += 1_000;
      time.wallNow += 1_000;
      const { sent } = redis;
      reply.resolve(stolen);
      const reason = isUnread ? 'stolen' : 'expired';
      expect(await time.settled(call(lease), 10)).toMatchObject({ error: { name: 'LockLostError', reason } });
      expect(redis.sent).toBe(sent);
    }
  },
);

it('A lease leaves nothing of the scripts that ran under it', async () => {
  const lease = await createRegistry(redis).registry.obtain('key').lock();
  const [owner] = redis.calls[0]?.arguments ?? [];
  const set = jest.spyOn(Map.prototype, 'set');
  await lease.eval('return 1');
  const maps = set.mock.contexts.filter((_, call) => set.mock.calls[call]?.[0] === owner) as Map<unknown, unknown>[];
  set.mockRestore();
  expect(maps.map(({ size }) => size)).toEqual([0]);
});

it('A lease of several keys that is not renewed costs no command until it ends', async () => {
  const { registry } = createRegistry(redis);
  const lease = await registry.multi(['a', 'b']).lock({ ttl: 3_000, renew: false });
  const { sent } = redis;
  await time.advance(2_900);
  expect([redis.sent - sent, lease.remaining > 0]).toEqual([0, true]);
  await time.advance(100);
  expect(lease.remaining).toBe(0);
});

it('A lease of several keys that is not renewed ends by its own ttl, though another one had its hold', async () => {
  const { registry } = createRegistry(redis);
  const before = await registry.obtain('a').lock();
  const several = registry.multi(['a']).lock({ ttl: 3_000, renew: false });
  await time.advance(1);
  await before.unlock();
  expect((await several).remaining).toBeLessThan(3_000);
});

it('unlock() rejects when it finds that the lock was lost, and warns where a try without an answer may have released it', async () => {
  Object.assign(redis, { socketEpoch: 1 });
  const { registry, warnings } = createRegistry(redis);
  const lock = registry.obtain('key');
  const reply = nextReply(redis);
  const locking = lock.lock();
  await time.advance(100);
  reply.resolve(1);
  const lease = await locking;
  const { signal } = lease;
  Object.assign(redis, { socketEpoch: 2 }); // a reconnect before the release says nothing of it
  redis.evalSha.mockResolvedValueOnce(stolen);
  const messages: LostMessage[] = [];
  const note = (message: unknown) => void messages.push(message as LostMessage);
  subscribe('redis-lock-registry:lost', note);
  await expect(lease.unlock()).rejects.toMatchObject({ name: 'LockLostError', reason: 'stolen' });
  unsubscribe('redis-lock-registry:lost', note);
  expect(messages).toMatchObject([{ reason: 'stolen', heldFor: 100 }]);
  expect([signal.aborted, warnings]).toEqual([true, []]);
  const other = await lock.lock();
  redis.evalSha.mockRejectedValueOnce(new Error('Socket closed unexpectedly')).mockResolvedValueOnce(stolen);
  const unlocked = other.unlock();
  await time.advance(1_000);
  await unlocked;
  expect(warnings).toMatchObject([{ code: 'RELEASE_UNCERTAIN', key: 'key' }]);
});

it('A lease that this process ends by force is lost at once', async () => {
  const lock = new InMemoryLockRegistry().obtain('key');
  const lease = await lock.lock();
  await lock.forceUnlock();
  await time.advance(1);
  expect(lease.signal.reason).toMatchObject({ name: 'LockLostError', reason: 'expired' });
});

it('A hold with less left than the next caller asked for is confirmed for that ttl first', async () => {
  const lock = createRegistry(redis).registry.obtain('key');
  const short = await lock.lock({ ttl: 1_000 });
  const next = lock.lock({ ttl: 60_000 });
  await short.unlock();
  expect((await next).remaining).toBeGreaterThan(59_000);
  expect(redis.sent).toBe(2);
});
