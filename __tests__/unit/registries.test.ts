import { AsyncLocalStorage } from 'node:async_hooks';
import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import { setImmediate } from 'node:timers/promises';
import { beforeEach, describe, expect, it, jest } from '@jest/globals';
import {
  type DistributedLock,
  type Lease,
  LockRegistry,
  type LockWarning,
  NotReplicatedError,
  type RedisClient,
  RedisLockRegistry,
  type RedisLockRegistryOptions,
} from '../../lib';
import type { LockBackend } from '../../lib/core/backend';
import { pause } from '../../lib/internal/clock';
import { BackedLockRegistry } from '../../lib/registry/backed-lock-registry';
import { forceUnlockOf } from '../../lib/registry/redis-lock-registry';
import { registrySettings } from '../../lib/registry/settings';
import { InMemoryLockRegistry, InMemoryLocks } from '../../lib/testing';
import { inMemoryBackend } from '../../lib/testing/in-memory-locks';
import { FakeClock } from '../support/fake-clock';
import { mockRedis, refused, silence } from '../support/mock-redis';

const time = FakeClock.install();
let warnings: LockWarning[];
const onWarning = (warning: LockWarning): void => void warnings.push(warning);

beforeEach(() => {
  warnings = [];
});

/** A registry in memory, and what it asks of its backend. */
class Spied extends BackedLockRegistry {
  readonly locks: InMemoryLocks;
  readonly backend: LockBackend;
  /** What it does not listen to any more. */
  readonly stopped: string[];

  constructor(options: Partial<RedisLockRegistryOptions> = {}, locks = new InMemoryLocks()) {
    const settings = registrySettings({ registryKey: 'orders', lockType: 'spin', onWarning, ...options }, 'spin');
    const stopped: string[] = [];
    const noted = (what: string, listen: LockBackend['onSilence']) => (listener: () => void) => {
      const stop = listen(listener);
      return () => {
        stopped.push(what);
        stop();
      };
    };
    const memory = inMemoryBackend(locks, settings);
    const onReconnect = noted('reconnect', memory.onReconnect);
    const backend = { ...memory, onReconnect, onSilence: noted('silence', memory.onSilence) };
    super(settings, backend);
    [this.locks, this.backend, this.stopped] = [locks, backend, stopped];
    locks.use('orders');
  }
}

const CLOSED = { name: 'RegistryClosedError' };

it('A registry in memory warns of a silence, whatever fraction of a ms it began at', async () => {
  // In floating point, 3 s after this time is less than 3 s away from it.
  time.now = 260_000.278816;
  const registry = new Spied();
  registry.locks.steal('key', { registryKey: 'orders' });
  const waiting = registry.obtain('key').lock();
  registry.locks.goSilent();
  waiting.catch(() => undefined);
  await time.advance(3_500);
  expect(warnings).toMatchObject([{ code: 'REDIS_SILENT' }]);
  registry.locks.comeBack();
  await registry.close({ timeout: 0 });
});

describe('A registry that is closed', () => {
  let registry: Spied;
  let close: ReturnType<typeof jest.spyOn>;
  let cutOff: ReturnType<typeof jest.spyOn>;
  beforeEach(() => {
    registry = new Spied();
    close = jest.spyOn(registry.backend, 'close');
    cutOff = jest.spyOn(registry.backend as Required<LockBackend>, 'cutOff');
  });

  it.each([
    ['10 s', undefined, 10_000],
    ['as long as its caller says', 300, 300],
    ['not at all', 0, 0],
  ])('A registry that is closed waits for its holders: %s', async (_, timeout, ms) => {
    const lease = await registry.obtain('key').lock();
    const lost = jest.fn();
    lease.signal.addEventListener('abort', lost);
    expect(await time.settled(registry.close(timeout === undefined ? {} : { timeout }))).toMatchObject({ after: ms });
    expect(lease.signal.reason).toMatchObject({ reason: 'closed' });
    expect(warnings).toEqual([expect.objectContaining({ code: 'CLOSED_WHILE_HELD' })]);
    expect([close.mock.calls.length, cutOff.mock.calls.length]).toEqual([1, ms === 0 ? 1 : 0]);
    expect(registry.locks.holder('key', { registryKey: 'orders' })).toBeDefined();
  });

  it('A registry that is closed ends as soon as its holders do, and has no timer then', async () => {
    const leases = [await registry.obtain('key').lock(), await registry.semaphore('permits', { permits: 2 }).lock()];
    const waiting = [registry.obtain('key').lock(), registry.readWrite('prices').write.lock()];
    await (await (waiting[1] as Promise<Lease>)).unlock();
    const rejected = expect(waiting[0]).rejects.toMatchObject(CLOSED);
    const closed = time.settled(registry.close());
    await rejected;
    await time.advance(20);
    for (const lease of leases) {
      lease.assertHeld();
      await lease.unlock();
    }
    expect((await closed)?.after).toBeLessThan(100);
    expect([time.pending, warnings, close.mock.calls.length]).toEqual([0, [], 1]);
  });

  it('A registry that is closed waits for an unlock in flight, though its timeout is over, and for its backend', async () => {
    const lease = await registry.obtain('key').lock();
    close.mockImplementation(() => pause(50));
    registry.locks.goSilent();
    const unlocked = lease.unlock();
    const closed = time.settled(registry.close({ timeout: 10 }));
    await time.advance(100);
    registry.locks.comeBack();
    await unlocked;
    expect((await closed)?.after).toBe(150);
  });

  it('A registry that is closed takes no caller, and closes once', async () => {
    await registry.once('key', () => 1, { keepFor: 60_000 });
    await registry[Symbol.asyncDispose]();
    expect(close).toHaveBeenCalledTimes(1);
    await expect(registry.once('key', () => 1, { keepFor: 1_000 })).rejects.toMatchObject({ ...CLOSED, key: 'key' });
    await Promise.all([registry.close(), registry.close({ timeout: 0 })]);
    expect([close.mock.calls.length, cutOff.mock.calls.length]).toEqual([1, 1]);
    await expect(registry.run('key', () => 1)).rejects.toMatchObject(CLOSED);
  });

  it('A registry asks about its leases when its backend is back, and hears nothing of it once it is closed', async () => {
    const lease = await registry.obtain('key').lock();
    registry.locks.expire('key', { registryKey: 'orders' });
    registry.locks.comeBack();
    await time.advance(10);
    expect([lease.signal.aborted, registry.stopped]).toEqual([true, []]);
    await registry.close();
    expect(registry.stopped).toEqual(['reconnect', 'silence']);
  });

  it('A registry that is closed while leases are held warns once of all leases that it gave up: how many, of which types, and three keys of each', async () => {
    const { read } = registry.readWrite('prices');
    const semaphores = ['x', 'y', 'z'].map((key) => registry.semaphore(key, { permits: 3 }));
    const [semaphore] = semaphores as [DistributedLock];
    const unlocked = [await registry.obtain('unlocked').lock(), await semaphore.lock(), await read.lock()];
    const lost = await registry.obtain('lost').lock();
    registry.locks.expire('lost', { registryKey: 'orders' });
    await lost.renew().catch(() => undefined);
    await registry.multi(['a', 'b', 'c', 'd', 'e']).lock();
    for (const lock of [...semaphores, read, read]) await lock.lock();
    for (const lease of unlocked) await lease.unlock();
    await Promise.all([registry.close({ timeout: 0 }), registry.close()]);
    await registry.close();
    const types = '5 of type spin ("a", "b", "c", …), 2 of type read ("prices"), 3 of type semaphore ("x", "y", "z")';
    const message = `Registry "orders" was closed, and gave up 10 leases after 0 ms: ${types}`;
    expect(warnings).toEqual([{ code: 'CLOSED_WHILE_HELD', message }]);
  });

  it('A registry that is closed while leases are held closes once, though a listener of a loss closes it too', async () => {
    for (const key of ['a', 'b']) {
      const { signal } = await registry.obtain(key).lock();
      signal.addEventListener('abort', () => void registry.close({ timeout: 0 }));
    }
    await registry.close({ timeout: 0 });
    expect(warnings).toMatchObject([{ message: expect.stringContaining('gave up 2 leases') }]);
    expect(close).toHaveBeenCalledTimes(1);
  });

  it('A registry that is closed while leases are held does not count a lease that is unlocked by a listener of the loss of another one', async () => {
    const [first, second] = [await registry.obtain('first').lock(), await registry.obtain('second').lock()];
    first.signal.addEventListener('abort', () => void second.unlock());
    await registry.close({ timeout: 0 });
    const message = 'Registry "orders" was closed, and gave up a lease after 0 ms: 1 of type spin ("first")';
    expect(warnings).toEqual([{ code: 'CLOSED_WHILE_HELD', message }]);
  });
});

it('A registry lists the locks that are held, of a pattern', async () => {
  const registry = new Spied();
  const keys = jest.spyOn(registry.backend, 'keys');
  for (const key of ['a1', 'a2', 'b']) await registry.obtain(key).lock();
  await new Spied({ registryKey: 'others' }, registry.locks).obtain('a3').lock();
  const listed = async (options?: object) => {
    const found: string[] = [];
    for await (const { key } of registry.list(options)) found.push(key);
    return found;
  };
  expect(await listed()).toEqual(['a1', 'a2', 'b']);
  expect(await listed({ match: 'a*', count: 7 })).toEqual(['a1', 'a2']);
  expect(keys.mock.calls.map(([, match, count]) => `${match} ${count}`)).toEqual(['* 1000', 'a* 7']);
  expect(() => registry.list({ match: '' })).toThrow('`match`');
  expect(() => registry.list({ count: 0.5 })).toThrow('`count`');
});

it('A registry adopts leases of its own locks, with options that it knows', async () => {
  const registry = new Spied();
  const passport = await (await registry.obtain('key').lock()).detach();
  for (const [name, value] of Object.entries({ ttl: 4, renew: 1, minHold: 1 })) {
    await expect(registry.adopt(passport, { [name]: value })).rejects.toThrow(`\`${name}\``);
  }
  const lease = await registry.adopt(passport, { ttl: 5_000, renew: false });
  await registry.renewLock('key', 9_000);
  expect(lease.remaining).toBeGreaterThan(8_000);
  await expect(new Spied({ registryKey: 'others' }).adopt(passport)).rejects.toThrow(TypeError);
  const fair = new InMemoryLockRegistry({ lockType: 'redisson-fair' });
  const foreign = passport.replace('spring', 'redisson').replace('orders:', 'test:');
  await expect(fair.adopt(foreign)).rejects.toThrow('redisson-fair');
});

it.each([
  ['spin', /^web-7:[\w-]{22}$/],
  ['redisson', /^web-7\/[\w-]{22}$/],
] as const)('The owner values of a registry of type %s have its id, and are all different', async (lockType, id) => {
  const registry = new Spied({ lockType, name: 'web-7' });
  expect(registry.id).toMatch(id);
  const owners: (string | undefined)[] = [];
  const take = async () => {
    const lease = await registry.obtain('key').lock();
    owners.push(registry.locks.holder('key', { registryKey: 'orders' })?.owner);
    await lease.unlock();
  };
  const at = 1_000 * time.wallNow;
  await take();
  await take();
  // A clock that was set back, and more owners than there are in a ms.
  time.wallNow -= 5_000;
  for (let i = 0; i < 1_000; i++) await take();
  time.wallNow += 6_000.5;
  await take();
  const times = owners.map((owner) => Number(owner?.slice(`${registry.id}:`.length)) - at);
  expect(times.every((one, i) => i === 0 || one > (times[i - 1] as number))).toBe(true);
  expect(times.map((one) => Math.floor(one / 1_000))).toEqual([...Array(900).fill(0), ...Array(102).fill(1), 1_000]);
});

it('A registry warns once of locks that its replicas did not get', () => {
  const { services } = new Spied().obtain('key');
  const cause = new NotReplicatedError(1, 0, 100);
  for (let i = 0; i < 2; i++) services.warnNotReplicated(cause, 'key');
  const message = `Lock "key" was given back: ${cause.message}`;
  expect(warnings).toEqual([{ code: 'NOT_REPLICATED', message, key: 'key', cause }]);
});

describe('A registry on Redis', () => {
  let redis: ReturnType<typeof mockRedis>;
  const open = (options: object = {}, more: object = {}) =>
    new RedisLockRegistry(Object.assign(redis, more) as unknown as RedisClient, {
      registryKey: 'orders',
      onWarning,
      ...options,
    });
  beforeEach(() => {
    redis = mockRedis();
  });

  it('A client that says how often to ask decides on the pause of spin, unless an option does, and has no other type', async () => {
    for (const idleBetweenTries of [undefined, 70]) {
      const pause = idleBetweenTries ?? 250;
      redis = mockRedis();
      redis.evalSha.mockResolvedValue(refused(60_000));
      const waiting = open({ idleBetweenTries }, { pollInterval: 250 }).obtain('key').lock({ waitTime: 2_000 });
      const ended = time.settled(waiting);
      await time.advance(1_900);
      expect(redis.sent).toBeGreaterThanOrEqual(Math.floor(1_900 / pause));
      expect(redis.sent).toBeLessThanOrEqual(Math.ceil(1_900 / pause) + 2);
      await time.advance(200);
      await ended;
    }
    expect(() => open({ lockType: 'fair' }, { pollInterval: 250 })).toThrow(
      /^Expected `lockType` to be "spin".*, as this client gets no messages, got "fair", which waits for them$/,
    );
    redis = mockRedis();
    open({ lockType: 'redisson' });
  });

  it('A registry warns in the context in which it was made, and subscribers are in that of no caller', () => {
    const context = new AsyncLocalStorage<string>();
    const contexts: unknown[] = [];
    const note = (): void => void contexts.push(context.getStore());
    const registry = context.run('maker', () => open({ registryKey: '{orders}', onWarning: note }));
    subscribe('redis-lock-registry:warning', note);
    context.run('caller', () => registry.segmented('stock', { segments: 2 }));
    unsubscribe('redis-lock-registry:warning', note);
    expect(contexts).toEqual([undefined, 'maker']);
  });

  const refuse = (): never => {
    throw new Error('no log');
  };
  it.each([
    ['throws', refuse],
    ['rejects', async () => refuse()],
  ])('A registry whose onWarning %s says so to the process', async (_how, onWarning) => {
    const said = jest.spyOn(process, 'emitWarning').mockImplementation(() => undefined);
    open({ registryKey: '{orders}', onWarning }).segmented('stock', { segments: 2 });
    await setImmediate();
    const message = expect.stringMatching(/^onWarning threw Error: no log for: The hash tag/);
    expect(said.mock.calls).toMatchObject([[message, { code: 'WARNING_LISTENER_FAILED' }]]);
    said.mockRestore();
  });

  it('A registry warns of a hash tag that puts all segments into one slot, and of no other key', () => {
    open({ registryKey: '{orders}' }).segmented('stock', { segments: 2 });
    for (const key of ['stock', '{stock}']) open().segmented(key, { segments: 2 });
    const message = 'The hash tag in registryKey "{orders}" puts all segments of "stock" into one slot of a cluster';
    expect(warnings).toEqual([{ code: 'SEGMENTS_SHARE_SLOT', message, key: 'stock' }]);
  });

  it('A registry takes a subscriber, and the empty key of Java', () => {
    const subscriber = { subscribe: async () => undefined, unsubscribe: async () => undefined };
    open({ subscriber, minReplicas: 0 });
    open({ lockType: 'redisson', registryKey: '' });
  });

  it('A registry lists the keys that a client finds, whatever its registryKey has for SCAN', async () => {
    await expect(open().list().next()).rejects.toThrow('Expected `client` to have the method scan, to list locks');
    const scan = jest.fn(async (..._: unknown[]) => ({ cursor: '0', keys: [] }));
    const registry = open({ registryKey: 'or*ers' }, { scan });
    expect(await registry.list({ match: 'a*' }).next()).toMatchObject({ done: true });
    expect(scan.mock.calls).toEqual([['0', { MATCH: 'or\\*ers:a*', COUNT: 1_000 }]]);
  });

  it('A registry lists a lock once that SCAN returns several times, in one answer or in two', async () => {
    const answers = [['orders:a', 'orders:a'], ['orders:b', 'orders:a'], []];
    const scan = async () => ({ keys: answers.shift() ?? [], cursor: String(answers.length) });
    const registry = open({ registryKey: 'orders' }, { scan });
    redis.evalSha.mockResolvedValue(['web-7:1:h0pCmsO5S7mSQpHDOZJ1Sw:1700000000123456', 500, '', -1]);
    const found: string[] = [];
    for await (const { key } of registry.list()) found.push(key);
    expect(found).toEqual(['a', 'b']);
  });

  it('A registry that is closed on a silent client ends within its commandTimeout, and 500 ms at least', async () => {
    for (const [options, timeout, ms] of [
      [{ commandTimeout: 2_000 }, 0, 500],
      [{ commandTimeout: 300 }, 0, 599],
      [{ commandTimeout: 2_000 }, 1_500, 1_500],
    ] as const) {
      redis = mockRedis();
      redis.evalSha.mockImplementation(silence);
      const registry = open(options);
      const call = time.settled(registry.obtain('key').lock());
      await time.advance(1);
      const closed = await time.settled(registry.close({ timeout }));
      expect((await call)?.error).toMatchObject(CLOSED);
      expect([options, timeout, closed?.after]).toEqual([options, timeout, ms]);
      redis.evalSha.mockResolvedValue(1);
      // What was asked for before is answered.
      await time.advance(3_000);
      const { sent } = redis;
      await time.advance(60_000);
      expect([redis.sent - sent, time.pending]).toEqual([0, 0]);
    }
  });

  it('A registry that is closed on a silent client exceeds its timeout by 1 s, also where it listens, and has left a lock to pollers', async () => {
    const subscriber = { subscribe: async () => undefined, unsubscribe: silence };
    const registry = open({ lockType: 'pub-sub', sharedWithPollers: true, subscriber, commandTimeout: 1_000 });
    const lease = await registry.obtain('left').lock();
    await time.advance(800);
    await lease.unlock();
    redis.evalSha.mockImplementation(silence).mockResolvedValueOnce([50_000, 'other:1']);
    const call = time.settled(registry.obtain('key').lock());
    await time.advance(1);
    const closed = await time.settled(registry.close({ timeout: 0 }));
    expect([(await call)?.error, closed?.after]).toMatchObject([CLOSED, 1_000]);
  });

  it.each([
    ['spin', 0],
    ['pub-sub', 1],
  ] as const)(
    'A registry of type %s that waits for the result of once listens for it %d times',
    async (lockType, times) => {
      const subscriber = { subscribe: jest.fn(async () => undefined), unsubscribe: jest.fn(async () => undefined) };
      redis.evalSha.mockImplementation(async (_, options) =>
        options?.keys?.[0] === 'orders:key' ? refused(60_000) : null,
      );
      const registry = open({ lockType, subscriber });
      const call = expect(registry.once('key', () => 1, { keepFor: 1_000, waitTime: 500 })).rejects.toThrow('500 ms');
      await time.advance(100);
      const channels = (subscriber.subscribe.mock.calls as unknown[][]).map(([channel]) => channel);
      expect(channels.filter((channel) => String(channel).includes('once'))).toHaveLength(times);
      await time.advance(500);
      await call;
      const closed = time.settled(registry.close());
      await time.advance(10_000);
      await closed;
      expect(subscriber.unsubscribe).toHaveBeenCalledTimes(subscriber.subscribe.mock.calls.length);
    },
  );

  it('A registry that is closed has left its channels, where the connection for messages is not its own', async () => {
    const unsubscribe = jest.fn(() => pause(50));
    redis.evalSha.mockImplementation(async () => refused(60_000));
    const registry = open({ lockType: 'pub-sub', subscriber: { subscribe: async () => undefined, unsubscribe } });
    const waiting = expect(registry.obtain('key').lock()).rejects.toMatchObject(CLOSED);
    await time.advance(10);
    const closed = await time.settled(registry.close({ timeout: 0 }));
    await waiting;
    expect([closed?.after, unsubscribe.mock.calls.length]).toEqual([50, 1]);
  });

  it('A registry that is closed on a silent client exceeds its timeout by 1 s at most, though its channels are silent too', async () => {
    const subscriber = { subscribe: async () => undefined, unsubscribe: silence };
    redis.evalSha.mockImplementation(async () => refused(60_000));
    const registry = open({ lockType: 'pub-sub', commandTimeout: 300, subscriber });
    const waiting = expect(registry.obtain('key').lock()).rejects.toMatchObject(CLOSED);
    await time.advance(950);
    redis.evalSha.mockImplementation(silence);
    await time.advance(100);
    const closed = await time.settled(registry.close({ timeout: 0 }));
    await waiting;
    expect(closed?.after).toBeLessThanOrEqual(1_000);
  });

  it('A lock is unlocked by force with the key that Java gives it, which may be empty, and leaves no listener', async () => {
    redis.evalSha.mockResolvedValue([0]);
    const [on, off] = [jest.fn(), jest.fn()];
    for (const [registryKey, lockType, name] of [
      ['', 'redisson', 'key'],
      ['orders', 'spin', 'orders:key'],
      ['orders', 'redisson-fair', 'orders:key'],
    ] as const) {
      redis.evalSha.mockClear();
      await forceUnlockOf(Object.assign(redis, { on, off }), [registryKey, 'key'], lockType).catch(() => undefined);
      expect(redis.calls[0]?.keys?.[0]).toBe(name);
    }
    expect(on).toHaveBeenCalled();
    expect(off.mock.calls).toEqual(on.mock.calls);
  });
});

it('A registry of the application says what it does not have', async () => {
  class Own extends LockRegistry {
    obtain = (key: string) => new InMemoryLockRegistry().obtain(key) as DistributedLock;
  }
  const own = new Own();
  expect([await own.run('key', ({ key }) => key), await own.tryRun('key', ({ key }) => key)]).toEqual([
    'key',
    { ran: true, value: 'key' },
  ]);
  expect(await own.lead('key', () => 'led')).toBe('led');
  expect(await own.segmented('key', { segments: 1 }).run(() => 'ran')).toMatchObject({ value: 'ran' });
  expect(() => own.semaphore('key', { permits: 1 })).toThrow('Own has no semaphores');
  expect(() => own.readWrite('key')).toThrow('Own has no read/write locks');
  expect(() => own.multi(['a'])).toThrow(new TypeError('Own has no locks of several keys'));
  const refusals: [Promise<unknown>, string][] = [
    [own.once('key', () => 1, { keepFor: 1 }), 'Own keeps no results'],
    [own.forget('key'), 'Own keeps no results'],
    [own.adopt('lease/1'), 'Own adopts no leases'],
  ];
  for (const [call, message] of refusals) await expect(call).rejects.toThrow(message);
  await own.close();
});
