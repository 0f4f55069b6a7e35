import { EventEmitter } from 'node:events';
import { beforeEach, expect, it } from '@jest/globals';
import { type AcquireMessage, RedisLockRegistry } from '../../lib';
import { FakeClock } from '../support/fake-clock';
import { granted, mockRedis, refused, silence } from '../support/mock-redis';
import { published } from '../support/published';

/** ms in which a caller that does not wait learns that the client has no connection. */
const AT_ONCE = 300;

const REFUSED = new Error('connect ECONNREFUSED 127.0.0.1:6379');

const time = FakeClock.install();

/** A client that says whether it has a connection, and keeps what it is given while it has none: node-redis' plain one. */
function client() {
  return Object.assign(new EventEmitter(), mockRedis(), { isOpen: true, isReady: true, socketEpoch: 1 });
}

let redis: ReturnType<typeof client>;
let registry: RedisLockRegistry;

beforeEach(() => {
  redis = client();
  registry = new RedisLockRegistry(redis, { registryKey: 'unconnected', onWarning: () => undefined });
});

const sent = () => redis.eval.mock.calls.length + redis.evalSha.mock.calls.length;

function disconnect(): void {
  redis.isReady = false;
  redis.on('error', () => undefined).emit('error', REFUSED);
  redis.evalSha.mockImplementation(silence);
}

const settled = (call: Promise<unknown>) => time.settled(call);

const FAILED = {
  name: 'CannotAcquireLockError',
  message: expect.stringMatching(/could not be acquired: the client failed: connect ECONNREFUSED 127\.0\.0\.1:6379$/),
  cause: REFUSED,
};

/** ms: it must not fail at once, as a connection is made again in that time. */
const LEAST = 200;

it.each<[string, () => Promise<unknown>]>([
  ['tryLock()', () => registry.obtain('key').tryLock()],
  ['tryRun()', () => registry.obtain('key').tryRun(() => undefined)],
  ['lock() with a waitTime of 0', () => registry.obtain('key').lock({ waitTime: 0 })],
  ['tryLock() of a semaphore', () => registry.semaphore('key', { permits: 2 }).tryLock()],
  ['tryLock() of a lock for reading', () => registry.readWrite('key').read.tryLock()],
  ['tryLock() of a lock for writing', () => registry.readWrite('key').write.tryLock()],
  ['tryLock() of several keys', () => registry.multi(['a', 'b']).tryLock()],
  [
    'run() of a segmented lock with a waitTime of 0',
    () => registry.segmented('key', { segments: 3 }).run(() => undefined, { waitTime: 0 }),
  ],
])('%s fails soon with the last error of the client, and sends nothing', async (_, call) => {
  disconnect();
  const end = await settled(call());
  expect(end).toMatchObject({ error: FAILED });
  expect(end?.after).toBeLessThanOrEqual(AT_ONCE);
  expect(end?.after).toBeGreaterThan(LEAST);
  expect(sent()).toBe(0);
  await time.advance(120_000);
  expect(sent()).toBe(0);
  expect(time.pending).toBe(0);
});

it('tryLock() says so also where the client has reported no error', async () => {
  redis.isReady = false;
  expect(await settled(registry.obtain('key').tryLock())).toMatchObject({
    error: { message: 'Lock "key" could not be acquired: the client has no connection', cause: undefined },
  });
});

it('While its client says that it has no connection, a caller whose wait ends behind tryLock() is not told that the lock is held', async () => {
  disconnect();
  const ahead = settled(registry.obtain('key').tryLock());
  expect(await settled(registry.obtain('key').tryLock({ waitTime: 100 }))).toMatchObject({
    error: { name: 'CannotAcquireLockError', cause: REFUSED },
  });
  await ahead;
});

it('While its client says that it has no connection, a caller is not told that the lock is held where a call of several keys has left', async () => {
  redis.evalSha.mockResolvedValue(refused(30_000));
  expect(await registry.obtain('a').tryLock()).toBeNull();
  disconnect();
  expect(await settled(registry.multi(['a', 'b']).tryLock({ waitTime: 5 }))).toMatchObject({ error: FAILED });
  expect(await settled(registry.obtain('a').tryLock())).toMatchObject({ error: FAILED });
});

it('With minReplicas, a call of several keys with a short waitTime has the time of its attempts for the connection', async () => {
  const own = Object.assign(client(), { connect: silence, destroy: () => undefined });
  Object.assign(redis, { duplicate: () => own });
  registry = new RedisLockRegistry(redis, { registryKey: 'unconnected', minReplicas: 1, replicaTimeout: 50 });
  disconnect();
  const end = await settled(registry.multi(['a', 'b']).lock({ waitTime: 5 }));
  expect([end?.error, end?.after]).toMatchObject([FAILED, 175]);
});

it('tryLock() is published as a call that failed, and not as one that was aborted', async () => {
  disconnect();
  const messages = await published<AcquireMessage>('acquire', () => settled(registry.obtain('key').tryLock()));
  expect(messages.map(({ outcome }) => outcome)).toEqual(['failed']);
});

it('tryLock() fails soon behind another caller of its process too', async () => {
  disconnect();
  const waiting = registry.obtain('key').lock();
  void waiting.catch(() => undefined);
  await time.advance(20);
  const end = await settled(registry.obtain('key').tryLock());
  expect(end).toMatchObject({ error: FAILED });
  expect(end?.after).toBeLessThanOrEqual(AT_ONCE);
});

it('tryLock() fails soon when the connection is lost during its attempt, and the client sends that again', async () => {
  redis.evalSha.mockImplementation(silence);
  const call = settled(registry.obtain('key').tryLock());
  await time.advance(1_000);
  disconnect();
  const lostAt = time.now;
  expect(await call).toMatchObject({ error: FAILED });
  expect(time.now - lostAt).toBeLessThanOrEqual(AT_ONCE);
});

it('tryLock() takes the lock where a connection is made in time', async () => {
  disconnect();
  const call = settled(registry.obtain('key').tryLock());
  await time.advance(150);
  redis.isReady = true;
  redis.evalSha.mockImplementation(async () => granted);
  expect(await call).toMatchObject({ value: { key: 'key' } });
  expect(sent()).toBe(1);
});

it.each<[string, () => Promise<unknown>]>([
  ['lock()', () => registry.obtain('key').lock({ waitTime: 5_000 })],
  ['tryLock()', () => registry.obtain('key').tryLock({ waitTime: 5_000 })],
  ['lock() of a semaphore', () => registry.semaphore('key', { permits: 2 }).lock({ waitTime: 5_000 })],
  ['lock() of several keys', () => registry.multi(['a', 'b']).lock({ waitTime: 5_000 })],
  ['run() of a segmented lock', () => registry.segmented('key', { segments: 3 }).run(() => 0, { waitTime: 5_000 })],
])('%s with a waitTime waits for it', async (_, call) => {
  disconnect();
  const end = await settled(call());
  expect(end).toMatchObject({ error: { name: 'CannotAcquireLockError', cause: REFUSED } });
  expect(end?.after).toBeGreaterThanOrEqual(5_000);
  expect(end?.after).toBeLessThan(6_000);
});

it('A single attempt is given to a client that may make a connection only then, and fails soon where it makes none', async () => {
  const lazy = Object.assign(mockRedis(), { isOpen: true, isReady: false });
  registry = new RedisLockRegistry(lazy, { registryKey: 'unconnected' });
  expect(await settled(registry.obtain('free').tryLock())).toMatchObject({ value: { key: 'free' } });
  lazy.evalSha.mockImplementation(silence);
  const end = await settled(registry.obtain('key').tryLock());
  expect(end).toMatchObject({ error: { message: expect.stringContaining('the client has no connection') } });
  expect(end?.after).toBeLessThanOrEqual(AT_ONCE);
});

it('A single attempt leaves no timer behind', async () => {
  redis.evalSha.mockImplementation(async () => refused(1_000));
  expect(await settled(registry.obtain('key').tryLock())).toMatchObject({ value: null });
  await time.advance(60_000);
  expect(time.pending).toBe(0);
});

it('A permit of this process goes to its caller that waits, and not to one that does not wait, while the client has no connection', async () => {
  const semaphore = registry.semaphore('key', { permits: 1 });
  redis.evalSha.mockResolvedValueOnce([0, 0, 1]);
  const first = await semaphore.lock();
  disconnect();
  const entered: unknown[] = [];
  void semaphore.lock().then(() => entered.push('waits'));
  await time.advance(1);
  const trying = semaphore.tryLock().then(
    () => entered.push('tries'),
    (error: unknown) => error,
  );
  await time.advance(30);
  await first.unlock();
  await time.advance(1);
  expect(entered).toEqual(['waits']);
  await time.advance(1_000);
  expect(await trying).toMatchObject(FAILED);
});

it('A client is looked at each 25 ms while a caller that does not wait has no answer', async () => {
  let looks = 0;
  Object.defineProperty(redis, 'isReady', { get: () => ++looks > 0 });
  redis.evalSha.mockImplementation(silence);
  void registry
    .obtain('key')
    .tryLock()
    .catch(() => undefined);
  await time.advance(240);
  looks = 0;
  await time.advance(250);
  expect(looks).toBe(10);
});
