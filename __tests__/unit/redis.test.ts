import { EventEmitter } from 'node:events';
import { beforeEach, describe, expect, it, jest } from '@jest/globals';
import type { RedisClient } from '../../lib';
import { hashSlot } from '../../lib/redis/cluster';
import { handOffs } from '../../lib/redis/hand-offs';
import { Redis } from '../../lib/redis/redis';
import { LockScript, Script } from '../../lib/redis/script';
import { FakeClock } from '../support/fake-clock';
import { lateReply, mockRedis, nextReply, silence } from '../support/mock-redis';

const time = FakeClock.install();
const script = new Script('a script', 'return 1');
const release = new LockScript('release', 'return 2');
const CUT = new Error('Socket closed unexpectedly');
const asItIs = (reply: unknown): unknown => reply;

/** A client that is connected and emits events. */
const client = (parts: object = {}) =>
  Object.assign(
    new EventEmitter().on('error', () => undefined),
    mockRedis(),
    { isOpen: true, isReady: true },
    parts,
  );
const plain = (parts: object = {}) => client({ socketEpoch: 5, ...parts });
const redisOf = (one: object, options?: { minReplicas: number; replicaTimeout: number }) =>
  new Redis(one as RedisClient, 'orders', 5_000, options);

/** The method of a sentinel client. */
function getMasterNode(this: { master: string }): string {
  return this.master;
}

/** A cluster of the nodes `a:1`, for the key a, and `b:2`, for all others; `isReady`: that of the client of each. */
function cluster(isReady: readonly [boolean, boolean] = [true, true]) {
  const [a, b] = isReady.map((one, i) => ({ host: 'ab'[i] as string, port: i + 1, client: { isReady: one } }));
  const slots = Array.from({ length: 16_384 }, (_, slot) => ({ master: slot === hashSlot('a') ? a : b }));
  return client({ slots, masters: [a, b], nodeClient: silence });
}

function pool(...clients: object[]) {
  let calls = 0;
  const execute = (run: (one: unknown) => unknown) => run(clients[calls++ % clients.length]);
  return client({ execute, totalClients: clients.length, isReady: undefined });
}

const run = (redis: Redis, key: string, timeout = 1_000) => redis.run(script, [key], [], timeout, asItIs);

it('The way to Redis has an epoch where it is one connection, which a hand-off changes too', () => {
  const single = redisOf(plain());
  const before = single.connectionEpoch as number;
  const disrupted = single.disruptions;
  expect(before).toBe(5 + handOffs.epoch);
  handOffs.epoch += 2 ** 32;
  expect([(single.connectionEpoch as number) - before, single.disruptions - disrupted]).toEqual([2 ** 32, 2 ** 32]);
  expect(redisOf(client()).connectionEpoch).toBeUndefined();
  const replicated = redisOf(plain({ duplicate: silence }), { minReplicas: 1, replicaTimeout: 50 });
  expect([replicated.connectionEpoch, replicated.isReplicated]).toEqual([undefined, true]);
  const none = redisOf(plain(), { minReplicas: 0, replicaTimeout: 50 });
  expect([none.connectionEpoch, none.isReplicated]).toEqual([single.connectionEpoch, false]);
});

it('The way to Redis is disrupted by each connection that the client says was lost, and each of those for replicas', async () => {
  const one = client();
  const redis = redisOf(one);
  redis.monitor.onReconnect(() => undefined);
  const before = redis.disruptions;
  one.emit('client-error');
  expect([before, redis.disruptions - before]).toEqual([handOffs.epoch, 1]);
  const own = client({ connect: silence });
  const replicated = redisOf(plain({ duplicate: () => own }), { minReplicas: 1, replicaTimeout: 50 });
  const acquire = new LockScript('acquire', 'return 1', true, () => true);
  void replicated.run(acquire, ['key'], [], 1_000, asItIs).catch(() => undefined);
  await time.advance(0);
  const made = replicated.disruptions;
  own.emit('client-error');
  expect(replicated.disruptions - made).toBe(1);
});

/** The slots of a cluster of one node, to which its client has made no connection so far. */
const unused = Array.from({ length: 16_384 }, () => ({ master: { host: 'a', port: 1 } }));

it.each<[string, boolean, object, string?]>([
  ['that is ready', false, client()],
  ['that does not say whether it is', false, mockRedis()],
  ['that is not ready', true, client({ isReady: false })],
  ['that is closed', false, client({ isReady: false, isOpen: false })],
  // It calls itself ready until it has been given a command.
  ['of a sentinel, without a master', true, client({ getMasterNode: () => undefined })],
  ['of a sentinel, with a master', false, client({ isReady: false, master: 'a:1', getMasterNode })],
  ['of a cluster, ready for the key', false, cluster([true, false])],
  ['of a cluster, not ready for the key', true, cluster([true, false]), 'b'],
  ['of a cluster without slots', false, Object.assign(cluster(), { slots: [] })],
  ['of a cluster, without a connection so far', false, Object.assign(cluster(), { slots: unused })],
  ['with a master of its own for the key', false, client({ masterOf: () => ({ client: { isReady: false } }) })],
])('The way to Redis over a client %s is cut: %p', (_, isCut, one, key = 'a') => {
  expect(redisOf(one).isDisconnected(key)).toBe(isCut);
});

it('The way to Redis says whether its client is closed, connects again unasked, and has slots', () => {
  const ways = [client({ isReady: false, isOpen: false }), plain(), cluster()].map((one) => redisOf(one));
  expect(ways.map(({ isClientClosed }) => isClientClosed)).toEqual([true, false, false]);
  expect(ways.map(({ connectsUnasked }) => connectsUnasked)).toEqual([false, true, true]);
  expect(ways.map((one) => one.slotOf('a'))).toEqual([undefined, undefined, hashSlot('a')]);
});

it('The way to Redis keeps no count of what has failed: later calls are not held back for it', async () => {
  const one = plain();
  const redis = redisOf(one);
  one.evalSha.mockRejectedValue(CUT);
  for (let i = 0; i < 200; i++) await expect(run(redis, 'a')).rejects.toBe(CUT);
  one.evalSha.mockRejectedValueOnce(new Error('LOADING Redis is loading'));
  await expect(run(redis, 'a')).rejects.toThrow('LOADING');
  expect(redis.unansweredSince('a')).toBeUndefined();
  one.evalSha.mockImplementation(silence);
  void run(redis, 'a').catch(() => undefined);
  await time.advance(501);
  one.evalSha.mockClear();
  void run(redis, 'a').catch(() => undefined);
  await time.advance(0);
  expect(one.evalSha).toHaveBeenCalledTimes(1);
});

it('The way to Redis over a pool is cut when none of its clients is connected, and its last error counts until then', async () => {
  const member = client();
  const one = pool(member);
  const redis = redisOf(one);
  redis.monitor.onReconnect(() => undefined);
  await run(redis, 'a');
  one.emit('error', CUT);
  expect([redis.isDisconnected('a'), redis.lastError]).toEqual([false, undefined]);
  Object.assign(member, { isReady: false });
  expect([redis.isDisconnected('a'), redis.lastError]).toEqual([true, CUT]);
  const single = client();
  const other = redisOf(single);
  other.monitor.onReconnect(() => undefined);
  single.emit('error', CUT);
  expect(other.lastError).toBe(CUT);
});

it('The way to Redis ends with the registry, and so do its own connections', async () => {
  const own = Object.assign(mockRedis(), { on: () => own, connect: silence, destroy: jest.fn(), isOpen: true });
  const redis = redisOf(plain({ duplicate: () => own }), { minReplicas: 1, replicaTimeout: 50 });
  const acquire = new LockScript('acquire', 'return 1', true, () => true);
  const late = redis.run(acquire, ['a'], [], 1_000, asItIs).catch(asItIs);
  await time.advance(0);
  expect(redis.isClosed).toBe(false);
  redis.close();
  await time.advance(1_000);
  await late;
  expect([redis.isClosed, own.destroy.mock.calls.length]).toEqual([true, 1]);
});

describe('A silence', () => {
  let answers: (key: string) => Promise<unknown>;
  let redis: Redis;
  let heard: jest.Mock;

  beforeEach(() => {
    answers = silence;
    const one = cluster();
    one.evalSha.mockImplementation((_, { keys = [] } = {}) => answers(keys[0] as string));
    redis = redisOf(one);
    heard = jest.fn();
  });

  it('A silence of 3 s is reported, until nobody listens any more', async () => {
    const stop = redis.onSilence(heard);
    answers = async () => 1;
    await run(redis, 'b'); // another server, which answers
    answers = silence;
    void run(redis, 'a', 10_000).catch(asItIs);
    await time.advance(2_999);
    expect(heard).not.toHaveBeenCalled();
    await time.advance(1);
    expect(heard).toHaveBeenCalledTimes(1);
    stop();
    await time.advance(5_000);
    expect(heard).toHaveBeenCalledTimes(1);
    redis.onSilence(heard);
    answers = async () => 1;
    await run(redis, 'a');
    void run(redis, 'a', 2_000).catch(asItIs);
    answers = silence;
    void run(redis, 'a', 2_000).catch(asItIs);
    await time.advance(2_000);
    expect(heard).toHaveBeenCalledTimes(1);
  });

  it('A silence is that of one server of a cluster, and after it answers may be outdated for a moment', async () => {
    const late = lateReply();
    answers = (key) => (key === 'a' ? late.promise : Promise.resolve(1));
    const sentAt = time.now;
    void run(redis, 'a').catch(asItIs);
    await run(redis, 'b');
    expect([redis.unansweredSince('a'), redis.unansweredSince('b')]).toEqual([sentAt, undefined]);
    await time.advance(500);
    expect(redis.mayBeOutdated(sentAt + 500, 'a')).toBe(false);
    await time.advance(1);
    const now = time.now;
    expect(['a', 'b', undefined].map((key) => redis.mayBeOutdated(now, key))).toEqual([true, false, false]);
    late.resolve(1);
    await time.advance(0);
    expect([0, 119, 120].map((ms) => redis.mayBeOutdated(now + ms))).toEqual([true, true, false]);
  });

  it.each([
    ['over one connection, as answers come in order', plain, false],
    ['over several connections', client, true],
  ])('A silence is told from a slow answer %s', async (_, make, isSilence) => {
    const one = make();
    redis = redisOf(one);
    const late = nextReply(one);
    void run(redis, 'a').catch(asItIs);
    await time.advance(300);
    await run(redis, 'b');
    await time.advance(300);
    late.resolve(1);
    await time.advance(0);
    expect(redis.mayBeOutdated(time.now)).toBe(isSilence);
    redis.close();
  });

  it('A silence holds back calls beyond 200 keys, and they are sent when it ends', async () => {
    const late = lateReply();
    answers = () => late.promise;
    for (let i = 0; i < 200; i++) void run(redis, 'a', 5_000).catch(asItIs);
    await time.advance(501);
    answers = async () => 'held back';
    const held = [run(redis, 'a', 5_000), run(redis, 'a', 5_000)];
    await run(redis, 'b');
    await time.advance(10);
    late.resolve(1);
    expect(await Promise.all(held)).toEqual(['held back', 'held back']);
  });
});

it('A call that acquires goes alone over a client that may have several connections or servers', async () => {
  const one = client();
  one.eval.mockImplementation(async (_, { keys = [] } = {}) => keys.length);
  const redis = redisOf(one);
  const acquire = new LockScript('acquire', 'return 1', true);
  for (let i = 0; i < 2; i++) {
    const keys = Array.from({ length: 40 }, (_, j) => `key-${j}`);
    await Promise.all(keys.map((key) => redis.run(acquire, [key], [], 1_000, asItIs)));
    await time.advance(0); // where the keys are is known by then
  }
  expect(new Set(one.evalSha.mock.calls.map(([, { keys = [] } = {}]) => keys.length))).toEqual(new Set([1]));
});

it('A call has its own timeout, and at most the commandTimeout', async () => {
  const one = client();
  one.evalSha.mockImplementation(silence);
  one.eval.mockImplementation(silence);
  const redis = redisOf(one);
  const endings: number[] = [];
  const startedAt = time.now;
  const ends = (call: Promise<unknown>) => void call.catch(() => endings.push(time.now - startedAt));
  for (const timeout of [1_000, 9_000]) {
    ends(run(redis, 'a', timeout));
    ends(redis.runNow({ script, keys: ['a'], args: [], timeout, now: time.now, read: asItIs }, true));
  }
  expect([one.eval.mock.calls.length, one.evalSha.mock.calls.length]).toEqual([2, 0]);
  await time.advance(9_000);
  expect([endings, one.evalSha.mock.calls.length]).toEqual([[1_000, 1_000, 5_000, 5_000], 2]);
});

it('A call that runs now goes by the digest of its script, or as text', async () => {
  const one = client();
  const redis = redisOf(one);
  void redis.runNow({ script, keys: ['a'], args: ['b'], timeout: 1_000, now: time.now, read: asItIs }, false);
  expect(new Script('a script', 'return 1').sha1).toBe('e0e1f9fabfc9d4800c877a703b823ac0578ff8db');
  expect(one.evalSha.mock.calls).toEqual([[script.sha1, { keys: ['a'], arguments: ['b'] }]]);
  expect(one.eval).not.toHaveBeenCalled();
});

it('A call after those that are made in order is not one of them, though making them has failed', async () => {
  const redis = redisOf(Object.assign(cluster(), { isReady: true }));
  const { evalSha } = redis.client as ReturnType<typeof client>;
  evalSha.mockImplementation(async (_, { keys = [] } = {}) => (keys.length === 1 ? 1 : keys.map(() => 1)));
  const fail = () => {
    throw CUT;
  };
  expect(() => redis.allOrNone(fail)).toThrow(CUT);
  await Promise.all(['{tag}a', '{tag}b'].map((key) => redis.run(release, [key], [], 1_000, asItIs)));
  expect(evalSha.mock.calls.map(([sha]) => sha)).toEqual([release.forMany.sha1]);
});

it.each([
  ['NOPERM this key', 3],
  ['LOADING Redis', 1],
])('A call of a batch is sent alone after %s, if that may be about others: %d commands', async (message, commands) => {
  const redis = redisOf(cluster());
  const { evalSha } = redis.client as ReturnType<typeof client>;
  evalSha.mockRejectedValueOnce(new Error(message));
  const calls = ['{tag}a', '{tag}b'].map((key) => redis.run(release, [key], [], 1_000, asItIs));
  const outcomes = await Promise.allSettled(calls);
  expect([evalSha.mock.calls.length, new Set(outcomes.map(({ status }) => status)).size]).toEqual([commands, 1]);
});

it('A call of a batch whose time is over is not sent alone', async () => {
  const redis = redisOf(cluster());
  const { evalSha } = redis.client as ReturnType<typeof client>;
  const late = lateReply();
  evalSha.mockReturnValueOnce(late.promise);
  const calls = Promise.allSettled([
    redis.run(release, ['{tag}a'], [], 500, asItIs),
    redis.run(release, ['{tag}b'], [], 1_000, asItIs),
  ]);
  await time.advance(500);
  late.reject(new Error('CROSSSLOT Keys'));
  expect((await calls).map(({ status }) => status)).toEqual(['rejected', 'fulfilled']);
  expect(evalSha).toHaveBeenCalledTimes(2);
});

it('A call has its script run alone where it has another number of keys or arguments, or another script', async () => {
  const redis = redisOf(cluster());
  const { evalSha } = redis.client as ReturnType<typeof client>;
  evalSha.mockImplementation(async (_, { keys = [] } = {}) => keys.map(() => 1));
  const other = new LockScript('other', 'return 3');
  const send = (one: LockScript, keys: string[], args: string[]) => redis.run(one, keys, args, 1_000, asItIs);
  await Promise.all([
    send(release, ['{t}a'], ['x']),
    send(release, ['{t}b', '{t}c'], ['x']),
    send(release, ['{t}d'], ['x', 'y']),
    send(other, ['{t}e'], ['x']),
    send(release, ['{t}f'], ['z']),
  ]);
  const keys = evalSha.mock.calls.map(([, options]) => options?.keys?.join());
  expect(keys).toEqual(['{t}a,{t}f', '{t}b,{t}c', '{t}d', '{t}e']);
});
