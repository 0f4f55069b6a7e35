import { EventEmitter } from 'node:events';
import { beforeEach, expect, it, jest } from '@jest/globals';
import type { AcquireMessage, HoldMessage, LockOptions, RedisLock, RedisLockRegistry } from '../../lib';
import { holdChannel } from '../../lib/api/diagnostics';
import { clock } from '../../lib/internal/clock';
import { FakeClock } from '../support/fake-clock';
import { lateReply, mockRedis, nextReply, refused, silence } from '../support/mock-redis';
import { published } from '../support/published';
import { createRegistry } from '../support/test-registry';

const time = FakeClock.install();
let redis: ReturnType<typeof mockRedis>;
let registry: RedisLockRegistry;
let lock: RedisLock;

beforeEach(() => {
  redis = mockRedis();
  registry = createRegistry(redis).registry;
  lock = registry.obtain('key');
});

const NOT_OWNER = { name: 'NotLockOwnerError', message: expect.stringContaining('here through lock() or tryLock()') };

/** The registry drops the lock from its cache. */
const evict = () => registry.expireUnusedOlderThan(-1);

it('run() and tryRun() say what they need, and what came of a lock that is taken', async () => {
  for (const call of [lock.run, lock.tryRun]) {
    await expect(call.call(lock, 'task' as never)).rejects.toThrow('Expected `task` to be');
  }
  await lock.run(async () => expect(await lock.tryRun(() => 'again')).toEqual({ ran: true, value: 'again' }));
  redis.evalSha.mockResolvedValue(refused(20_000));
  expect(await lock.tryRun(() => 'ran')).toEqual({ ran: false });
  const error = { name: 'LockTimeoutError' };
  expect(await time.settled(lock.run(() => 'ran', { waitTime: 20 }))).toMatchObject({ after: 20, error });
});

it('unlock() is refused where nothing was taken through lock() or tryLock()', async () => {
  await expect(lock.unlock()).rejects.toMatchObject(NOT_OWNER);
  evict();
  await expect(lock.unlock()).rejects.toMatchObject(NOT_OWNER);
  redis.evalSha.mockResolvedValue([1, 0, 2]);
  const semaphore = registry.semaphore('key', { permits: 2 });
  const end = lateReply();
  const running = [1, 2].map(() => semaphore.run(() => end.promise));
  await time.advance(1);
  await expect(semaphore.unlock()).rejects.toMatchObject(NOT_OWNER);
  end.resolve(undefined);
  await Promise.all(running);
});

it('unlock() of a lock that was evicted reports its losses first, and then ends what its replacement has', async () => {
  const task = async () => {
    const lost = await lock.lock();
    redis.evalSha.mockResolvedValueOnce(-1);
    await expect(lost.renew()).rejects.toMatchObject({ reason: 'stolen' });
    evict();
    const replacement = registry.obtain('key');
    expect(replacement).not.toBe(lock);
    const lease = await replacement.lock();
    await expect(lock.unlock()).rejects.toMatchObject({ name: 'LockLostError', reason: 'stolen' });
    expect(await lock.tryLock()).toBeNull();
    lease.assertHeld();
    await lock.unlock();
    expect(lease.remaining).toBe(0);
  };
  await task();
  evict();
  lock = registry.obtain('key');
  await registry.run('around', task);
});

it('A lock that was evicted says and does what its replacement does', async () => {
  evict();
  const replacement = registry.obtain('key');
  const lease = await replacement.lock();
  const { owner } = lease as unknown as { readonly owner: string };
  expect(lock.lastHolder?.owner).toBe(owner);
  expect([lock.isAcquiredInThisProcess, lock.isBusyHere, lock.cached()]).toEqual([true, true, replacement]);
  // What it finds, that it is unlocked, and that its holder, which asks at once, has it no more.
  redis.evalSha.mockResolvedValueOnce([owner, 1_000, '', -1]).mockResolvedValueOnce(1).mockResolvedValueOnce(0);
  await lock.forceUnlock();
  await time.advance(1);
  expect(lease.signal.reason).toMatchObject({ reason: 'expired' });
  await lock.run(() => expect(replacement.runs).toBe(1));
});

it('A lock that was evicted has another protocol when it is cached again, and knows no holder until then', async () => {
  const protocol = lock.passing.openProtocol();
  evict();
  expect(lock.lastHolder).toBeUndefined();
  lock.retire();
  await (await lock.lock()).unlock();
  expect(registry.obtain('key')).toBe(lock);
  expect(lock.passing.openProtocol()).not.toBe(protocol);
});

it('A lock that is not in use keeps who has it by the last answer, or whose loss is to be reported; and all else while few others are used', async () => {
  const useOthers = async () => {
    for (let i = 0; i < 128; i++) await (await registry.obtain(`other ${i}`).lock()).unlock();
  };
  const before = lock.passing;
  for (let i = 0; i < 200; i++) await (await lock.lock()).unlock();
  expect(lock.passing).toBe(before);
  await useOthers();
  const { passing } = lock;
  expect(passing).not.toBe(before);
  const lease = await lock.lock();
  await useOthers();
  expect(lock.passing).toBe(passing);
  await lease.unlock();
  redis.evalSha.mockResolvedValueOnce(refused(20_000, 'they'));
  expect(await lock.tryLock()).toBeNull();
  await useOthers();
  expect([lock.lastHolder?.owner, lock.passing, lock.isInUse]).toEqual(['they', passing, false]);
  const lost = await lock.lock();
  redis.evalSha.mockResolvedValueOnce(-1);
  await expect(lost.renew()).rejects.toMatchObject({ reason: 'stolen' });
  await useOthers();
  expect([lock.passing, lock.isInUse]).toEqual([passing, false]);
  await expect(lock.unlock()).rejects.toMatchObject({ reason: 'stolen' });
  await (await lock.lock()).unlock();
  await useOthers();
  expect(lock.passing).not.toBe(passing);
});

it('A lock is renewed by its key while this process holds it', async () => {
  // Nobody has asked for the other one.
  for (const key of ['key', 'other']) {
    await expect(registry.renewLock(key)).rejects.toThrow(`Lock "${key}" is not held in this process`);
  }
  expect(lock.heldFor).toBeUndefined();
  const lease = await lock.lock();
  await time.advance(10);
  expect(lock.heldFor).toBe(10);
  await registry.renewLock('key', 100_000);
  expect(lease.remaining).toBeGreaterThan(90_000);
});

it('A lock is not acquired here any more from the call of unlock() on', async () => {
  const lease = await lock.lock();
  redis.evalSha.mockImplementation(silence);
  const unlocking = lease.unlock();
  expect(lock.isAcquiredInThisProcess).toBe(false);
  redis.evalSha.mockResolvedValue(1);
  await time.advance(6_000);
  await unlocking;
});

it('A lock is busy here while a caller of its process has it or asks for it, but not in its own scope', async () => {
  expect(lock.isBusyHere).toBe(false);
  const attempt = nextReply(redis);
  const locking = lock.lock();
  expect(lock.isBusyHere).toBe(true);
  attempt.resolve(1);
  await (await locking).unlock();
  expect(lock.isBusyHere).toBe(false);
  const [one, other] = [registry.obtain('one'), registry.obtain('other')];
  await one.run(() => expect([one.isBusyHere, other.isBusyHere]).toEqual([false, false]));
});

it('A lease of a permit lasts for its own ttl, though its hold may last longer', async () => {
  redis.evalSha.mockResolvedValue([1, 0, 2]);
  const lease = await registry.semaphore('key', { permits: 2 }).lock({ ttl: 1_000 });
  expect(lease.remaining).toBeLessThanOrEqual(1_000);
  expect(lease.remaining).toBeGreaterThan(990);
});

it('What failed before a call is not its cause', async () => {
  const failure = async () => {
    const error = lock.lock({ waitTime: 100 }).catch((one: Error) => one.message);
    await time.advance(200);
    return error;
  };
  redis.evalSha.mockRejectedValue(new Error('CLUSTERDOWN The cluster is down'));
  expect(await failure()).toContain('CLUSTERDOWN');
  redis.evalSha.mockImplementation(silence);
  expect(await failure()).toContain('Redis has not answered for');
});

/** A lease whose unlock a caller waits for, `ms` after it was confirmed. */
async function waitedFor(ms: number, options: LockOptions = {}, next: LockOptions = {}) {
  const lease = await lock.lock(options);
  const waiting = lock.lock(next);
  waiting.catch(() => undefined);
  await time.advance(ms);
  return { lease, waiting, sent: redis.sent };
}

it.each([
  [10, 'passed on'],
  [60, 'confirmed'],
])('A hold that was confirmed %d ms ago is %s', async (ms, how) => {
  const messages = await published<AcquireMessage>('acquire', async () => {
    const { lease, waiting, sent } = await waitedFor(ms);
    await lease.unlock();
    (await waiting).assertHeld();
    expect(redis.sent - sent).toBe(how === 'confirmed' ? 1 : 0);
    // A script that confirms the hold has its owner and ttl only.
    if (how === 'confirmed') expect(redis.calls.at(-1)?.arguments).toHaveLength(2);
  });
  expect(messages.map(({ isHandedOver }) => isHandedOver)).toEqual([false, true]);
});

it('A fixed lease that began after a turn of the event loop ends at its deadline', async () => {
  const { lease, waiting } = await waitedFor(60, { ttl: 1_000 }, { ttl: 1_000 });
  const [other, last] = [await registry.obtain('other').lock(), lock.lock({ ttl: 1_000 })];
  const next = registry.obtain('other').lock();
  await lease.unlock();
  const second = await waiting;
  await time.advance(10);
  void other.unlock();
  time.now += 6;
  const { sent } = redis;
  await second.unlock();
  const third = await last;
  expect(redis.sent).toBe(sent);
  await time.advance(990);
  expect(third.signal.aborted).toBe(false);
  await time.advance(20);
  expect(third.signal.reason).toMatchObject({ reason: 'expired' });
  await next;
});

it('A fixed lease for which its hold was confirmed ends at its deadline', async () => {
  const { lease, waiting } = await waitedFor(60, { ttl: 1_000 }, { ttl: 1_000 });
  await lease.unlock();
  const { signal } = await waiting;
  await time.advance(1_000);
  expect(signal.reason).toMatchObject({ reason: 'expired' });
});

it.each([10, 60])('A hold is not passed on %d ms after its confirmation before its minHold ends', async (ms) => {
  const { lease, waiting, sent } = await waitedFor(ms, { minHold: 1_000 });
  redis.evalSha.mockResolvedValueOnce(1).mockResolvedValue(refused(20_000));
  await lease.unlock();
  const [release] = redis.calls.slice(sent);
  expect(release?.arguments).toEqual(expect.arrayContaining(['1000', String(1_000 - ms)]));
  expect(await Promise.race([waiting, 'waits'])).toBe('waits');
});

it.each([10, 60])('A hold is not passed on %d ms after its confirmation while its lease runs a script', async (ms) => {
  const { lease, waiting } = await waitedFor(ms);
  const { length } = redis.calls;
  redis.evalSha.mockImplementationOnce(silence);
  void lease.eval('return 1').catch(() => undefined);
  await time.advance(0);
  await lease.unlock();
  expect(redis.calls[length + 1]?.arguments).toContain('UNLINK');
  (await waiting).assertHeld();
});

it.each<[string, LockOptions, boolean]>([
  ['its caller has left', {}, true],
  ['the next one needs more', { ttl: 200_000 }, false],
])('A hold that was confirmed is released where %s', async (_, next, isAborted) => {
  const stop = new AbortController();
  const { lease } = await waitedFor(60, {}, { signal: stop.signal });
  const second = isAborted ? undefined : lock.lock(next);
  const confirmed = nextReply(redis);
  const unlocking = lease.unlock();
  await time.advance(1);
  const { sent } = redis;
  stop.abort();
  await time.advance(1);
  confirmed.resolve(1);
  await unlocking;
  expect(redis.calls[sent]?.arguments).toContain('UNLINK');
  await second;
});

it.each([
  ['refused', new Error('NOPERM no'), 2],
  ['lost', new Error('Socket closed unexpectedly'), 2],
])('A hold whose confirmation was %s is released', async (_, error, commands) => {
  const { lease, waiting, sent } = await waitedFor(60);
  redis.evalSha.mockRejectedValueOnce(error);
  const unlocking = lease.unlock();
  await time.advance(100);
  await unlocking;
  expect(redis.calls[sent + 1]?.arguments).toContain('UNLINK');
  expect(redis.sent).toBeGreaterThanOrEqual(sent + commands);
  (await waiting).assertHeld();
});

it('A hold whose confirmation is not answered is released in the other half of the time', async () => {
  const { lease, sent } = await waitedFor(60);
  redis.evalSha.mockImplementation(silence);
  const unlocking = expect(lease.unlock()).rejects.toMatchObject({ name: 'LockReleaseError' });
  await time.advance(2_400);
  expect(redis.sent).toBe(sent + 1);
  await time.advance(200);
  expect(redis.sent).toBe(sent + 2);
  await time.advance(2_500);
  await unlocking;
});

it.each([
  ['passed on', 0],
  ['released where it is not fresh any more', 60],
])('After a turn of the event loop a hold is %s', async (how, ms) => {
  const other = registry.obtain('other');
  const [lease, before] = [await other.lock(), await lock.lock()];
  const [next, waiting] = [other.lock(), lock.lock()];
  await time.advance(1);
  void lease.unlock();
  time.now += 6;
  void before.unlock();
  const { sent } = redis;
  time.now += ms;
  await time.advance(1);
  if (how === 'passed on') expect(redis.sent).toBe(sent);
  else expect(redis.calls[sent]?.arguments).toContain('UNLINK');
  await next;
  (await waiting).assertHeld();
});

it('A hold is released where the client was connected again in the turn of the event loop (P6)', async () => {
  const client = Object.assign(new EventEmitter(), { eval: redis.eval, evalSha: redis.evalSha });
  const same = createRegistry(client).registry;
  const [key, other] = [same.obtain('key'), same.obtain('other')];
  const [lease, before] = [await key.lock(), await other.lock()];
  const [waiting, next] = [key.lock(), other.lock()];
  await time.advance(1);
  void before.unlock();
  time.now += 6;
  const { sent } = redis;
  const unlocked = lease.unlock();
  client.emit('ready');
  await Promise.all([unlocked, waiting, next]);
  expect(redis.calls.slice(sent).map((call) => call?.arguments?.[1])).toEqual(['UNLINK', '60000']);
});

it('A hold goes on after a turn of the event loop, however long its confirmation took', async () => {
  const other = registry.obtain('other');
  const { lease, waiting } = await waitedFor(60);
  const confirmation = nextReply(redis);
  const unlocked = lease.unlock();
  await time.advance(60);
  const before = await other.lock();
  const next = other.lock();
  await time.advance(1);
  void before.unlock();
  time.now += 6;
  const { sent } = redis;
  confirmation.resolve(1);
  await time.advance(1);
  await Promise.all([unlocked, next, waiting]);
  expect(redis.sent).toBe(sent);
});

it('After a turn of the event loop, holds are passed on at once again', async () => {
  const immediate = jest.spyOn(clock, 'immediate');
  for (let i = 0; i < 3; i++) {
    const [lease, ...others] = [await lock.lock(), lock.lock(), lock.lock()];
    await lease.unlock();
    for (const next of others) await (await next).unlock();
    await time.advance(20);
  }
  // One for each turn in which holds were passed on, and none for a hold.
  expect(immediate).toHaveBeenCalledTimes(3);
});

it('A hold that goes on after a turn of the event loop is given back before close resolves', async () => {
  const immediates: (() => void)[] = [];
  clock.immediate = () => new Promise((resolve) => immediates.push(resolve));
  // A turn of the event loop in which a hold is passed on, and which lasts for 60 ms.
  const [before, lease] = [await lock.lock(), await registry.obtain('other').lock()];
  const next = lock.lock();
  await before.unlock();
  await (await next).unlock();
  await time.advance(60);
  const waiting = registry.obtain('other').lock();
  await time.advance(0);
  // The hold was not confirmed for longer than 50 ms: Redis is asked, and says that it is held.
  const unlocked = lease.unlock();
  await time.advance(0);
  const rejected = expect(waiting).rejects.toThrow('closed');
  const answer = nextReply(redis);
  let isClosed = false;
  const closing = registry.close({ timeout: 100 }).then(() => (isClosed = true));
  await rejected;
  for (const resolve of immediates.splice(0)) resolve();
  await time.advance(10);
  expect(isClosed).toBe(false);
  answer.resolve(0);
  await closing;
  // Its last holder learns what became of it.
  await expect(unlocked).rejects.toMatchObject({ name: 'LockLostError', reason: 'expired' });
});

it.each(['leaves', 'has the lock, and unlocks it'])(
  'A lease that ends with the next attempt, which fails, is released before close resolves, though the next caller %s',
  async (how) => {
    const { registry: fair } = createRegistry(redis, { lockType: 'fair' });
    const lease = await fair.obtain('key').lock();
    const stop = new AbortController();
    const next = fair.obtain('key').lock({ signal: stop.signal });
    const ended = next.then(
      (other) => other.unlock(),
      () => undefined,
    );
    await time.advance(0);
    redis.evalSha.mockRejectedValueOnce(new Error('LOADING Redis is loading the dataset in memory'));
    const release = nextReply(redis);
    const unlocked = lease.unlock();
    await time.advance(0);
    if (how === 'leaves') stop.abort('left');
    await time.advance(20);
    await ended;
    let isClosed = false;
    const closing = fair.close().then(() => (isClosed = true));
    await time.advance(400);
    expect([isClosed, redis.sent > 3]).toEqual([false, true]);
    release.resolve(1);
    await Promise.all([unlocked, closing]);
  },
);

it('A hold that goes on after a turn of the event loop is not lost by what was answered to its last holder', async () => {
  registry = createRegistry(redis, { handOver: 60_000 }).registry;
  const [other, { immediate }] = [registry.obtain('other'), clock];
  const lease = await other.lock({ ttl: 60_000, renew: true });
  const renewal = lateReply();
  await time.advance(19_000);
  redis.evalSha.mockReturnValueOnce(renewal.promise);
  await time.advance(1_000);
  const resumes: (() => void)[] = [];
  clock.immediate = () => new Promise((resolve) => resumes.push(resolve));
  const before = await registry.obtain('key').lock();
  const [first, waiting] = [registry.obtain('key').lock(), other.lock()];
  await before.unlock();
  await time.advance(10);
  await lease.renew();
  const unlocked = lease.unlock();
  renewal.resolve(0);
  await time.advance(1);
  clock.immediate = immediate;
  for (const resume of resumes.splice(0)) resume();
  await unlocked;
  expect(await time.settled(waiting)).toMatchObject({ value: { key: 'other' } });
  (await first).assertHeld();
});

it('A hold goes from caller to caller without a command, and is kept for the minHold of the last one', async () => {
  const { lease, waiting, sent } = await waitedFor(10);
  const third = lock.lock({ minHold: 1_000 });
  await lease.unlock();
  await (await waiting).unlock();
  const last = await third;
  expect(redis.sent).toBe(sent);
  await last.unlock();
  expect(redis.calls[sent]?.arguments).toContain('1000');
});

it.each([
  ['released for others', 1],
  ['lost', 0],
])('A hold that Redis says was %s, in place of a confirmation, goes to nobody', async (how, found) => {
  const { lease, waiting, sent } = await waitedFor(60);
  redis.evalSha.mockResolvedValueOnce([found, 0]);
  const unlocked = lease.unlock();
  if (how === 'lost') await expect(unlocked).rejects.toMatchObject({ name: 'LockLostError', reason: 'expired' });
  else await unlocked;
  await time.advance(100);
  (await waiting).assertHeld();
  expect(redis.sent).toBe(sent + 2);
});

it('A hold that is confirmed for the next caller while the machine is suspended is released (P12)', async () => {
  const { lease, waiting } = await waitedFor(60);
  const answer = nextReply(redis);
  const unlocked = lease.unlock();
  await time.advance(1);
  time.wallNow += 60_000;
  answer.resolve(1);
  await unlocked;
  (await waiting).assertHeld();
  expect(redis.calls.at(-2)?.arguments).toContain('UNLINK');
});

it('A hold of redisson-fair is released for the next caller', async () => {
  lock = createRegistry(redis, { lockType: 'redisson-fair' }).registry.obtain('key');
  const { lease, waiting, sent } = await waitedFor(10);
  await lease.unlock();
  (await waiting).assertHeld();
  expect(redis.sent).toBe(sent + 2);
});

it('A section is published of a lock that is taken, and not once more where it is taken inside', async () => {
  const started: unknown[] = [];
  const note = (message: unknown) => started.push(message);
  holdChannel.start.subscribe(note);
  await (await lock.lock()).unlock();
  await lock.run(async () => (await lock.lock()).unlock());
  holdChannel.start.unsubscribe(note);
  expect(started).toMatchObject([{ isReentry: false }, { isReentry: false }]);
});

it('A section ends once, though a subscriber to its start, or to its end, unlocks the lease', async () => {
  const unlock = (message: unknown) => void (message as HoldMessage).leases[0]?.unlock();
  for (const event of [holdChannel.start, holdChannel.asyncEnd]) {
    event.subscribe(unlock);
    const ended = await published('hold', async () => (await lock.lock()).unlock());
    event.unsubscribe(unlock);
    expect(ended).toMatchObject([{ outcome: 'ended' }]);
  }
});

it('A call whose signal has aborted sends nothing', async () => {
  const reason = new Error('stop');
  await expect(lock.lock({ signal: AbortSignal.abort(reason) })).rejects.toBe(reason);
  expect(redis.sent).toBe(0);
});
