import { type TracingChannelSubscribers, tracingChannel } from 'node:diagnostics_channel';
import { EventEmitter } from 'node:events';
import { beforeEach, expect, it } from '@jest/globals';
import { type AcquireMessage, RedisLockRegistry } from '../../lib';
import { FakeClock } from '../support/fake-clock';
import { granted, mockRedis, refused, silence } from '../support/mock-redis';

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

function sent(): number {
  return redis.eval.mock.calls.length + redis.evalSha.mock.calls.length;
}

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

it('tryLock() is published as a call that failed, and not as one that was aborted', async () => {
  const outcomes: unknown[] = [];
  const asyncEnd = (message: object) => outcomes.push((message as AcquireMessage).outcome);
  const listeners = { asyncEnd } as unknown as TracingChannelSubscribers<object>;
  const channel = tracingChannel('redis-lock-registry:acquire');
  channel.subscribe(listeners);
  disconnect();
  await settled(registry.obtain('key').tryLock());
  channel.unsubscribe(listeners);
  expect(outcomes).toEqual(['failed']);
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

it('tryLock() resolves to null for a lock that this process holds', async () => {
  await registry.obtain('key').lock();
  disconnect();
  expect(await registry.obtain('key').tryLock()).toBeNull();
});

it.each<[string, () => Promise<unknown>]>([
  ['lock()', () => registry.obtain('key').lock({ waitTime: 5_000 })],
  ['tryLock()', () => registry.obtain('key').tryLock({ waitTime: 5_000 })],
  ['lock() of a semaphore', () => registry.semaphore('key', { permits: 2 }).lock({ waitTime: 5_000 })],
  ['lock() of several keys', () => registry.multi(['a', 'b']).lock({ waitTime: 5_000 })],
  [
    'run() of a segmented lock',
    () => registry.segmented('key', { segments: 3 }).run(() => undefined, { waitTime: 5_000 }),
  ],
])('%s with a waitTime waits for it', async (_, call) => {
  disconnect();
  const end = await settled(call());
  expect(end).toMatchObject({ error: { name: 'CannotAcquireLockError', cause: REFUSED } });
  expect(end?.after).toBeGreaterThanOrEqual(5_000);
  expect(end?.after).toBeLessThan(6_000);
});

it('A single attempt has its commandTimeout while the client is connected and Redis is silent', async () => {
  redis.evalSha.mockImplementation(silence);
  const end = await settled(registry.obtain('key').tryLock());
  expect(end?.after).toBeGreaterThanOrEqual(5_000);
  expect(end).toMatchObject({ error: { message: expect.stringContaining('Redis has not answered for 5000 ms') } });
});

it('A single attempt has it too with a client that does not say whether it is connected', async () => {
  const silent = mockRedis();
  silent.evalSha.mockImplementation(silence);
  registry = new RedisLockRegistry(silent, { registryKey: 'unconnected' });
  expect((await settled(registry.obtain('key').tryLock()))?.after).toBeGreaterThanOrEqual(5_000);
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

it('A single attempt of a pool fails soon when none of its clients is connected, and has its commandTimeout when one is', async () => {
  const clients = [client(), client(), client()];
  let calls = 0;
  const pool = Object.assign(
    new EventEmitter().on('error', () => undefined),
    mockRedis(),
    {
      isOpen: true,
      totalClients: clients.length,
      execute: (run: (one: unknown) => unknown) => run(clients[calls++ % clients.length]),
    },
  );
  registry = new RedisLockRegistry(pool, { registryKey: 'unconnected' });
  for (let i = 0; i < clients.length; i++) await registry.run('key', () => undefined);
  for (const one of clients) one.evalSha.mockImplementation(silence);
  pool.emit('error', REFUSED);
  Object.assign(clients[0] as object, { isReady: false });
  const silent = await settled(registry.obtain('silent').tryLock());
  expect(silent).toMatchObject({ error: { message: expect.stringContaining('Redis has not answered for 5000 ms') } });
  Object.assign(clients[1] as object, { isReady: false });
  // It needs this one no longer.
  Object.assign(clients[2] as object, { isOpen: false });
  const end = await settled(registry.obtain('key').tryLock());
  expect(end).toMatchObject({ error: FAILED });
  expect(end?.after).toBeLessThanOrEqual(AT_ONCE);
});

it('A single attempt leaves no timer behind', async () => {
  redis.evalSha.mockImplementation(async () => refused(1_000));
  expect(await settled(registry.obtain('key').tryLock())).toMatchObject({ value: null });
  await time.advance(60_000);
  expect(time.pending).toBe(0);
});

it('A single attempt is about the master of its key on a cluster', async () => {
  const [up, down] = [true, false].map((isReady) => ({
    master: { host: '127.0.0.1', port: 1, client: { isReady } },
  }));
  const cluster = Object.assign(mockRedis(), {
    isOpen: true,
    masters: [],
    nodeClient: () => Promise.reject(new Error('none')),
    slots: Array.from({ length: 16_384 }, (_, slot) => (slot < 8_192 ? up : down)),
  });
  cluster.evalSha.mockImplementation(async () => refused(1_000));
  registry = new RedisLockRegistry(cluster, { registryKey: 'unconnected' });
  // CLUSTER KEYSLOT says 5,061 and 12,182.
  expect(await settled(registry.obtain('{bar}').tryLock())).toMatchObject({ value: null });
  const end = await settled(registry.obtain('{foo}').tryLock());
  expect(end).toMatchObject({ error: { message: expect.stringContaining('the client has no connection') } });
  expect(end?.after).toBeLessThanOrEqual(AT_ONCE);
});
