import { beforeEach, expect, it, jest } from '@jest/globals';
import { type AcquireMessage, type Lease, NotReplicatedError, type RedisLockRegistryOptions } from '../../lib';
import { clock, reliableUntil } from '../../lib/internal/clock';
import { InMemoryLockRegistry } from '../../lib/testing';
import { FakeClock } from '../support/fake-clock';
import { DISTINCT_TYPES } from '../support/lock-types';
import {
  granted,
  lateReply,
  mockRedis,
  nextReply,
  queuedUntilLetIn,
  refused,
  released,
  sharedGranted,
  sharedRefused,
  silence,
} from '../support/mock-redis';
import { published } from '../support/published';
import { createRegistry } from '../support/test-registry';

const time = FakeClock.install();
let redis: ReturnType<typeof mockRedis>;

beforeEach(() => {
  redis = mockRedis();
});

const registryOf = (options: Partial<RedisLockRegistryOptions> = {}, client: object = {}) =>
  createRegistry(Object.assign(redis, { socketEpoch: 1 }, client), options).registry;

const settled = (call: Promise<unknown>) => time.settled(call);

it.each([
  [0, 50],
  [1, 250],
])('The last attempt of a call with minReplicas: %d has at least %d ms to be answered', async (minReplicas, least) => {
  const own = Object.assign(mockRedis(), { on: () => own, connect: silence, destroy: () => undefined });
  redis.evalSha.mockImplementation(silence);
  const registry = registryOf({ minReplicas, replicaTimeout: 100 }, { duplicate: () => own });
  for (const lock of [registry.obtain('key'), registry.multi(['a', 'b'])]) {
    const end = await settled(lock.lock({ waitTime: 1 }));
    expect(end).toMatchObject({ after: least, error: { name: 'CannotAcquireLockError' } });
  }
});

it('A caller that does not wait is refused without a question where its process has the lock, in memory too', async () => {
  const registry = new InMemoryLockRegistry();
  await registry.obtain('key').lock();
  registry.locks.goSilent();
  expect(await settled(registry.obtain('key').tryLock())).toMatchObject({ after: 0, value: null });
});

it('A call is published with the first contention that it met, by a caller of its process or of another one', async () => {
  const messages = await published<AcquireMessage>('acquire', async () => {
    const registry = registryOf();
    await registry.obtain('here').lock();
    await settled(registry.obtain('here').lock({ waitTime: 100 }));
    await registry.obtain('here').tryLock();
    redis.evalSha.mockImplementation(async () => refused(20_000));
    await settled(registry.obtain('elsewhere').lock({ waitTime: 100 }));
    const lock = new InMemoryLockRegistry().obtain('key');
    const [lease, handedOver] = [await lock.lock(), lock.lock()];
    await time.advance(1);
    await lease.unlock();
    await (await handedOver).unlock();
    await lock.run(() => Promise.all([lock.tryLock(), lock.tryLock()]));
    await new InMemoryLockRegistry().multi(['a', 'b']).tryLock();
  });
  expect(messages.flatMap(({ isReentry, contention }) => (isReentry ? contention : []))).toEqual(['none', 'local']);
  const seen = messages.map(({ contention, contendedAfter, attempts, isHandedOver }) =>
    [contention, contendedAfter, attempts, isHandedOver].join(' '),
  );
  const others = ['remote 0 6 false', 'none  1 false', 'remote 0 1 true'];
  expect(seen.slice(0, 6)).toEqual(['none  1 false', 'local 0 0 false', 'local 0 0 false', ...others]);
});

it.each([
  ['is not answered', undefined, 3],
  ['is answered late, and its one attempt after that is not', [20_000, '', 'another:1', '', 'another:1', 1], 4],
])(
  'A call, and another beside it, wait no longer than they may where the script that ends a fair lease for it %s',
  async (_, reply, sent) => {
    const registry = registryOf({ lockType: 'fair' });
    const lock = registry.obtain('key');
    const lease = await lock.lock();
    const next = settled(lock.lock({ waitTime: 300 }));
    await time.advance(0);
    const exchange = lateReply();
    redis.evalSha.mockReturnValueOnce(exchange.promise).mockImplementation(silence);
    const unlocked = settled(lease.unlock());
    await time.advance(0);
    const other = settled(registry.obtain('other').lock({ waitTime: 210 }));
    await time.advance(200);
    if (reply !== undefined) exchange.resolve(reply);
    await time.advance(50);
    expect(redis.sent).toBe(sent);
    expect(await next).toMatchObject({ after: 300, error: { name: 'CannotAcquireLockError' } });
    expect(await other).toMatchObject({ after: 210 });
    await unlocked;
  },
);

it.each(['fair', 'spin'] as const)(
  'An unlock of a %s lock whose script for the next caller fails has time for a release, which proves no loss',
  async (lockType) => {
    const { registry, warnings } = createRegistry(Object.assign(redis, { socketEpoch: 1 }), {
      lockType,
      commandTimeout: 1_000,
    });
    for (const [key, failing, after] of [
      ['silent', silence, 510],
      ['lost', () => Promise.reject(new Error('Socket closed unexpectedly')), 10],
      // It may have been stopped after it had released the lock.
      ['moved', () => Promise.reject(new Error('ERR Script attempted to access a non local key in a cluster node')), 0],
    ] as const) {
      const lock = registry.obtain(key);
      const lease = await lock.lock();
      const next = lock.lock();
      await time.advance(80);
      redis.evalSha.mockImplementation(async (_, options) => (options?.arguments?.includes('UNLINK') ? 0 : granted));
      redis.evalSha.mockImplementationOnce(failing);
      expect(await settled(lease.unlock())).toMatchObject({ after, value: undefined });
      expect(warnings.at(-1)).toMatchObject({ code: 'RELEASE_UNCERTAIN', key });
      await settled(next);
    }
  },
);

it.each([
  [49, 'enough for the ttl of the next caller, is passed on', false],
  [50, 'too little for the ttl of the next caller, is released', true],
])('A hold whose confirmation took %d ms, which left %s', async (ms, _, isReleased) => {
  const lock = registryOf({ expireAfter: 1_000, idleBetweenTries: 100 }).obtain('key');
  const lease = await lock.lock();
  const next = settled(lock.lock({ ttl: 1_000, renew: false }));
  await time.advance(80);
  const confirmation = nextReply(redis);
  const unlocked = lease.unlock();
  await time.advance(ms);
  confirmation.resolve(1);
  await unlocked;
  expect(redis.calls[2]?.arguments?.includes('UNLINK') ?? false).toBe(isReleased);
  await next;
});

it('The script that ends a fair lease leaves the next caller without an answer where the lock was not its: it asks at once', async () => {
  const lock = registryOf({ lockType: 'fair' }).obtain('key');
  const lease = await lock.lock();
  const next = lock.lock();
  await time.advance(0);
  const taken = [20_000, '', 'another:1', '', 'another:1', 1];
  redis.evalSha.mockResolvedValueOnce(taken).mockResolvedValue(granted);
  await lease.unlock();
  expect(await settled(next)).toMatchObject({ after: 0, value: { key: 'key' } });
});

it('The script that ends a fair lease for a caller that leaves meanwhile is followed by a removal, which unlock() waits for', async () => {
  const lock = registryOf({ lockType: 'fair' }).obtain('key');
  const lease = await lock.lock();
  const stop = new AbortController();
  const next = settled(lock.lock({ signal: stop.signal }));
  await time.advance(0);
  const [exchange, removal] = [nextReply(redis), nextReply(redis)];
  let isUnlocked = false;
  const unlocked = lease.unlock().then(() => (isUnlocked = true));
  await time.advance(10);
  stop.abort('left');
  expect(await next).toMatchObject({ error: 'left' });
  exchange.resolve(granted);
  await time.advance(100);
  expect([redis.sent, isUnlocked]).toEqual([3, false]);
  removal.resolve(released);
  await unlocked;
});

it.each([
  ['the caller that was next, which is removed', granted, 4],
  ['nobody, and no attempt follows', [20_000, '', 'another:1', '', 'another:1', 1], 3],
])(
  'unlock() of a fair lease has its own time, though the next caller had less: the lock is that of %s',
  async (_, reply, sent) => {
    const { registry, warnings } = createRegistry(Object.assign(redis, { socketEpoch: 1 }), { lockType: 'fair' });
    const lock = registry.obtain('key');
    const lease = await lock.lock();
    const next = settled(lock.tryLock({ waitTime: 10 }));
    await time.advance(0);
    const exchange = nextReply(redis);
    const [message] = await published<{ isHandedOver: boolean }>('release', async () => {
      const unlocked = settled(lease.unlock());
      expect(await next).toMatchObject({ after: 50, error: { name: 'CannotAcquireLockError' } });
      await time.advance(10);
      exchange.resolve(reply);
      expect(await unlocked).toMatchObject({ after: 60, value: undefined });
    });
    const isUncertain = warnings.some(({ code }) => code === 'RELEASE_UNCERTAIN');
    expect([message?.isHandedOver, isUncertain, redis.sent]).toEqual([false, false, sent]);
  },
);

it('The script that ends a fair lease is followed by no attempt of a caller that has left: the one behind it waits on', async () => {
  const lock = registryOf({ lockType: 'fair' }).obtain('key');
  const lease = await lock.lock();
  const stop = new AbortController();
  const left = settled(lock.lock({ signal: stop.signal }));
  const waiting = settled(lock.lock());
  const exchange = nextReply(redis);
  const unlocked = expect(lease.unlock()).rejects.toThrow('stolen');
  await time.advance(0);
  // It is answered before, as over another connection of a pool.
  redis.evalSha.mockResolvedValue([20_000, '7', '', '', 'another:1']);
  stop.abort('left');
  expect(await left).toMatchObject({ error: 'left' });
  const ticket = redis.calls.at(-1)?.arguments?.[0];
  exchange.resolve([20_000, '', '', '', 'another:1', -1]);
  await unlocked;
  await time.advance(100);
  redis.evalSha.mockResolvedValueOnce([1_000, '', `${ticket}@1`, '']).mockResolvedValue(granted);
  expect(await waiting).toMatchObject({ value: { key: 'key' } });
});

it('An unlock that grants a fair lock to a caller that has left ends when Redis refuses to take that back', async () => {
  const lock = registryOf({ lockType: 'fair' }).obtain('key');
  const lease = await lock.lock();
  const stop = new AbortController();
  const left = expect(lock.lock({ signal: stop.signal })).rejects.toBe('left');
  const exchange = nextReply(redis);
  const unlocked = lease.unlock();
  await time.advance(0);
  stop.abort('left');
  await left;
  redis.evalSha.mockRejectedValue(new Error('NOPERM no rights'));
  exchange.resolve(granted);
  expect(await settled(unlocked)).toEqual({ after: 0, value: undefined });
});

it('A grant by message ends the silence about a poll whose answer never came: those behind it meet contention', async () => {
  redis.evalSha.mockResolvedValueOnce([20_000, '7', '', '', 'another:1']);
  const subscribe = jest.fn(async (_channel: string, _deliver: (message: string) => void) => undefined);
  const listening = Object.assign(redis, { subscribe, unsubscribe: async () => undefined });
  const lock = createRegistry(listening, { lockType: 'fair' }).registry.obtain('key');
  const first = settled(lock.lock());
  redis.evalSha.mockImplementationOnce(silence);
  await time.advance(1);
  expect(redis.sent).toBe(2);
  subscribe.mock.calls[0]?.[1](`grant ${redis.calls[0]?.arguments?.[0]}@1 1000 `);
  expect(await first).toMatchObject({ value: { key: 'key' } });
  await time.advance(300);
  expect(await settled(lock.lock({ waitTime: 100 }))).toMatchObject({ error: { name: 'LockTimeoutError' } });
});

it('A grant by a message that comes when its ttl is over, to the ms, is no lease: another attempt follows', async () => {
  redis.evalSha
    .mockResolvedValueOnce(queuedUntilLetIn(20_000, '1'))
    .mockResolvedValueOnce(queuedUntilLetIn(20_000, '2'));
  const subscribe = jest.fn(async (_channel: string, _deliver: (message: string) => void) => undefined);
  const listening = Object.assign(redis, { subscribe, unsubscribe: async () => undefined });
  const { registry } = createRegistry(listening, { expireAfter: 60 });
  const until = reliableUntil(time.now, 60);
  const call = settled(registry.semaphore('key', { permits: 1 }).lock());
  await time.advance(10);
  time.now = until;
  redis.evalSha.mockResolvedValue(sharedGranted);
  subscribe.mock.calls[0]?.[1](`semaphore:${redis.calls[1]?.arguments?.[1]}=2`);
  const { value: lease } = (await call) as { value: Lease };
  lease.assertHeld();
  expect(redis.sent).toBe(3);
});

it('The script that ends a lease for the next caller says whether it was lost', async () => {
  redis.evalSha.mockResolvedValueOnce(sharedGranted).mockResolvedValue(sharedRefused(20_000, 1));
  const semaphore = registryOf().semaphore('key', { permits: 1 });
  const lease = await semaphore.lock();
  const next = semaphore.lock();
  await time.advance(60);
  redis.evalSha.mockResolvedValue(sharedGranted);
  await expect(lease.unlock()).rejects.toMatchObject({ name: 'LockLostError', reason: 'expired' });
  (await next).assertHeld();
});

it.each([...DISTINCT_TYPES, 'semaphore'])(
  'A grant of a %s counts from before its attempt was sent (P3)',
  async (kind) => {
    const attempt = nextReply(redis);
    const lockType = DISTINCT_TYPES.find((type) => type === kind);
    const registry = registryOf({ lockType, expireAfter: 10_000 });
    const call = (lockType ? registry.obtain('key') : registry.semaphore('key', { permits: 1 })).lock();
    await time.advance(400);
    attempt.resolve(lockType ? granted : sharedGranted);
    expect((await call).remaining).toBe(10_000 - 11 - 400);
  },
);

it('A grant whose ttl is over to the ms as it is answered is no lease', async () => {
  const answered = (ms: number) => {
    redis.evalSha.mockImplementationOnce(async () => {
      time.now = reliableUntil(time.now, 50) + ms;
      return granted;
    });
    return settled(registryOf({}).obtain('key').tryLock({ ttl: 50 }));
  };
  expect(await answered(0)).toMatchObject({ error: { message: expect.stringContaining('nothing was left') } });
  expect(await answered(-1)).toMatchObject({ value: { key: 'key' } });
});

it('An attempt for several permits says so in its owner value', async () => {
  redis.evalSha.mockResolvedValue([0, 0, 3]);
  await registryOf().semaphore('key', { permits: 3 }).lock({ permits: 2 });
  expect(redis.calls[0]?.arguments?.[1]).toMatch(/:\d+\*2$/);
});

it('A call pauses for longer after each failure, and briefly again once Redis has answered', async () => {
  const fail = () => redis.evalSha.mockRejectedValueOnce(new Error('READONLY a replica'));
  for (let failure = 0; failure < 5; failure++) fail();
  redis.evalSha.mockResolvedValueOnce(refused(20_000));
  fail();
  const call = settled(registryOf({ idleBetweenTries: 100 }).obtain('key').lock());
  expect(await call).toMatchObject({ after: 10 + 20 + 40 + 80 + 160 + 100 + 10, value: { key: 'key' } });
});

it('An attempt after a refusal has what is left of the wait, and no more', async () => {
  redis.evalSha.mockResolvedValueOnce(refused(20_000)).mockImplementation(silence);
  const call = registryOf({ idleBetweenTries: 100 }).obtain('key').lock({ waitTime: 110 });
  expect(await settled(call)).toMatchObject({ after: 110, error: { name: 'LockTimeoutError' } });
});

it('A key of the wrong type is explained, and another error of Redis is not asked about', async () => {
  const lock = registryOf().obtain('key');
  redis.evalSha.mockRejectedValueOnce(new Error('WRONGTYPE no')).mockResolvedValueOnce('set');
  await expect(lock.lock()).rejects.toThrow('WRONGTYPE It is a key of type set in Redis, and it is used as a lock of');
  await time.advance(1_000);
  const { sent } = redis;
  redis.evalSha.mockRejectedValue(new Error('NOPERM no'));
  await expect(lock.lock()).rejects.toThrow('acquired: NOPERM no');
  expect(redis.sent).toBe(sent + 1);
  redis.evalSha.mockRejectedValueOnce(new Error('WRONGTYPE no')).mockImplementation(silence);
  const stop = new AbortController();
  const left = settled(lock.lock({ signal: stop.signal }));
  await time.advance(10);
  stop.abort('left');
  expect(await left).toMatchObject({ after: 10, error: 'left' });
});

it('An attempt that Redis refuses for good is no silence for the next callers', async () => {
  const lock = registryOf().obtain('key');
  const no = new Error('NOPERM no');
  redis.evalSha.mockResolvedValueOnce(refused(20_000)).mockRejectedValueOnce(no).mockImplementation(silence);
  await lock.tryLock();
  await settled(lock.tryLock());
  await time.advance(300);
  const first = settled(lock.lock({ waitTime: 400 }));
  expect(await settled(lock.lock({ waitTime: 100 }))).toMatchObject({ error: { name: 'LockTimeoutError' } });
  await first;
});

it('An attempt whose caller left with an error of another Redis is given back as any other', async () => {
  const attempt = nextReply(redis);
  const stop = new AbortController();
  const reason = new Error('WRONGTYPE no');
  const left = settled(registryOf().obtain('key').lock({ signal: stop.signal }));
  await time.advance(1);
  stop.abort(reason);
  expect(await left).toMatchObject({ error: reason });
  attempt.resolve(granted);
  await time.advance(1_000);
  expect(redis.calls.at(-1)?.arguments).toContain('UNLINK');
});

it.each([
  ['its caller had left', true, 'LockTimeoutError'],
  ['its client lost the connection', false, 'CannotAcquireLockError'],
])('An attempt that was not answered is silence for the next callers, unless %s: %p', async (_, isAborted, name) => {
  const lock = registryOf({}, { isOpen: true, isReady: true, on: () => undefined }).obtain('key');
  redis.evalSha.mockResolvedValueOnce(refused(20_000)).mockImplementation(silence);
  expect(await settled(lock.tryLock())).toMatchObject({ value: null });
  const stop = new AbortController();
  const left = settled(lock.tryLock({ signal: stop.signal }));
  await time.advance(10);
  const [second, third] = [settled(lock.lock({ waitTime: 1_000 })), settled(lock.lock({ waitTime: 300 }))];
  await time.advance(235);
  if (isAborted) stop.abort();
  else Object.assign(redis, { isReady: false });
  await left;
  expect(await third).toMatchObject({ error: { name } });
  await second;
});

it('A late answer ends the silence about its own attempt, and not about the next one', async () => {
  const lock = registryOf({ commandTimeout: 300 }).obtain('key');
  const attempt = lateReply();
  redis.evalSha.mockReturnValueOnce(attempt.promise).mockImplementation(silence);
  const first = settled(lock.lock({ waitTime: 1_000 }));
  await time.advance(400);
  attempt.resolve(refused(60_000));
  await time.advance(0);
  expect(await settled(lock.lock({ waitTime: 100 }))).toMatchObject({ error: { name: 'CannotAcquireLockError' } });
  await first;
});

it('A caller that stands back has asked for nothing yet: that is no silence', async () => {
  const lock = registryOf({ idleBetweenTries: 100, handOver: 50 }).obtain('key');
  const lease = await lock.lock();
  const first = lock.lock();
  await time.advance(60);
  await lease.unlock();
  expect(await settled(lock.lock({ waitTime: 50 }))).toMatchObject({ error: { name: 'LockTimeoutError' } });
  await time.advance(60);
  (await first).assertHeld();
});

it.each([
  ['is answered', 3],
  ['is not', 2],
])('A caller that stands back asks after that, and waits no longer than it may, if that %s', async (how, sent) => {
  redis.evalSha.mockResolvedValueOnce([0, 0, 2]); // a writer waits
  const { read } = registryOf().readWrite('key');
  await read.lock();
  const reply = lateReply();
  redis.evalSha.mockReturnValueOnce(reply.promise).mockImplementation(silence);
  const second = settled(read.lock({ waitTime: 1_000 }));
  await time.advance(55);
  expect(redis.sent).toBe(2);
  if (how === 'is answered') reply.resolve(sharedRefused(20_000, 0));
  await time.advance(75);
  expect(redis.sent).toBe(sent);
  expect(await second).toMatchObject({ after: 1_000, error: { name: 'CannotAcquireLockError' } });
  expect(redis.sent).toBe(sent);
});

/** A registry whose replicas acknowledge nothing, and how often a grant was given back. */
function unreplicated(options: Partial<RedisLockRegistryOptions> = {}) {
  const own = Object.assign(mockRedis(), { on: () => own, destroy: () => undefined, unref: () => undefined });
  Object.assign(own, { connect: async () => undefined, wait: async () => 0, socketEpoch: 1, isOpen: true });
  const client = Object.assign(redis, { socketEpoch: 1, duplicate: () => own });
  const settings = { minReplicas: 1, replicaTimeout: 50, unavailableAfter: 1_000, ...options };
  return { ...createRegistry(client, settings), own };
}

const LACKING = { name: 'CannotAcquireLockError', cause: { name: 'NotReplicatedError' } };

it('A grant that replicas do not acknowledge is given back and asked for again, with a warning, until they were missing for unavailableAfter', async () => {
  const { registry, warnings, own } = unreplicated();
  own.evalSha.mockImplementation(async () => {
    await new Promise((resolve) => clock.setTimeout(resolve as () => void, 250));
    return granted;
  });
  expect(await settled(registry.obtain('key').lock())).toMatchObject({ error: LACKING });
  expect(warnings).toMatchObject([{ code: 'NOT_REPLICATED' }]);
  expect(own.sent).toBeGreaterThan(2);
  expect(new Set(redis.calls.map((options) => options?.arguments?.[0])).size).toBe(own.sent);
});

it('A grant that replicas do not acknowledge is asked for again with another owner value, which a late release does not find', async () => {
  const { registry, own } = unreplicated();
  own.evalSha.mockRejectedValueOnce(new Error('Socket closed unexpectedly'));
  expect(await settled(registry.obtain('key').lock())).toMatchObject({ error: LACKING });
  const owners = own.calls.map((options) => options?.arguments?.[0]);
  // The attempt that was lost may still be executed: the next one repeats it.
  expect(owners[1]).toBe(owners[0]);
  expect(owners.length).toBeGreaterThan(2);
  expect(new Set(owners).size).toBe(owners.length - 1);
});

it('A grant that replicas do not acknowledge is given back by a caller that does not wait, without a warning', async () => {
  const { registry, warnings, own } = unreplicated();
  expect(await settled(registry.obtain('key').tryLock())).toMatchObject({ after: 0, error: LACKING });
  expect([warnings, own.sent, redis.sent]).toEqual([[], 1, 1]);
});

it('A grant that replicas do not acknowledge is given back before close resolves, though its caller has left', async () => {
  const { registry } = unreplicated();
  const stop = new AbortController();
  const releases = [nextReply(redis), nextReply(redis)];
  const left = settled(registry.obtain('key').lock({ signal: stop.signal }));
  await time.advance(0);
  stop.abort('left');
  expect(await left).toMatchObject({ error: 'left' });
  const closed = settled(registry.close());
  await time.advance(100);
  for (const { resolve } of releases) resolve(released);
  expect(await closed).toMatchObject({ after: 100 });
});

it('A grant that replicas do not acknowledge is given back within the time of its caller, a command, or unavailableAfter', async () => {
  const { registry } = unreplicated({ commandTimeout: 400 });
  redis.evalSha.mockImplementation(silence);
  const other = settled(registry.obtain('other').lock());
  expect(await settled(registry.obtain('key').lock({ waitTime: 300 }))).toMatchObject({ after: 300, error: LACKING });
  expect(await other).toMatchObject({ error: LACKING });
  expect(redis.calls.filter((call) => call?.keys?.[0]?.endsWith(':key'))).toHaveLength(2); // once more in the background
  const { registry: impatient } = unreplicated({ unavailableAfter: 200 });
  const end = await settled(impatient.obtain('impatient').lock());
  expect(end).toMatchObject({ error: LACKING });
  expect(end?.after).toBeLessThanOrEqual(200);
});

it('A grant that replicas do not acknowledge is warned of too where its attempt has ended a lease', async () => {
  const { registry, warnings } = createRegistry(Object.assign(redis, { socketEpoch: 1 }), { lockType: 'fair' });
  const lock = registry.obtain('key');
  const lease = await lock.lock();
  const next = settled(lock.lock());
  await time.advance(0);
  lock.passing.openProtocol().exchange = async () => ({ found: 'released', answer: new NotReplicatedError(1, 0, 50) });
  await lease.unlock();
  expect(await next).toMatchObject({ value: { key: 'key' } });
  expect(warnings).toMatchObject([{ code: 'NOT_REPLICATED' }]);
});

it.each([
  ['is contention for a caller that does not wait', 10, { value: null, after: 9 }],
  ['is silence for it where Redis does not answer that', 10_000, { error: { name: 'CannotAcquireLockError' } }],
])('A grant that replicas do not acknowledge, and is given back, %s', async (_, ms, end) => {
  const { registry } = unreplicated({ commandTimeout: 400 });
  redis.evalSha.mockImplementation(async () => {
    await new Promise((resolve) => clock.setTimeout(resolve as () => void, ms));
    return released;
  });
  const lock = registry.obtain('key');
  const first = settled(lock.lock({ waitTime: 600 }));
  await time.advance(1);
  expect(await settled(lock.tryLock())).toMatchObject(end);
  await first;
});

it.each([
  ['reports contention, once it was given back', async () => released, { name: 'LockTimeoutError' }],
  ['reports the lack while that is not known', silence, LACKING],
])(
  'A grant that replicas do not acknowledge, before another owner has the lock: the call %s',
  async (_, give, error) => {
    const { registry, own } = unreplicated({ commandTimeout: 100 });
    own.evalSha.mockImplementation(async () => refused(20_000)).mockResolvedValueOnce(granted);
    redis.evalSha.mockImplementation(give);
    expect(await settled(registry.obtain('key').lock({ waitTime: 800 }))).toMatchObject({ error });
  },
);

it('A grant that replicas do not acknowledge ends what was known of the holder before', async () => {
  const { registry, own } = unreplicated();
  own.evalSha.mockResolvedValueOnce(refused(20_000));
  redis.evalSha.mockImplementation(silence);
  const first = settled(registry.obtain('key').lock({ waitTime: 400 }));
  await time.advance(0);
  expect(await settled(registry.obtain('key').lock({ waitTime: 150 }))).toMatchObject({
    error: { name: 'CannotAcquireLockError' },
  });
  await first;
});

it('A grant with minReplicas after a long silence is requested once more, though another connection was answered meanwhile', async () => {
  const { registry, own } = unreplicated();
  Object.assign(own, { wait: async () => 1 });
  const other = await registry.obtain('other').lock();
  const attempt = nextReply(own);
  const call = settled(registry.obtain('key').lock());
  await time.advance(600);
  await other.unlock();
  await time.advance(100);
  attempt.resolve(granted);
  expect(await call).toMatchObject({ value: { key: 'key' } });
  expect(own.sent).toBe(3);
});

it('close() without a timeout waits for an unlock in flight, and for the end of its messages', async () => {
  const [release, left] = [lateReply(), lateReply()];
  const listening = { subscribe: async () => undefined, unsubscribe: jest.fn(() => left.promise) };
  const registry = registryOf({ lockType: 'pub-sub' }, { socketEpoch: undefined, ...listening });
  const lease = await registry.obtain('held').lock();
  redis.evalSha.mockResolvedValueOnce(refused(20_000));
  const waiting = settled(registry.obtain('key').lock());
  await time.advance(1);
  redis.evalSha.mockReturnValueOnce(release.promise);
  const unlocked = lease.unlock();
  let isClosed = false;
  const closed = registry.close({ timeout: 0 }).then(() => (isClosed = true));
  await time.advance(300);
  expect(listening.unsubscribe).not.toHaveBeenCalled();
  release.resolve(released);
  await time.advance(0);
  expect([listening.unsubscribe.mock.calls.length, isClosed]).toEqual([1, false]);
  left.resolve(undefined);
  await Promise.all([unlocked, closed, waiting]);
});

it.each([
  ['answered, is contention', true, 'LockTimeoutError'],
  ['not answered, is silence', false, 'CannotAcquireLockError'],
])('A grant that replicas do not acknowledge, whose return was %s to the next caller', async (_, isAnswered, name) => {
  const { registry } = unreplicated({ commandTimeout: 100 });
  if (!isAnswered) redis.evalSha.mockImplementation(silence);
  const first = settled(registry.obtain('key').lock({ waitTime: 400 }));
  await time.advance(0);
  const waitTime = isAnswered ? 5 : 105;
  expect(await settled(registry.obtain('key').lock({ waitTime }))).toMatchObject({ error: { name } });
  await first;
});

it.each([
  [50, 100],
  [80, 130],
])('A caller that leaves %d ms after the attempt before it is told then, or when that had 50 ms', async (at, after) => {
  const lock = registryOf({ idleBetweenTries: at }).obtain('key');
  redis.evalSha.mockResolvedValueOnce(refused(60_000)).mockImplementation(silence);
  const first = settled(lock.lock());
  await time.advance(0);
  expect(await settled(lock.lock({ waitTime: 100 }))).toMatchObject({ after });
  await first;
});

it.each([
  ['an error that may pass', () => Promise.reject(new Error('READONLY a replica')), /READONLY/],
  ['silence', silence, /Redis (has|did) not answer/],
])('A caller behind another one of its process is told of %s, which is no contention', async (_, answer, why) => {
  const lock = registryOf({ commandTimeout: 300 }).obtain('key');
  redis.evalSha.mockImplementation(answer);
  const first = settled(lock.lock());
  await time.advance(50);
  const failed = { name: 'CannotAcquireLockError', message: expect.stringMatching(why) };
  const calls = [() => lock.tryLock({ waitTime: 100 }), () => lock.lock({ waitTime: 100 }), () => lock.tryLock()];
  for (const call of calls) expect(await settled(call())).toMatchObject({ error: failed });
  await first;
});

it('An attempt has 250 ms in any case while Redis is silent about other locks, and no more than unavailableAfter', async () => {
  const registry = registryOf({ idleBetweenTries: 900, unavailableAfter: 1_000 });
  redis.evalSha.mockResolvedValueOnce(refused(60_000)).mockImplementation(silence);
  const call = settled(registry.obtain('key').lock());
  await time.advance(20);
  const other = settled(registry.obtain('other').tryLock());
  const end = await call;
  expect(end).toMatchObject({ error: { name: 'CannotAcquireLockError' } });
  expect(end?.after).toBeGreaterThanOrEqual(1_150);
  expect(end?.after).toBeLessThan(1_400);
  await other;
  expect(await settled(registryOf({ unavailableAfter: 100 }).obtain('key').lock())).toMatchObject({ after: 110 });
});

it('A last attempt that Redis does not answer in time fails so, though others were answered meanwhile', async () => {
  const semaphore = registryOf().semaphore('key', { permits: 1 });
  const refusal = sharedRefused(20_000, 1);
  redis.evalSha.mockResolvedValueOnce(refusal).mockImplementation(silence);
  const first = settled(semaphore.lock({ waitTime: 80 }));
  await time.advance(0);
  const [unanswered, answered] = [0, 1].map(() => settled(semaphore.lock({ waitTime: 90 })));
  redis.evalSha.mockReturnValueOnce(silence()).mockResolvedValueOnce(refusal);
  await time.advance(150);
  expect([await first, await answered]).toMatchObject([80, 90].map((waitTime) => ({ error: { waitTime } })));
  expect(await unanswered).toMatchObject({
    error: { message: expect.stringMatching(/: Redis did not answer in time$/) },
  });
});

it('A call for several keys counts a silence from when it was made', async () => {
  redis.evalSha.mockImplementation(silence);
  const end = await settled(registryOf({ unavailableAfter: 1_000 }).multi(['a', 'b']).lock());
  expect(end).toMatchObject({ error: { message: expect.stringContaining('not answered for 1000 ms') } });
  expect(end?.after).toBeLessThan(1_100);
});

it('A call for several keys leaves nothing of a lock that was not asked for, since an earlier one is taken', async () => {
  const slots = new Array(16_384);
  const several = registryOf({}, { slots }).multi(['{tag}:a', '{tag}:b']);
  redis.evalSha.mockResolvedValueOnce([refused(20_000), []]);
  expect(await settled(several.tryLock())).toMatchObject({ value: null });
  await time.advance(5_000);
  expect(redis.sent).toBe(1);
  redis.evalSha.mockResolvedValueOnce([refused(20_000), []]).mockResolvedValueOnce(granted);
  expect(await settled(several.lock())).toMatchObject({ value: { key: '{tag}:a + {tag}:b' } });
});

it('A call that fails on a cluster says which slot did not answer', async () => {
  const registry = registryOf({}, { isOpen: true, masters: [], slots: [] });
  redis.evalSha.mockImplementation(silence);
  expect(await settled(registry.obtain('{42}').lock({ waitTime: 10 }))).toMatchObject({
    error: { message: expect.stringMatching(/for \d+ ms \(slot 8000 of the cluster\)$/) },
  });
});

it('A caller that leaves at whatever moment of a grant leaves nothing', async () => {
  const registry = registryOf();
  for (let turns = 0; turns < 30; turns++) {
    const stop = new AbortController();
    const attempt = nextReply(redis);
    const call = settled(registry.obtain(`${turns}`).lock({ signal: stop.signal }));
    await time.advance(1);
    attempt.resolve(granted);
    for (let turn = 0; turn < turns; turn++) await Promise.resolve();
    stop.abort();
    const end = await call;
    await time.advance(1_000);
    const removals = redis.calls.filter(
      (options) => options?.keys?.[0]?.endsWith(`:${turns}`) && options.arguments?.includes('UNLINK'),
    );
    expect(removals.length > 0).toBe(end?.error !== undefined);
  }
});
