import { beforeEach, expect, it } from '@jest/globals';
import type {
  AcquireMessage,
  DistributedLock,
  Lease,
  LockOptions,
  RedisLock,
  RedisLockRegistry,
  ReleaseMessage,
} from '../../lib';
import type { RedisLease } from '../../lib/core/lease';
import { FakeClock } from '../support/fake-clock';
import { lateReply, mockRedis, sharedGranted, sharedRefused, sharedReleased } from '../support/mock-redis';
import { published } from '../support/published';
import { createRegistry } from '../support/test-registry';

const time = FakeClock.install();
let redis: ReturnType<typeof mockRedis>;
let registry: RedisLockRegistry;
const REFUSED = new Array(9).fill(sharedRefused(60_000, 2));
/** The replies to the next attempts; after them every one is granted. */
let answers: unknown[];

const open = (options: object = {}) => {
  registry = createRegistry(redis, { registryKey: 'r', ...options }).registry;
};

beforeEach(() => {
  redis = Object.assign(mockRedis(), { socketEpoch: 1 });
  answers = [];
  redis.evalSha.mockImplementation(async (_, call) => {
    if (isAttempt(call)) return answers.shift() ?? sharedGranted;
    return call?.arguments?.length === 0 ? 1 : sharedReleased;
  });
  open();
});

type Call = ReturnType<typeof mockRedis>['calls'][number];
const isAttempt = (call: Call) => (call?.arguments?.length ?? 0) > 6;
/** What was sent: the owner of each attempt, and of each release with a `-`. */
const sent = () => redis.calls.map((call) => `${isAttempt(call) ? '' : '-'}${call?.arguments?.[1]}`);

const inside = (lock: DistributedLock) => lock as RedisLock;
const holdOf = (lease: Lease) => (lease as RedisLease).hold;
const semaphoreOf = (permits = 2) => registry.semaphore('key', { permits });

it('A semaphore has several leases, is in use until the last of them is over, and while a task runs', async () => {
  const semaphore = inside(semaphoreOf());
  expect([semaphore.isInUse, semaphore.passing.leases, semaphore.passing.isShared]).toEqual([false, [], true]);
  await semaphore.passing.free();
  const leases = [await semaphore.lock(), await semaphore.lock()] as const;
  expect(semaphore.passing.leases).toEqual(leases);
  let isFree = false;
  void semaphore.passing.free().then(() => (isFree = true));
  for (const lease of leases) {
    await time.advance(0);
    expect([semaphore.isInUse, isFree]).toEqual([true, false]);
    await lease.unlock();
  }
  await time.advance(0);
  expect([semaphore.isInUse, isFree, semaphore.passing.leases]).toEqual([false, true, []]);
  await semaphore.run(async (lease) => {
    await lease.unlock();
    expect(semaphore.isInUse).toBe(true);
  });
});

it('A semaphore has the number of permits that was given last, also for a caller with an object that was evicted', async () => {
  const semaphore = semaphoreOf(2);
  expect(semaphoreOf(3)).toBe(semaphore);
  await (await semaphore.lock({ permits: 3 })).unlock();
  expect(redis.calls[0]?.arguments?.[4]).toBe('3');
  await expect(semaphore.lock({ permits: 4 })).rejects.toThrow('`permits`');
  registry.expireUnusedOlderThan(-1);
  const cached = semaphoreOf(9);
  expect(cached).not.toBe(semaphore);
  answers = [[0, 0, 9]];
  expect(((await semaphore.lock({ permits: 8 })) as RedisLease).permits).toBe(8);
  expect([inside(cached).passing.leases.length, inside(semaphore).passing.leases.length]).toEqual([1, 0]);
});

it.each<[string, LockOptions, passedOn: boolean]>([
  ['at once', {}, true],
  ['not before its minHold ends', { minHold: 5_000 }, false],
])('A caller that waits in Redis gets the permit of a lease that ends: %s', async (_, options, passedOn) => {
  const semaphore = semaphoreOf();
  const first = await semaphore.lock(options);
  answers = REFUSED.slice();
  const waiting = semaphore.lock();
  waiting.catch(() => undefined);
  await time.advance(1);
  const before = sent();
  await first.unlock();
  // Where the hold goes on, what the caller had sent is given back.
  expect(sent()).toEqual([...before, `-${passedOn ? before.at(-1) : before[0]}`]);
  if (!passedOn) return;
  const lease = await waiting;
  expect(holdOf(lease)).toBe(holdOf(first));
  expect(inside(semaphore).passing.leases).toEqual([lease]);
});

it('A permit of this process ends by the next attempt of its caller that waits, once its slice is over', async () => {
  const semaphore = semaphoreOf();
  const first = await semaphore.lock();
  answers = REFUSED.slice();
  const waiting = semaphore.lock();
  await time.advance(51);
  const { length } = redis.calls;
  answers = [[1, 0, 2]];
  await first.unlock();
  (await waiting).assertHeld();
  expect(redis.calls.slice(length).map((call) => call?.arguments?.at(-1))).toEqual([(first as RedisLease).owner]);
});

it.each([
  ['goes to the next caller', [1, 0, 2], true],
  ['goes to another process', [1, 0, 0, 60_000, 'another:1', '1700000000000000', 2, '1700000020000'], false],
  ['goes to a caller that has left', [1, 0, 2], false],
])('The end of a lease that %s is published so, with both of them', async (to, answer, isHandedOver) => {
  const semaphore = semaphoreOf();
  const leaving = new AbortController();
  const all = published<ReleaseMessage>('release', async () => {
    const calls = await published<AcquireMessage>('acquire', async () => {
      const first = await semaphore.lock();
      answers = REFUSED.slice();
      const waiting = semaphore.lock({ waitTime: 100, signal: leaving.signal }).catch(() => undefined);
      await time.advance(51);
      answers = [answer, ...REFUSED];
      const unlocked = first.unlock();
      if (to.endsWith('left')) leaving.abort();
      await unlocked;
      await time.advance(100);
      await waiting;
    });
    expect(calls.map((message) => message.isHandedOver)).toEqual([false, isHandedOver]);
  });
  expect(await all).toMatchObject([{ isHandedOver }]);
});

it('A permit goes from caller to caller, each of which waits in Redis in its turn', async () => {
  const semaphore = semaphoreOf();
  const first = await semaphore.lock();
  answers = REFUSED.slice();
  const [second, third] = [semaphore.lock(), semaphore.lock()];
  await time.advance(1);
  await first.unlock();
  const next = await second;
  await time.advance(1);
  await next.unlock();
  expect(holdOf(await third)).toBe(holdOf(first));
});

it('A caller that does not wait is refused without a command only while one of its process waits that was refused', async () => {
  const semaphore = semaphoreOf();
  const attempt = lateReply();
  answers = [attempt.promise];
  const stop = new AbortController();
  const waiting = semaphore.lock({ signal: stop.signal });
  waiting.catch(() => undefined);
  await time.advance(1);
  expect(inside(semaphore).passing.isWaiterRefused).toBe(false);
  answers = REFUSED.slice();
  attempt.resolve(answers[0]);
  await time.advance(1);
  expect(inside(semaphore).passing.isWaiterRefused).toBe(true);
  const { sent: before } = redis;
  expect([await semaphore.tryLock(), redis.sent]).toEqual([null, before]);
  stop.abort(new Error('enough'));
  await time.advance(1);
  expect(inside(semaphore).passing.isWaiterRefused).toBe(false);
});

it('A caller that does not wait asks Redis where one of its process was refused, and is not answered since', async () => {
  const semaphore = semaphoreOf();
  answers = [REFUSED[0], new Promise(() => {})];
  semaphore.lock().catch(() => undefined);
  await time.advance(400);
  const { sent: before } = redis;
  await semaphore.tryLock();
  expect(redis.sent).toBe(before + 1);
});

const reader = () => registry.readWrite('key').read;

it.each<[string, reply: number, ms: number, LockOptions, joins: boolean]>([
  ['at once', 1, 0, {}, true],
  ['within a moment', 1, 50, {}, true],
  ['not later', 1, 51, {}, false],
  ['not while a writer waits', 2, 0, {}, false],
  ['not with a longer ttl', 1, 0, { ttl: 200_000, renew: true }, false],
])('A reader enters beside another one of its process without a command: %s', async (_, reply, ms, options, joins) => {
  const read = reader();
  answers = [[0, 0, reply]];
  const first = await read.lock();
  time.now += ms;
  // One that does not wait does not stand back for the writer.
  const second = (await read.tryLock(options)) as Lease;
  expect(redis.calls).toHaveLength(joins ? 1 : 2);
  expect(holdOf(second) === holdOf(first)).toBe(joins);
  expect(inside(read).passing.leases).toEqual([first, second]);
  for (const lease of [second, first]) await lease.unlock();
  expect(redis.calls).toHaveLength(joins ? 2 : 4);
});

it('A reader does not enter beside others of its process that have left', async () => {
  const read = reader();
  await (await read.lock()).unlock();
  await read.lock();
  expect(redis.calls).toHaveLength(3);
});

it('A reader asks Redis where others of its process have entered for 5 ms, and the event loop had no turn', async () => {
  const read = reader();
  await read.lock();
  const entering = [read.lock()];
  time.now += 4;
  entering.push(read.lock());
  time.now += 1;
  entering.push(read.lock());
  await Promise.all(entering);
  expect(redis.calls).toHaveLength(2);
});

it('A reader does not enter before those of its process that wait', async () => {
  const read = reader();
  const first = await read.lock();
  const attempt = lateReply();
  answers = [attempt.promise];
  const long = { ttl: 200_000, renew: true };
  const waiting = [read.lock(long), read.lock(long), read.lock()];
  await time.advance(1);
  expect(redis.calls).toHaveLength(2);
  attempt.resolve(sharedGranted);
  const [second, third, last] = await Promise.all(waiting);
  expect([second, third, last].map((lease) => holdOf(lease as Lease) === holdOf(first))).toEqual([false, false, false]);
  expect(redis.calls).toHaveLength(2);
});

it.each([1, 60])('Readers that wait enter together after %i ms, up to the first that asks for more', async (ms) => {
  const read = reader();
  const more = { ttl: 200_000, renew: true };
  const attempt = lateReply();
  answers = [attempt.promise];
  const waiting = [read.lock(), read.lock({ ttl: 100 }), read.lock(), read.lock(more), read.lock()];
  await time.advance(ms);
  expect(redis.calls).toHaveLength(1);
  attempt.resolve(sharedGranted);
  const holds = (await Promise.all(waiting)).map(holdOf);
  expect(holds.map((hold) => holds.indexOf(hold))).toEqual([0, 0, 0, 3, 3]);
});

/** Readers that are in together. */
const together = (...options: LockOptions[]) => Promise.all(options.map((one) => reader().lock(one)));

it('Readers that are in together leave one by one, and the last one gives the hold back', async () => {
  const leases = await together({}, {}, {});
  const owner = sent()[0];
  for (const lease of leases.slice(1)) await lease.unlock();
  expect([redis.calls.length, inside(reader()).passing.leases]).toEqual([1, leases.slice(0, 1)]);
  leases[0]?.assertHeld();
  await leases[0]?.unlock();
  expect(sent()).toEqual([owner, `-${owner}`]);
});

it('Readers that are in together have a hold that is as they need it', async () => {
  const [one, other] = (await together({ ttl: 9_000, renew: true }, { ttl: 100, renew: false })) as [Lease, Lease];
  const group = holdOf(one).lease;
  const { endsAt = Number.NaN } = other as RedisLease;
  expect(group).toMatchObject({ ttl: 9_000, endsAt, renewUntil: Number.POSITIVE_INFINITY });
  expect(endsAt).toBeLessThan(time.now + 100);
  expect(group?.endSome?.(endsAt - 1)).toBe(true);
  expect(new Set(inside(reader()).passing.leases)).toEqual(new Set([one, other]));
  expect(group?.endSome?.(endsAt)).toBe(true);
  expect(other.signal.reason).toMatchObject({ reason: 'expired' });
  expect([group?.endsAt, one.signal.aborted]).toEqual([Number.POSITIVE_INFINITY, false]);
  Object.assign(one, { endsAt: time.now });
  expect(group?.endSome?.(time.now)).toBe(false);
});

it('Readers that are in together are renewed for the one that needs it longest, and lost together', async () => {
  open({ maxHold: 30_000 });
  const [one, other] = (await together({ renew: true }, { renew: false })) as [RedisLease, RedisLease];
  const group = holdOf(one).lease;
  expect([group?.renewUntil, other.renewUntil]).toEqual([time.now + 30_000, time.now]);
  const renewed: string[] = [];
  one.renewed = () => void renewed.push('one');
  other.renewed = () => void renewed.push('other');
  group?.renewed();
  expect(renewed).toEqual(['one', 'other']);
  holdOf(one).lose('stolen');
  for (const { signal } of [one, other]) expect(signal.reason).toMatchObject({ reason: 'stolen' });
});

it('A reader of a short ttl enters beside a renewed one without a command, and their hold is renewed when it is due', async () => {
  const [, short] = (await together({}, { ttl: 1_000 })) as [Lease, Lease];
  await time.advance(19_999);
  expect([short.signal.aborted, redis.calls.length]).toEqual([true, 1]);
  await time.advance(2);
  expect(redis.calls).toHaveLength(2);
});

it('A reader with a shorter ttl that is renewed learns of a loss within a third of it, beside one with a longer ttl', async () => {
  const [, short] = (await together({}, { ttl: 3_000, renew: true })) as [Lease, Lease];
  redis.evalSha.mockResolvedValue(1);
  await time.advance(1_001);
  expect(redis.calls.map((call) => call?.arguments?.[2])).toEqual([expect.any(String), '60000']);
  redis.evalSha.mockResolvedValue(0);
  await time.advance(1_001);
  expect(short.signal.reason).toMatchObject({ reason: 'expired' });
});

it('A reader with a longer ttl is renewed at each third of it again when one with a shorter ttl has left', async () => {
  const [long, short] = (await together({}, { ttl: 3_000, renew: true })) as [Lease, Lease];
  redis.evalSha.mockResolvedValue(1);
  await time.advance(500);
  await short.unlock();
  await time.advance(20_000);
  expect(redis.calls).toHaveLength(2);
  long.assertHeld();
});

it('A reader is renewed for its own ttl when one with a longer ttl, which was in with it, has left', async () => {
  const [long] = (await together({}, { ttl: 3_000, renew: true })) as [Lease, Lease];
  redis.evalSha.mockResolvedValue(1);
  await long.unlock();
  await time.advance(1_001);
  expect(redis.calls.at(-1)?.arguments?.[2]).toBe('3000');
});

it('A reader is renewed for its own ttl beside one with a longer ttl that is fixed', async () => {
  const [fixed] = (await together({ ttl: 600_000 }, {})) as [Lease, Lease];
  redis.evalSha.mockResolvedValue(1);
  await time.advance(20_001);
  expect(redis.calls.at(-1)?.arguments?.[2]).toBe('60000');
  fixed.assertHeld();
});

it('A reader ends with its ttl after `maxHold`, though another one that is in with it made their hold longer', async () => {
  open({ maxHold: 30_000 });
  const [one, other] = (await together({}, {})) as [Lease, Lease];
  redis.evalSha.mockResolvedValue(1);
  await other.renew(600_000);
  await time.advance(90_000);
  expect([one, other].map(({ signal }) => signal.reason?.reason)).toEqual(['expired', undefined]);
});

it.each<[string, LockOptions, lost: number]>([
  ['their hold', { renew: true }, 4],
  ['their own ttl', { ttl: 1_000 }, 3],
])(
  'Readers that are in together have all lost %s when the first of them hears of it, and may be unlocked there (P4)',
  async (_, options, lost) => {
    const leases = await together(options, options, options, { renew: true });
    const [first, ...others] = leases.slice(0, lost) as [Lease, ...Lease[]];
    const heard: unknown[] = [];
    first.signal.addEventListener('abort', () => {
      for (const lease of others)
        heard.push(
          lease.remaining,
          lease.unlock().catch(({ code }) => code),
        );
    });
    if (lost === 4) redis.evalSha.mockResolvedValueOnce(0);
    await (lost === 4 ? first.renew().catch(() => undefined) : time.advance(1_000));
    expect(await Promise.all(heard)).toEqual(others.flatMap(() => [0, 'ERR_LOCK_LOST']));
    expect(leases.map(({ signal }) => signal.aborted)).toEqual([true, true, true, lost === 4]);
  },
);

it('A writer and its caller that reads inside: without a command. Outside, and with another key, they are apart', async () => {
  const { read, write } = registry.readWrite('key');
  const other = registry.readWrite('other');
  await write.run(async (writer) => {
    await read.run((lease) => expect([lease.key, redis.calls.length]).toEqual(['key', 1]));
    await other.read.run(() => write.run(() => writer.assertHeld()));
  });
  await read.run(() => other.write.run(() => expect(redis.calls).toHaveLength(6)));
  await read.run(async () => {
    const why =
      'a writer waits for all readers, so it would wait for itself. Take it for writing first, and read inside';
    const message = `Lock "key" could not be acquired for writing inside its own read scope: ${why}`;
    await expect(write.lock()).rejects.toMatchObject({ name: 'CannotAcquireLockError', key: 'key', message });
    await read.run(() => undefined);
  });
  await write.run(() => undefined);
});

it.each([
  [{}, 'exchanged'],
  [{ minHold: 5_000 }, 'kept'],
])('A writer that leaves with %j while another one of its process waits: the lock is %s', async (options, how) => {
  const { write } = registry.readWrite('key');
  const first = await write.lock(options);
  const next = write.lock();
  await time.advance(1);
  const { length } = redis.calls;
  answers = [[1, 0, 1]];
  await first.unlock();
  const [call] = redis.calls.slice(length);
  expect(call?.arguments).toHaveLength(how === 'kept' ? 6 : 14);
  (await next).assertHeld();
});

it('What asks for a lock says of which kind it is, and no lock has an empty key', async () => {
  const { read, write } = registry.readWrite('key');
  for (const lock of [semaphoreOf(), read, write]) await (await lock.lock()).unlock();
  const kinds = redis.calls.map((call) => call?.arguments?.[0]);
  expect(kinds).toEqual(['semaphore', 'semaphore', 'read', 'read', 'write', 'write']);
  expect(() => registry.semaphore('', { permits: 1 })).toThrow('`key`');
  expect(() => registry.readWrite('')).toThrow('`key`');
});

it('The locks of each kind are counted, used and evicted with those of a registry', async () => {
  const semaphore = semaphoreOf();
  const pair = registry.readWrite('key');
  registry.obtain('key');
  expect(registry.size).toBe(4);
  expect(registry.readWrite('key')).toBe(pair);
  expect(pair).toEqual({ key: 'key', read: pair.read, write: pair.write });
  const lease = await pair.read.lock();
  registry.expireUnusedOlderThan(-1);
  expect(registry.size).toBe(1);
  const again = registry.readWrite('key');
  expect([again === pair, again.read === pair.read, again.write === pair.write]).toEqual([false, true, false]);
  expect(registry.readWrite('key')).toBe(again);
  await lease.unlock();
  registry.expireUnusedOlderThan(0);
  expect(registry.size).toBe(2);
  expect(semaphoreOf()).not.toBe(semaphore);
});

it('A semaphore that was asked for again stays in a full cache, which drops another one', () => {
  open({ cacheCapacity: 2 });
  const [a] = ['a', 'b', 'a', 'c'].map((key) => registry.semaphore(key, { permits: 1 }));
  expect(registry.semaphore('a', { permits: 1 })).toBe(a);
});

it('A full cache of one kind names itself, and leaves the other kinds alone', async () => {
  open({ cacheCapacity: 1 });
  await semaphoreOf().lock();
  expect(() => registry.semaphore('other', { permits: 1 })).toThrow('all 1 locks of registry "r"');
  expect(registry.readWrite('other').read).toBe(registry.readWrite('other').read);
});

it('The semaphores of a registry that is closed are waited for', async () => {
  const lease = await semaphoreOf().lock();
  let isClosed = false;
  const closing = registry.close({ timeout: 10_000 }).then(() => (isClosed = true));
  await time.advance(100);
  expect(isClosed).toBe(false);
  await lease.unlock();
  await closing;
});

it('close() counts no permit as given up that a listener to the loss of another one has unlocked', async () => {
  const { registry, warnings } = createRegistry(redis, {});
  const semaphore = registry.semaphore('key', { permits: 2 });
  const [first, second] = await Promise.all([semaphore.lock(), semaphore.lock()]);
  first.signal.addEventListener('abort', () => void second.unlock());
  await registry.close({ timeout: 0 });
  expect(second.signal.aborted).toBe(false);
  expect(warnings).toMatchObject([{ message: expect.stringContaining('gave up a lease') }]);
});

it('What is not a semaphore in Redis is explained, and its script and inspection are of its kind', async () => {
  const lease = await semaphoreOf().lock();
  redis.evalSha.mockResolvedValueOnce(['me:1', 9, '', 0, 2, 'semaphore:me:1']);
  expect(await semaphoreOf().inspect()).toMatchObject({ held: true, holders: 2 });
  redis.evalSha.mockRejectedValueOnce(new Error('NOSCRIPT No matching script.'));
  await lease.eval('return 7');
  expect(redis.eval.mock.calls[0]?.[0]).toContain("'semaphore:' .. owner");
  redis.evalSha.mockImplementation(async (_, call) => {
    if (isAttempt(call)) throw new Error('WRONGTYPE Operation against a key');
    return 'stream';
  });
  const why = 'It is a key of type stream in Redis, and it is used as a semaphore here';
  await expect(registry.semaphore('other', { permits: 1 }).lock()).rejects.toThrow(why);
});
