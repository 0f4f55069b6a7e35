import { subscribe, tracingChannel, unsubscribe } from 'node:diagnostics_channel';
import { afterEach, describe, expect, it, jest } from '@jest/globals';
import {
  type DistributedLock,
  type HoldMessage,
  LockInspectionError,
  LockLostError,
  type LockWarning,
  RedisLockRegistry,
} from '../../lib';
import { acquiredAtIn } from '../../lib/api/owner-name';
import type { BackedLockRegistry } from '../../lib/registry/backed-lock-registry';
import { InMemoryLockRegistry, type InMemoryLockRegistryOptions, InMemoryLocks } from '../../lib/testing';
import { ownerOf } from '../kinds/shared/shared-fixture';
import { untilCollected } from '../support/collected';
import { LOCK_TYPES } from '../support/lock-types';
import { mockRedis } from '../support/mock-redis';
import { until } from '../support/until';

const registries: InMemoryLockRegistry[] = [];

afterEach(async () => {
  jest.useRealTimers();
  for (const { locks } of registries) locks.comeBack();
  await Promise.all(registries.splice(0).map((registry) => registry.close({ timeout: 0 })));
});

function open(options?: InMemoryLockRegistryOptions): InMemoryLockRegistry {
  const registry = new InMemoryLockRegistry(options);
  registries.push(registry);
  return registry;
}

/** Two registries, as of two processes. */
function openTwo(options?: InMemoryLockRegistryOptions) {
  const locks = new InMemoryLocks();
  return {
    locks,
    ours: open({ ...options, locks, name: 'ours' }),
    theirs: open({ ...options, locks, name: 'theirs' }),
  };
}

it('InMemoryLocks of two registries are the same, and each registry has its own by default', async () => {
  const { ours, theirs } = openTwo();
  await ours.obtain('key').lock();
  expect(await theirs.obtain('key').tryLock()).toBeNull();
  expect(await open().obtain('key').tryLock()).not.toBeNull();
});

it('A lock in memory that has expired for its holder, and was given to a caller behind it, is lost for both by close()', async () => {
  const registry = open();
  const first = await registry.obtain('key').lock();
  const waiting = registry.obtain('key').lock();
  registry.locks.expire('key');
  const leases = [first, await waiting];
  expect(leases.map(({ signal }) => signal.aborted)).toEqual([false, false]);
  await registry.close({ timeout: 0 });
  expect(leases.map(({ signal }) => signal.reason)).toMatchObject([{ reason: 'closed' }, { reason: 'closed' }]);
});

it.each<[string, (registry: BackedLockRegistry) => DistributedLock]>([
  ['a lock', (registry) => registry.obtain('key')],
  ['a semaphore', (registry) => registry.semaphore('key', { permits: 2 })],
  ['a lock for reading', (registry) => registry.readWrite('key').read],
])('Timers fire while callers take %s in memory again and again', async (_, of) => {
  const registry = open();
  let hasFired = false;
  const timer = setTimeout(() => (hasFired = true), 20);
  const endsAt = performance.now() + 5_000;
  const worker = async () => {
    while (!hasFired && performance.now() < endsAt) await of(registry).run(() => undefined);
  };
  await Promise.all([worker(), worker()]);
  clearTimeout(timer);
  expect(hasFired).toBe(true);
});

it('Locks in Redis have their real times beside locks in memory', async () => {
  open();
  const lease = await new RedisLockRegistry(mockRedis(), { registryKey: 'test' }).obtain('key').lock();
  expect(Math.abs(Date.now() - (acquiredAtIn(ownerOf(lease)) ?? 0))).toBeLessThan(1_000);
});

it('A caller that waits in memory costs as much whether few wait or many', async () => {
  const { ours } = openTwo();
  const lease = await ours.obtain('key').lock();
  const [sorted, filtered] = [jest.spyOn(Array.prototype, 'sort'), jest.spyOn(Array.prototype, 'filter')];
  const calls = Array.from({ length: 100 }, () => ours.run('key', () => undefined));
  await lease.unlock();
  await Promise.all(calls);
  const lengths = [...sorted.mock.contexts, ...filtered.mock.contexts].map((array) => (array as []).length);
  jest.restoreAllMocks();
  expect(Math.max(...lengths)).toBeLessThan(10);
});

it('A permit in memory has no leases sorted while nobody waits', async () => {
  const semaphore = open().semaphore('key', { permits: 100 });
  const sorted = jest.spyOn(Array.prototype, 'sort');
  for (const lease of await Promise.all(Array.from({ length: 100 }, () => semaphore.lock()))) await lease.unlock();
  const lengths = sorted.mock.contexts.map((array) => (array as []).length);
  jest.restoreAllMocks();
  expect(Math.max(0, ...lengths)).toBeLessThan(10);
});

it('A writer in memory waits for a reader with the longest ttl without a timer that fires at once', async () => {
  const { read, write } = open().readWrite('key');
  await read.lock({ ttl: 2 ** 31 - 1 });
  const spy = jest.spyOn(globalThis, 'setTimeout');
  expect(await write.tryLock({ waitTime: 50 })).toBeNull();
  const delays = spy.mock.calls.map(([, ms]) => Number(ms));
  spy.mockRestore();
  expect(Math.max(...delays)).toBeLessThan(2 ** 31);
});

it('InMemoryLocks say who holds a lock', async () => {
  const { locks, ours } = openTwo({ fencing: true });
  expect(locks.holder('key')).toBeUndefined();
  const lease = await ours.obtain('key').lock({ ttl: 5_000 });
  expect(locks.holder('key')).toMatchObject({ name: 'ours', fencingToken: lease.fencingToken });
  expect(locks.holder('key')?.owner.startsWith(ours.id)).toBe(true);
  expect(locks.holder('key')?.remaining).toBeLessThanOrEqual(5_000);
  await lease.unlock();
  expect(locks.holder('key')).toBeUndefined();
});

it('InMemoryLocks expire by hand: the next waiter has the lock, and the holder learns it when it renews or unlocks', async () => {
  const { locks, ours, theirs } = openTwo();
  const lease = await ours.obtain('key').lock();
  const waiting = theirs.obtain('key').lock();
  locks.expire('key');
  const next = await waiting;
  expect(locks.holder('key')?.name).toBe('theirs');
  lease.assertHeld();
  await expect(lease.renew()).rejects.toMatchObject({ name: 'LockLostError', reason: 'stolen' });
  await expect(lease.unlock()).rejects.toThrow(LockLostError);
  next.assertHeld();
  await next.unlock();
  const last = await ours.obtain('key').lock();
  locks.expire('key');
  await expect(last.unlock()).rejects.toMatchObject({ reason: 'expired' });
});

it('InMemoryLocks are stolen by hand, also a free one, until that expires', async () => {
  const { locks, ours, theirs } = openTwo();
  const lease = await ours.obtain('key').lock();
  locks.steal('key');
  expect(locks.holder('key')).toMatchObject({ owner: 'somebody else', name: undefined });
  expect((await theirs.obtain('key').inspect()).acquiredAt).toBeLessThanOrEqual(Date.now());
  locks.steal('key', { ttl: 200 });
  await expect(lease.unlock()).rejects.toMatchObject({ reason: 'stolen' });
  expect(await theirs.obtain('key').tryLock()).toBeNull();
  await (await theirs.obtain('key').lock()).unlock();
  locks.steal('free');
  expect(await ours.obtain('free').tryLock()).toBeNull();
  locks.expire('free');
  expect(await ours.obtain('free').tryLock()).not.toBeNull();
});

it('InMemoryLocks tell a new number of permits to the first caller that still waits', async () => {
  const semaphore = open().semaphore('key', { permits: 1 });
  await semaphore.lock();
  expect(await semaphore.tryLock({ waitTime: 5 })).toBeNull();
  const second = semaphore.lock({ waitTime: 2_000 });
  await until(async () => (await semaphore.inspect()).waiting === 1);
  registries.at(-1)?.semaphore('key', { permits: 2 });
  (await second).assertHeld();
});

it('InMemoryLocks are stolen as a whole where they are a semaphore', async () => {
  const { locks, ours } = openTwo();
  const lock = ours.semaphore('key', { permits: 5 });
  const lease = await lock.lock();
  locks.steal('key', { ttl: 100 });
  expect(await lock.tryLock()).toBeNull();
  await expect(lease.renew()).rejects.toMatchObject({ name: 'LockLostError', reason: 'stolen' });
  await (await lock.lock()).unlock();
});

it('InMemoryLocks that are stolen while nobody has them are what the next caller uses them as', async () => {
  const { locks, ours } = openTwo();
  await ours.semaphore('key', { permits: 2 }).run(() => undefined);
  locks.steal('key', { ttl: 100 });
  expect(await ours.obtain('key').tryLock()).toBeNull();
  await ours.obtain('key').lock();
});

it('InMemoryLocks go silent by hand: nothing is answered, and what was requested is executed when they come back', async () => {
  const { locks, ours, theirs } = openTwo({ commandTimeout: 100, unavailableAfter: 200 });
  const lease = await ours.obtain('held').lock();
  locks.goSilent();
  await expect(theirs.obtain('key').tryLock()).rejects.toMatchObject({ code: 'ERR_CANNOT_ACQUIRE_LOCK' });
  await expect(theirs.obtain('key').lock()).rejects.toMatchObject({ code: 'ERR_CANNOT_ACQUIRE_LOCK' });
  await expect(theirs.obtain('key').inspect()).rejects.toThrow(LockInspectionError);
  await expect(lease.unlock()).rejects.toMatchObject({ code: 'ERR_LOCK_RELEASE' });
  locks.comeBack();
  // Attempts that were given up are undone, and the release is repeated.
  await until(() => locks.holder('key') === undefined && locks.holder('held') === undefined);
  expect(await ours.obtain('key').tryLock()).not.toBeNull();
});

it('InMemoryLocks wake a waiter in a silence, and give it the lock when they come back in time', async () => {
  const { locks, ours, theirs } = openTwo();
  const lease = await ours.obtain('key').lock({ ttl: 50 });
  const waiting = theirs.obtain('key').lock();
  locks.goSilent();
  await until(() => lease.signal.aborted && locks.holder('key') === undefined);
  locks.comeBack();
  (await waiting).assertHeld();
});

it('A registry in memory whose locks go silent warns once with what that affects, of long waits in time, and once afterwards', async () => {
  jest.useFakeTimers();
  const warnings: LockWarning[] = [];
  const onWarning = (warning: LockWarning): void => void warnings.push(warning);
  const { locks, ours, theirs } = openTwo({ warnAfter: 200, unavailableAfter: 4_000, onWarning });
  await ours.obtain('held').lock();
  await theirs.obtain('busy').lock();
  const waiting = expect(ours.obtain('busy').lock()).rejects.toMatchObject({ name: 'CannotAcquireLockError' });
  locks.goSilent();
  const ofSilence = () => warnings.filter(({ code }) => code === 'REDIS_SILENT');
  await jest.advanceTimersByTimeAsync(3_500);
  expect(warnings[0]).toMatchObject({ code: 'LONG_WAIT', key: 'busy' });
  expect(ofSilence()).toMatchObject([{ silence: { leases: 1, waiters: 1, isOver: false } }]);
  await Promise.all([waiting, jest.advanceTimersByTimeAsync(1_000)]);
  locks.comeBack();
  await jest.advanceTimersByTimeAsync(1_000);
  expect(ofSilence()).toHaveLength(2);
  expect(ofSilence()[1]).toMatchObject({ silence: { isOver: true } });
});

it('InMemoryLocks come back, also when a request of the silence is for a lock that is used as something else', async () => {
  const { locks, ours, theirs } = openTwo();
  const lease = await ours.obtain('key').lock();
  locks.goSilent();
  const refused = expect(theirs.semaphore('key', { permits: 2 }).lock()).rejects.toThrow('WRONGTYPE It is a lock of');
  const renewed = lease.renew();
  locks.comeBack();
  await refused;
  await renewed;
  expect(await ours.obtain('other').tryLock()).not.toBeNull();
});

it('InMemoryLocks close at once in a silence: what is not answered fails, and is executed all the same', async () => {
  const { locks, ours, theirs } = openTwo();
  const lease = await ours.obtain('key').lock();
  await theirs.obtain('taken').lock();
  locks.goSilent();
  const unlocked = expect(lease.unlock()).rejects.toThrow('The registry was closed before Redis answered');
  const refused = expect(ours.semaphore('taken', { permits: 2 }).lock()).rejects.toMatchObject({
    name: 'RegistryClosedError',
  });
  const asked = expect(theirs.obtain('key').inspect()).resolves.toMatchObject({ held: false });
  await ours.close({ timeout: 0 });
  await Promise.all([unlocked, refused]);
  locks.comeBack();
  await asked;
});

it('A lease in memory is held since its grant, however long its caller waited', async () => {
  jest.useFakeTimers();
  const { ours } = openTwo();
  const lost: unknown[] = [];
  const note = (message: unknown) => lost.push(message);
  const first = await ours.obtain('key').lock();
  const next = ours.obtain('key').lock({ ttl: 1_000 });
  await jest.advanceTimersByTimeAsync(5_000);
  await first.unlock();
  await next;
  subscribe('redis-lock-registry:lost', note);
  await jest.advanceTimersByTimeAsync(1_000);
  unsubscribe('redis-lock-registry:lost', note);
  expect(lost).toMatchObject([{ heldFor: expect.closeTo(1_000, -2) }]);
});

it('A minHold in memory ends in time, though the unlock before it is executed after a silence', async () => {
  jest.useFakeTimers();
  const { locks, ours, theirs } = openTwo();
  const lease = await ours.obtain('key').lock({ minHold: 1_000 });
  locks.goSilent();
  const unlocked = lease.unlock();
  await jest.advanceTimersByTimeAsync(900);
  locks.comeBack();
  await unlocked;
  expect(await theirs.obtain('key').tryLock()).toBeNull();
  await jest.advanceTimersByTimeAsync(100);
  expect(await theirs.obtain('key').tryLock()).not.toBeNull();
});

it('InMemoryLocks of several registryKeys are distinguished', async () => {
  const locks = new InMemoryLocks();
  expect(() => locks.holder('key')).toThrow('No registry was made with these locks yet');
  const [orders, carts] = [open({ locks, registryKey: 'orders' }), open({ locks, registryKey: 'carts' })];
  await orders.obtain('key').lock();
  expect(await carts.obtain('key').tryLock()).not.toBeNull();
  expect(() => locks.expire('key')).toThrow('several registryKeys (orders, carts): say which is meant');
  locks.expire('key', { registryKey: 'orders' });
  expect(locks.holder('key', { registryKey: 'orders' })).toBeUndefined();
  expect(locks.holder('key', { registryKey: 'carts' })).toBeDefined();
});

it('InMemoryLocks refuse bad input at once', () => {
  const { locks } = open();
  expect(() => locks.expire('key')).toThrow('Lock "key" cannot expire: nobody holds it');
  expect(() => locks.steal('')).toThrow(TypeError);
  expect(() => locks.steal('key', { ttl: 1 })).toThrow('`ttl`');
  expect(() => locks.steal('key', { tll: 10 } as object)).toThrow('Unknown option `tll`');
  expect(() => new InMemoryLockRegistry({ locks: {} as InMemoryLocks })).toThrow('`locks`');
  expect(() => new InMemoryLockRegistry({ idleBetweenTries: 5 } as object)).toThrow('Unknown option');
  expect(() => new InMemoryLockRegistry({ expireAfter: 1 })).toThrow(RangeError);
});

it('InMemoryLocks forget locks that nobody uses', async () => {
  const { locks } = open();
  const unused = new WeakRef(locks.find('unused'));
  for (let i = 0; i < 100; i++) locks.find(`lock ${i}`);
  await untilCollected(unused);
  expect(locks.names).toEqual([]);
});

it.each(['stolen', 'expired'] as const)('No result of once is kept in memory whose lock was %s', async (reason) => {
  const { locks, ours } = openTwo();
  const task = () => (reason === 'stolen' ? locks.steal('key') : locks.expire('key'));
  await expect(ours.once('key', task, { keepFor: 60_000 })).rejects.toMatchObject({ name: 'LockLostError', reason });
  expect(await ours.forget('key')).toBe(false);
});

describe('A registry in memory', () => {
  const names = LOCK_TYPES.flatMap((lockType) => [true, false].map((fencing) => ({ lockType, fencing })));

  it.each([...names, { fencing: true }, { fencing: false }])(
    'A registry in memory of %j refuses the keys that Redis refuses, with the same error',
    (options) => {
      const inRedis = new RedisLockRegistry(mockRedis(), { ...options, registryKey: 'test' });
      const outcome = (take: () => unknown) => {
        try {
          take();
          return 'taken';
        } catch (error) {
          return String(error);
        }
      };
      const outcomesOf = (registry: BackedLockRegistry, key: string) => [
        outcome(() => registry.obtain(key)),
        outcome(() => registry.multi(['other', key])),
        outcome(() => registry.semaphore(key, { permits: 2 })),
        outcome(() => registry.readWrite(key)),
      ];
      for (const key of ['a}b', 'a{b', '{}x', 'a{}b{c}', '{tag}x', 'plain']) {
        expect([key, ...outcomesOf(open(options), key)]).toEqual([key, ...outcomesOf(inRedis, key)]);
      }
      expect(outcomesOf(open(options), 'a}b')).toContain(
        'RangeError: Expected the braces in "test:a}b" to make a hash tag, as in "{tag}:rest"',
      );
    },
  );

  it('A registry in memory inspects, and unlocks by force: a waiter has the lock, and the holder learns it', async () => {
    const { ours, theirs } = openTwo({ fencing: true });
    const lease = await ours.obtain('key').lock();
    const waiting = theirs.obtain('key').lock();
    const state = { held: true, name: 'ours', isOurs: true, waiting: 1, fencingToken: lease.fencingToken };
    expect(await ours.obtain('key').inspect()).toMatchObject(state);
    expect(await theirs.obtain('key').forceUnlock()).toMatchObject({ ...state, isOurs: false });
    expect((await waiting).fencingToken).toBeGreaterThan(lease.fencingToken as number);
    await expect(lease.renew()).rejects.toMatchObject({ reason: 'stolen' });
  });

  it('A registry in memory frees a lock by force, whose holder learns that it is gone', async () => {
    const { ours, theirs } = openTwo();
    const lease = await ours.obtain('key').lock();
    await theirs.obtain('key').forceUnlock();
    await expect(lease.unlock()).rejects.toMatchObject({ reason: 'expired' });
    expect(await ours.obtain('key').inspect()).toMatchObject({ held: false, remaining: 0, owner: undefined });
  });

  it.each(['start', 'end', 'asyncStart', 'asyncEnd', 'error'])(
    'A registry in memory publishes to who subscribes to nothing but the %s of a section',
    async (name) => {
      const heard = jest.fn();
      subscribe(`tracing:redis-lock-registry:hold:${name}`, heard);
      await expect(open().run('key', () => Promise.reject(new Error('no')))).rejects.toThrow('no');
      unsubscribe(`tracing:redis-lock-registry:hold:${name}`, heard);
      expect(heard).toHaveBeenCalledTimes(1);
    },
  );

  it('A registry in memory publishes a section from its begin to its end, with what was lost and without re-entries', async () => {
    const events: [string, HoldMessage][] = [];
    const note = (name: string) => (message: unknown) => void events.push([name, message as HoldMessage]);
    const names = ['start', 'end', 'asyncStart', 'asyncEnd', 'error'] as const;
    const subscribers = Object.fromEntries(names.map((name) => [name, note(name)])) as never;
    tracingChannel('redis-lock-registry:hold').subscribe(subscribers);
    try {
      const { locks, ours } = openTwo();
      const lease = await ours.obtain('key').lock();
      locks.steal('key');
      await lease.renew().catch(() => undefined);
      expect(events.map(([name]) => name)).toEqual(['start', 'end', 'error', 'asyncStart', 'asyncEnd']);
      expect(events[2]?.[1]).toMatchObject({ error: { reason: 'stolen' }, outcome: 'lost' });
      await ours.run('outer', () => ours.multi(['inner', 'outer']).run(() => undefined));
      const begun = events.filter(([name]) => name === 'start').map(([, { leases }]) => leases.map(({ key }) => key));
      expect(begun).toEqual([['key'], ['outer'], ['inner']]);
    } finally {
      tracingChannel('redis-lock-registry:hold').unsubscribe(subscribers);
    }
  });

  it('A registry in memory takes the defaults of a lock type', async () => {
    const lease = await open({ lockType: 'redisson' }).obtain('key').lock();
    expect(lease.remaining).toBeLessThanOrEqual(30_000);
    expect((await open().obtain('key').lock()).remaining).toBeGreaterThan(30_000);
  });
});
