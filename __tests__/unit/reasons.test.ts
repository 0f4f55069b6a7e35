import { EventEmitter } from 'node:events';
import { beforeEach, expect, it } from '@jest/globals';
import { type Lease, RedisLockRegistry } from '../../lib';
import { FakeClock } from '../support/fake-clock';
import { granted, mockRedis, silence } from '../support/mock-redis';

const time = FakeClock.install();

/** A client that says what goes wrong with its connection, and nothing of whether it has one. */
const client = () =>
  Object.assign(
    new EventEmitter().on('error', () => undefined),
    mockRedis(),
  );

let redis: ReturnType<typeof client>;
let registry: RedisLockRegistry;

beforeEach(() => {
  redis = client();
  registry = new RedisLockRegistry(redis, { registryKey: 'reasons' });
});

const REFUSED = new Error('connect ECONNREFUSED 127.0.0.1:6379');
/** As Node says it of a host name with several addresses. */
const ALL_REFUSED = Object.assign(new AggregateError([REFUSED]), { code: 'ECONNREFUSED' });

/** What the call rejects with, after the time that it takes. */
async function errorOf(call: Promise<unknown>): Promise<{ readonly message: string; readonly cause?: unknown }> {
  const settled = call.then(
    () => new Error('nothing failed'),
    (error: Error) => error,
  );
  await time.advance(20_000);
  return settled;
}

const lock = () => registry.obtain('key').lock();
const tryLock = () => registry.obtain('key').tryLock();
const lockBoth = () => registry.multi(['a', 'b']).lock({ waitTime: 1_000 });
const inspect = () => registry.obtain('key').inspect();
const forceUnlock = () => registry.obtain('key').forceUnlock();
const list = () => registry.list().next();
const once = () => registry.once('key', () => 1, { keepFor: 1_000 });
const forget = () => registry.forget('key');

it.each([
  ['lock', lock, 'Lock "key" could not be acquired'],
  ['tryLock', tryLock, 'Lock "key" could not be acquired'],
  ['lock of several keys', lockBoth, 'Lock "a" could not be acquired'],
  ['inspect', inspect, 'Lock "key" could not be inspected'],
  ['forceUnlock', forceUnlock, 'It is not known whether lock "key" was unlocked by force'],
  ['once', once, 'The result of "key" could not be read'],
  ['forget', forget, 'The result of "key" may not be forgotten'],
])('A call that failed says why where Redis was silent and the client has an error: %s', async (_, call, what) => {
  redis.emit('error', REFUSED);
  redis.evalSha.mockImplementation(silence);
  expect(await errorOf(call())).toMatchObject({
    message: `${what}: the client failed: ${REFUSED.message}`,
    cause: REFUSED,
  });
});

it.each([
  ['lock', lock, 'Lock "key" could not be acquired'],
  ['tryLock', tryLock, 'Lock "key" could not be acquired'],
  ['inspect', inspect, 'Lock "key" could not be inspected'],
])('A call that failed says why where each command failed in the client: %s', async (_, call, what) => {
  const cause = new Error('Socket closed unexpectedly');
  redis.evalSha.mockRejectedValue(cause);
  expect(await errorOf(call())).toMatchObject({ message: `${what}: the client failed: ${cause.message}`, cause });
});

it.each([
  ['lock', lock, /^Lock "key" could not be acquired: Redis has not answered for 100\d\d ms$/],
  ['tryLock', tryLock, /^Lock "key" could not be acquired: Redis has not answered for 5000 ms$/],
  ['inspect', inspect, /^Lock "key" could not be inspected: Redis did not answer within 5000 ms$/],
])('A call that failed says why where Redis was silent and the client has no error: %s', async (_, call, message) => {
  redis.evalSha.mockImplementation(silence);
  expect((await errorOf(call())).message).toMatch(message);
});

it.each([
  ['lock', lock, 'for 10 s Redis has answered only: CLUSTERDOWN The cluster is down'],
  ['tryLock', tryLock, 'Redis answered: CLUSTERDOWN The cluster is down'],
])('A call that failed says why where Redis answered with an error that may pass: %s', async (_, call, why) => {
  redis.emit('error', REFUSED);
  redis.evalSha.mockRejectedValue(new Error('CLUSTERDOWN The cluster is down'));
  expect(await errorOf(call())).toMatchObject({ message: `Lock "key" could not be acquired: ${why}` });
});

it.each([
  ['tryLock', tryLock, 'Lock "key" could not be acquired'],
  ['inspect', inspect, 'Lock "key" could not be inspected'],
])('A call that failed says why where Redis refused it: %s', async (_, call, what) => {
  redis.emit('error', REFUSED);
  redis.evalSha.mockRejectedValue(new Error('NOPERM this user has no permissions'));
  expect(await errorOf(call())).toMatchObject({ message: `${what}: NOPERM this user has no permissions` });
});

it('A call that failed says why where Redis refuses the password of the client', async () => {
  redis.emit('error', new Error('WRONGPASS invalid username-password pair'));
  redis.evalSha.mockImplementation(silence);
  expect((await errorOf(lock())).message).toMatch(/acquired: WRONGPASS invalid username-password pair$/);
});

it('A call that failed says why where the error of the client has a code and no text', async () => {
  redis.emit('error', ALL_REFUSED);
  redis.evalSha.mockImplementation(silence);
  expect((await errorOf(lock())).message).toMatch(/: the client failed: ECONNREFUSED$/);
});

it('A call that failed says why where Redis answers too late for the ttl', async () => {
  redis.evalSha.mockImplementation(async () => {
    time.now += 100;
    return granted;
  });
  expect((await errorOf(registry.obtain('key').tryLock({ ttl: 50 }))).message).toBe(
    'Lock "key" could not be acquired: Redis answered so late that nothing was left of the ttl of 50 ms',
  );
});

it.each<[string, (lease: Lease) => Promise<unknown>, RegExp]>([
  ['unlock', (lease) => lease.unlock(), /tried for 5000 ms: the client failed: connect ECONNREFUSED/],
  ['renew', (lease) => lease.renew(), /renewed: Redis did not confirm it \(the client failed: connect ECONNREFUSED/],
  ['eval', (lease) => lease.eval('return 1'), /while the lease is held \(connect ECONNREFUSED/],
])('A call of a lease that Redis did not confirm says why where the client has an error: %s', async (_, call, text) => {
  const lease = await lock();
  redis.emit('error', REFUSED);
  redis.evalSha.mockImplementation(silence);
  expect(await errorOf(call(lease))).toMatchObject({ message: expect.stringMatching(text), cause: REFUSED });
});

it('A call that failed says why where locks could not be listed', async () => {
  const scanning = Object.assign(redis, { scan: () => Promise.reject(REFUSED) });
  registry = new RedisLockRegistry(scanning, { registryKey: 'reasons' });
  expect((await errorOf(list())).message).toBe(`Locks could not be listed: the client failed: ${REFUSED.message}`);
});

it.each([
  ['inspect', inspect, /^Lock "key" could not be inspected: Redis did not answer/],
  ['forceUnlock', forceUnlock, /^It is not known whether lock "key" was unlocked by force: Redis did not answer/],
  ['list', list, /^Lock "key" could not be inspected: Redis did not answer/],
])('A call that failed says why where Redis is asked once more, as of a shared lock: %s', async (_, call, message) => {
  const scan = async () => ({ cursor: '0', keys: ['reasons:key'] });
  registry = new RedisLockRegistry(Object.assign(redis, { scan }), { registryKey: 'reasons' });
  redis.evalSha.mockRejectedValueOnce(new Error('WRONGTYPE no')).mockImplementation(silence);
  expect((await errorOf(call())).message).toMatch(message);
});

it.each(['WRONGTYPE not this one', 'NOPERM this user has no permissions'])(
  'A key that is no shared lock, as far as its user may know, is not listed, and is of a wrong type: %s',
  async (answer) => {
    const scan = async () => ({ cursor: '0', keys: ['reasons:key'] });
    registry = new RedisLockRegistry(Object.assign(redis, { scan }), { registryKey: 'reasons' });
    const answerTwice = () =>
      redis.evalSha.mockRejectedValueOnce(new Error('WRONGTYPE no')).mockRejectedValueOnce(new Error(answer));
    answerTwice();
    redis.evalSha.mockResolvedValueOnce('set');
    const isASet = 'WRONGTYPE It is a key of type set in Redis, and it is used as a lock of type spin here';
    expect((await errorOf(inspect())).message).toBe(`Lock "key" could not be inspected: ${isASet}`);
    answerTwice();
    expect(await list()).toMatchObject({ done: true });
  },
);
