import { beforeEach, expect, it } from '@jest/globals';
import { type AdoptOptions, type Lease, type LockError, NotReplicatedError, type RedisLock } from '../../lib';
import type { RedisLease } from '../../lib/core/lease';
import { FakeClock } from '../support/fake-clock';
import { mockRedis, nextReply, released, silence, stolen } from '../support/mock-redis';
import { createRegistry } from '../support/test-registry';

const DETACHED = 'detached@web-7:4121:h0pCmsO5S7mSQpHDOZJ1Sw:1700000000123456';

const time = FakeClock.install();
let redis: ReturnType<typeof mockRedis>;

beforeEach(() => {
  redis = mockRedis();
});

const open = (cacheCapacity = 10) =>
  createRegistry(redis, { registryKey: 'orders', commandTimeout: 1_000, cacheCapacity }).registry;
const textOf = (ttl = 3_000, kind = 'renewed', minHold = 0, key = 'key') =>
  `lease/1 spring ${DETACHED} ${ttl} ${kind} ${minHold} orders:${key}`;

/** The owner values and the ttl of each script that was to adopt. */
const adoptions = () => redis.calls.flatMap((call) => (call?.arguments?.[0] === DETACHED ? [call.arguments] : []));
const ownersGiven = () => adoptions().map(([, owner]) => owner);

it.each<[ttl: number, kind: string, minHold: number, options: AdoptOptions, asked: number, renews: boolean]>([
  [3_000, 'renewed', 0, {}, 3_000, true],
  [3_000, 'fixed', 0, {}, 3_000, false],
  [3_000, 'fixed', 0, { renew: true }, 3_000, true],
  [3_000, 'renewed', 0, { renew: false, ttl: 9_000 }, 9_000, false],
  [3_000, 'fixed', 5_000, { ttl: 4_000 }, 5_000, false],
])('A lease of %d ms, %s, with %d ms to be held is adopted: %j', async (ttl, kind, minHold, how, asked, renews) => {
  const registry = open();
  const lease = await registry.adopt(textOf(ttl, kind, minHold), how);
  expect(adoptions()).toEqual([[DETACHED, expect.any(String), String(asked)]]);
  expect([lease.key, Math.floor(lease.remaining)]).toEqual(['key', asked - 1 - asked / 1_000]);
  await registry.renewLock('key');
  await time.advance(asked);
  expect(lease.remaining > 0).toBe(renews);
  if (renews) await lease.unlock();
  await expect(registry.renewLock('key')).rejects.toMatchObject({ code: 'ERR_NOT_LOCK_OWNER' });
});

it('A lease that is adopted is kept for what is left of its minHold', async () => {
  const lease = await open().adopt(textOf(3_000, 'renewed', 2_000));
  await time.advance(500);
  await lease.unlock();
  expect(redis.calls.at(-1)?.arguments?.slice(1, 4)).toEqual(['1500', '2000', '3000']);
});

it('A text that is not adopted says why, and what was held here of its key is lost when another one is', async () => {
  const registry = open();
  const own = await registry.obtain('key').lock();
  for (const reply of [stolen, 0]) {
    const reason = reply === stolen ? 'stolen' : 'expired';
    redis.evalSha.mockResolvedValueOnce(reply);
    await expect(registry.adopt(textOf())).rejects.toMatchObject({ name: 'LockLostError', key: 'key', reason });
  }
  expect(own.signal.aborted).toBe(false);
  const first = await registry.adopt(textOf());
  expect(own.signal.reason).toMatchObject({ reason: 'stolen' });
  expect(new Set(ownersGiven()).size).toBe(3);
  await own.unlock().catch(() => undefined);
  await time.advance(500);
  // The end of the one before is not that of the next one.
  const reply = nextReply(redis);
  const unlocking = first.unlock();
  const second = await registry.adopt(textOf());
  reply.resolve(released);
  await unlocking;
  await registry.renewLock('key');
  await second.unlock();
  expect((registry.obtain('key') as RedisLock).services.besideTurn('key')).toBeUndefined();
  await expect(registry.renewLock('key')).rejects.toMatchObject({ code: 'ERR_NOT_LOCK_OWNER' });
});

it('Calls with one text adopt one after the other, and have the same owner value until one is answered', async () => {
  const registry = open();
  redis.evalSha.mockImplementation(silence);
  const outcomes: (Lease | LockError)[] = [];
  const adopt = () =>
    registry.adopt(textOf()).then(
      (lease) => outcomes.push(lease),
      (error: LockError) => outcomes.push(error),
    );
  void adopt();
  void adopt();
  await time.advance(900);
  expect(adoptions()).toHaveLength(1);
  await time.advance(200);
  expect([new Set(ownersGiven()).size, outcomes]).toEqual([
    1,
    [{ name: 'CannotAcquireLockError' }].map((one) => expect.objectContaining(one)),
  ]);
  redis.evalSha.mockResolvedValue(1);
  await time.advance(1_000);
  await adopt();
  expect(new Set(ownersGiven()).size).toBe(1);
  await Promise.all([adopt(), adopt()]);
  expect([new Set(ownersGiven()).size, outcomes.length]).toEqual([3, 5]);
});

it.each([
  [{}, 4_000],
  [{ ttl: 9_000 }, 10_000],
  [{ ttl: 300 }, 4_000],
])('An adoption (%j) without an answer is remembered for %d ms, and while another try runs', async (options, life) => {
  const registry = open();
  const tries = async (since = 0) => {
    await registry.adopt(textOf(), options).catch(() => undefined);
    return new Set(ownersGiven().slice(since)).size;
  };
  redis.evalSha.mockImplementation(silence);
  const first = tries();
  await time.advance(1_000);
  expect(await first).toBe(1);
  const endsAt = time.now + life;
  // Nothing is sent to remove what it may have done.
  await time.advance(life - 10);
  expect(redis.sent).toBe(adoptions().length);
  const second = tries();
  await time.advance(500);
  expect(time.now).toBeGreaterThan(endsAt);
  const third = tries();
  await time.advance(500);
  expect(await second).toBe(1);
  await time.advance(1_000);
  expect(await third).toBe(1);
  await time.advance(life + 10);
  const fourth = tries();
  await time.advance(1_000);
  expect(await fourth).toBe(2);
});

it.each([
  ['the last of them', {}, {}, 3_000 + 4_000],
  ['the one with the longest ttl', { ttl: 30_000 }, {}, 31_000],
])('An adoption of which two tries had no answer is remembered for as long as %s', async (_, one, other, life) => {
  const registry = open();
  redis.evalSha.mockImplementation(silence);
  const owners = async (options: AdoptOptions) => {
    await time.settled(registry.adopt(textOf(), options));
    return new Set(ownersGiven()).size;
  };
  const first = owners(one);
  await time.advance(1_000);
  const since = time.now;
  await time.advance(2_000);
  const second = owners(other);
  await time.advance(1_000);
  await time.advance(since + life - 10 - time.now);
  const third = owners({});
  await time.advance(1_000);
  expect(await Promise.all([first, second, third])).toEqual([1, 1, 1]);
  await time.advance(40_000);
  const fourth = owners({});
  await time.advance(1_000);
  expect(await fourth).toBe(2);
});

it('A lease that is adopted is waited for by close()', async () => {
  const registry = open();
  const lease = await registry.adopt(textOf());
  const closed = time.settled(registry.close({ timeout: 5_000 }));
  await time.advance(100);
  lease.assertHeld();
  await lease.unlock();
  expect(await closed).toMatchObject({ after: 100 });
});

it('close() waits for the unlock of a lease that was adopted before the last one', async () => {
  const registry = open();
  const first = await registry.adopt(textOf());
  const reply = nextReply(redis);
  const unlocking = first.unlock();
  const second = await registry.adopt(textOf());
  await second.unlock();
  const closed = time.settled(registry.close());
  await time.advance(100);
  reply.resolve(released);
  await unlocking;
  expect(await closed).toMatchObject({ after: 100 });
});

it('close() right after the answer to an adoption refuses it, or waits for its lease, which is renewed', async () => {
  for (let jobs = 0; jobs < 12; jobs++) {
    const registry = open();
    const reply = nextReply(redis);
    const adopting = time.settled(registry.adopt(textOf()));
    await time.advance(1);
    reply.resolve(1);
    for (let i = 0; i < jobs; i++) await null;
    const closed = registry.close({ timeout: 5_000 });
    await time.advance(3_000);
    const { value, error } = (await adopting) ?? {};
    if (value === undefined) expect(error).toMatchObject({ name: 'RegistryClosedError' });
    else await (value as Lease).renew().then(() => (value as Lease).unlock());
    await closed;
  }
});

it('Messages about a key are for what has taken it last: an adopted lease, or a caller of this process since', async () => {
  const registry = open();
  const lock = registry.obtain('key');
  const own = await lock.lock();
  const { hold } = (await registry.adopt(textOf())) as RedisLease;
  const protocol = lock.passing.openProtocol();
  expect([own.signal.aborted, protocol.holder === hold]).toEqual([true, true]);
  await lock.lock();
  const { holder } = protocol;
  hold.lose('stolen');
  expect([holder === hold, protocol.holder === holder]).toEqual([false, true]);
});

it('close() ends an adopted lease also where this process has taken the lock since, and that lease has not heard of it (P4)', async () => {
  const registry = open();
  const adopted = await registry.adopt(textOf());
  const own = await registry.obtain('key').lock();
  const closed = time.settled(registry.close({ timeout: 0 }));
  await time.advance(10);
  const reasons = [adopted, own].map(({ signal }) => signal.reason);
  expect(reasons).toMatchObject([{ reason: 'closed' }, { reason: 'closed' }]);
  expect(await closed).toMatchObject({ after: 0 });
});

it('An adoption with the longest ttl that was not answered is remembered too', async () => {
  const registry = open();
  redis.evalSha.mockImplementation(silence);
  for (const _ of ['first', 'second']) {
    await time.settled(registry.adopt(textOf(2 ** 31 - 1)));
    await time.advance(100);
  }
  expect(new Set(ownersGiven()).size).toBe(1);
});

it('A lease that is adopted is none of the locks for reading and writing of its key', async () => {
  const registry = open();
  await registry.adopt(textOf());
  const { read, write } = registry.readWrite('key');
  const locks = [registry.obtain('key'), read, write];
  expect(locks.map((lock) => lock.isAcquiredInThisProcess)).toEqual([true, false, false]);
});

it.each([
  ['that was not answered', ['3000']],
  ['that was answered too late', ['3000']],
  ['that was answered by a second try', []],
])('close() leaves a lease to others after an adoption %s', async (how, given) => {
  const registry = open();
  const reply = nextReply(redis);
  const adopting = registry.adopt(textOf()).catch(({ name }: Error) => name);
  if (how !== 'that was not answered') {
    await time.advance(1_000);
    expect(await adopting).toBe('CannotAcquireLockError');
    if (how === 'that was answered too late') reply.resolve(1);
    else await registry.adopt(textOf());
    await time.advance(500);
  }
  const closing = registry.close({ timeout: 0 });
  await time.advance(10);
  reply.resolve(1);
  await time.advance(100);
  await closing;
  const detached = redis.calls.map((call) => call?.arguments ?? []).filter(([, to]) => to === DETACHED);
  expect([...new Set(detached.map(([, , ttl]) => ttl))]).toEqual(given);
});

it('An adoption that too few replicas have rejects at once, and close() leaves the lease to others', async () => {
  const registry = open();
  redis.evalSha.mockRejectedValueOnce(new NotReplicatedError(1, 0, 100));
  const error = { name: 'CannotAcquireLockError', cause: expect.any(NotReplicatedError) };
  expect(await time.settled(registry.adopt(textOf()))).toMatchObject({ after: 0, error });
  await time.advance(500);
  expect(redis.sent).toBe(1);
  await registry.close({ timeout: 0 });
  expect(redis.calls.at(-1)?.arguments?.slice(1)).toEqual([DETACHED, '3000']);
});

it('A lock is not evicted while a lease of it is being adopted', async () => {
  const registry = open(1);
  redis.evalSha.mockImplementationOnce(silence);
  const adopting = registry.adopt(textOf()).catch((error: Error) => error.name);
  await time.advance(1);
  expect(() => registry.obtain('other')).toThrow('cannot be cached');
  await time.advance(1_000);
  expect(await adopting).toBe('CannotAcquireLockError');
  registry.obtain('other');
});

it('A lock is not evicted between two tries to adopt a lease of it', async () => {
  const registry = open();
  const lock = registry.obtain('key');
  const reply = nextReply(redis);
  const [first, second] = [registry.adopt(textOf()), registry.adopt(textOf())];
  await time.advance(1);
  reply.reject(new Error('NOPERM no rights'));
  for (const isOver = first.catch(() => undefined).then(() => 'over'); ; await null) {
    registry.expireUnusedOlderThan(-1);
    if ((await Promise.race([isOver, null])) === 'over') break;
  }
  await second;
  expect(registry.obtain('key')).toBe(lock);
});
