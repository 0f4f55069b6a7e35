import { beforeEach, expect, it } from '@jest/globals';
import type { RedisLock, RedisLockRegistry } from '../../lib';
import { FakeClock } from '../support/fake-clock';
import { lateReply, mockRedis, refused, silence } from '../support/mock-redis';
import { createRegistry, lossOf } from '../support/test-registry';

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
  const running = expect(lock.run(() => 'ran', { waitTime: 20 })).rejects.toMatchObject({ name: 'LockTimeoutError' });
  await time.advance(20);
  await running;
});

it('A nested tryRun() that was not awaited is waited for', async () => {
  const nested = lateReply();
  let isOver = false;
  const running = lock.run(() => void lock.tryRun(() => nested.promise)).then(() => (isOver = true));
  await time.advance(1);
  expect(isOver).toBe(false);
  nested.resolve(undefined);
  await running;
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
  const lost = await lock.lock();
  redis.evalSha.mockResolvedValueOnce(-1);
  await expect(lost.renew()).rejects.toMatchObject({ reason: 'stolen' });
  evict();
  const replacement = registry.obtain('key');
  expect(replacement).not.toBe(lock);
  const lease = await replacement.lock();
  await expect(lock.unlock()).rejects.toMatchObject({ name: 'LockLostError', reason: 'stolen' });
  lease.assertHeld();
  await lock.unlock();
  expect(lease.remaining).toBe(0);
});

it('A lock that was evicted has another protocol when it is cached again, and knows no holder until then', async () => {
  const protocol = lock.openProtocol();
  evict();
  expect(lock.lastHolder).toBeUndefined();
  lock.retireProtocol();
  await (await lock.lock()).unlock();
  expect(registry.obtain('key')).toBe(lock);
  expect(lock.openProtocol()).not.toBe(protocol);
});

it('A lock is renewed by its key while this process holds it', async () => {
  await expect(registry.renewLock('key')).rejects.toThrow('in this process');
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

it('A lease that close() gives up is lost by that', async () => {
  const lease = await lock.lock();
  const loss = lossOf(lease);
  await registry.close({ timeout: 0 });
  expect((await loss).reason).toBe('closed');
});

it('A lock is busy here while a caller of its process has it or asks for it, but not in its own scope', async () => {
  expect(lock.isBusyHere).toBe(false);
  const attempt = lateReply();
  redis.evalSha.mockReturnValueOnce(attempt.promise);
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
