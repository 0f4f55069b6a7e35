import { describe, expect, it } from '@jest/globals';
import {
  type LeaseEvalOptions,
  type LockOptions,
  type RedisClient,
  RedisLockRegistry,
  type RedisLockRegistryOptions,
} from '../../lib';
import { mockRedis } from '../support/mock-redis';

/** Without types, as plain JavaScript calls it. */
const untyped = <T>(value: unknown): T => value as T;

const tooLong = 2 ** 31;
const badStrings = [
  ['', TypeError, "''"],
  [undefined, TypeError, 'undefined'],
  [null, TypeError, 'null'],
  [42, TypeError, '42'],
  [{}, TypeError, '{}'],
  [Symbol('key'), TypeError, 'Symbol(key)'],
  // Lone surrogates: in UTF-8 all of them become the same character, and different keys the same lock.
  ...['\ud800', 'order:\udc00', '\udc00\ud800', 'a\ud83d'].map((key) => [key, TypeError, 'well-formed'] as const),
] as const;
const notNumbers = [
  ['100', TypeError, "'100'"],
  [null, TypeError, 'null'],
  [100n, TypeError, '100n'],
  [{}, TypeError, '{}'],
] as const;
const badDurations = [
  ...notNumbers,
  [0, RangeError, '0'],
  [-1, RangeError, '-1'],
  [Number.NaN, RangeError, 'NaN'],
  [Number.POSITIVE_INFINITY, RangeError, 'Infinity'],
  [tooLong, RangeError, '2147483648'],
] as const;
/** With the margin for drift, nothing is left of one of 1 ms. */
const badTtls = [
  ...badDurations,
  [0.5, RangeError, 'from 5'],
  [1, RangeError, 'from 5'],
  [4.9, RangeError, 'from 5'],
] as const;

describe('the constructor', () => {
  it.each([
    undefined,
    null,
    'redis://localhost',
    {},
    { get() {} },
    { eval() {} },
    { evalSha() {} },
    { eval: 1, evalSha: 2 },
  ])('refuses %j as a client', (client) => {
    const construct = () => new RedisLockRegistry(untyped<RedisClient>(client), { registryKey: 'orders' });
    expect(construct).toThrow(TypeError);
    expect(construct).toThrow('Expected `client` to be a Redis client with the methods eval and evalSha');
  });

  it.each([undefined, null, 'orders', 42])('refuses %p as options', (options) => {
    const construct = () => new RedisLockRegistry(mockRedis(), untyped<RedisLockRegistryOptions>(options));
    expect(construct).toThrow(TypeError);
  });

  it.each(badStrings)('refuses %p as registryKey', (registryKey, kind, quoted) => {
    const construct = () => new RedisLockRegistry(mockRedis(), { registryKey: untyped<string>(registryKey) });
    expect(construct).toThrow(kind);
    expect(construct).toThrow('`registryKey`');
    expect(construct).toThrow(quoted);
  });

  describe.each(['expireAfter', 'maxHold', 'idleBetweenTries', 'commandTimeout', 'unavailableAfter'])('%s', (name) => {
    it.each(badDurations)('may not be %p', (value, kind, quoted) =>
      expectRefusal({ [name]: value }, name, kind, quoted),
    );
    it.each([name === 'expireAfter' ? 5 : 0.5, 2 ** 31 - 1])('may be %p', (ms) => expectAcceptance({ [name]: ms }));
  });

  describe('cacheCapacity', () => {
    it.each([...badDurations, [1.5, RangeError, '1.5']] as const)('may not be %p', (value, kind, quoted) =>
      expectRefusal({ cacheCapacity: value }, 'cacheCapacity', kind, quoted),
    );
    it.each([1, 100_000, 2 ** 31 - 1])('may be %p', (value) => expectAcceptance({ cacheCapacity: value }));
  });

  it.each([
    ['expireAfter', 1, RangeError, 'from 5'],
    ['expireAfter', 4.9, RangeError, '4.9'],
    ['lockType', 'zookeeper', RangeError, "'zookeeper'"],
    ['lockType', 'SPIN', RangeError, "'SPIN'"],
    ['lockType', 'toString', RangeError, "'toString'"],
    ['lockType', 1, TypeError, '1'],
    ['renew', 'yes', TypeError, "'yes'"],
    ['renew', 1, TypeError, '1'],
    ['fencing', null, TypeError, 'null'],
    ['legacyChannel', 'both', TypeError, "'both'"],
    ['handOver', -1, RangeError, '-1'],
    ['handOver', Number.NaN, RangeError, 'NaN'],
    ['handOver', '50', TypeError, "'50'"],
    ['subscriber', {}, TypeError, 'object'],
    ['subscriber', { subscribe() {} }, TypeError, 'subscribe'],
    ['onWarning', 'console', TypeError, "'console'"],
  ] as const)('refuses %s: %p', (name, value, kind, quoted) => expectRefusal({ [name]: value }, name, kind, quoted));

  it.each([0, 0.5, Number.POSITIVE_INFINITY])('takes a handOver of %p', (handOver) => expectAcceptance({ handOver }));

  it('treats undefined as an option that is not given', () => {
    expectAcceptance({ expireAfter: undefined, lockType: undefined, onWarning: undefined });
  });

  function expectRefusal(options: object, name: string, kind: ErrorConstructor, quoted: string): void {
    const construct = () =>
      new RedisLockRegistry(mockRedis(), untyped<RedisLockRegistryOptions>({ registryKey: 'orders', ...options }));
    expect(construct).toThrow(kind);
    expect(construct).toThrow(`\`${name}\``);
    expect(construct).toThrow(quoted);
  }

  function expectAcceptance(options: Partial<RedisLockRegistryOptions>): void {
    expect(() => new RedisLockRegistry(mockRedis(), { registryKey: 'orders', ...options })).not.toThrow();
  }
});

describe('obtain', () => {
  it.each(badStrings)('refuses %p as a key', (key, kind, quoted) => {
    const registry = new RedisLockRegistry(mockRedis(), { registryKey: 'orders' });
    const obtain = () => registry.obtain(untyped<string>(key));
    expect(obtain).toThrow(kind);
    expect(obtain).toThrow(quoted);
    expect(registry.size).toBe(0);
  });

  it('takes a key with characters beyond the basic plane', () => {
    const registry = new RedisLockRegistry(mockRedis(), { registryKey: 'orders' });
    expect(registry.obtain('order:\u{1f600}').key).toBe('order:\u{1f600}');
  });
});

describe('acquiring a lock', () => {
  const badOptions = [
    ...badTtls.map(([value, kind, quoted]) => ['ttl', value, kind, quoted] as const),
    ...notNumbers.map(([value, kind, quoted]) => ['waitTime', value, kind, quoted] as const),
    ['waitTime', -1, RangeError, '-1'],
    ['waitTime', Number.NaN, RangeError, 'NaN'],
    ['waitTime', Number.NEGATIVE_INFINITY, RangeError, '-Infinity'],
    ...notNumbers.map(([value, kind, quoted]) => ['minHold', value, kind, quoted] as const),
    ['minHold', -1, RangeError, '-1'],
    ['minHold', Number.NaN, RangeError, 'NaN'],
    ['minHold', Number.POSITIVE_INFINITY, RangeError, 'Infinity'],
    ['minHold', 60_001, RangeError, '`minHold` to be at most the ttl of 60000 ms, got 60001'],
    ['renew', 'no', TypeError, "'no'"],
    ['signal', {}, TypeError, '{}'],
    ['signal', new AbortController(), TypeError, 'AbortController'],
    ['timeout', 100, TypeError, '100'],
    ['wait', 100, TypeError, '100'],
  ] as const;

  it.each(badOptions)('refuses %s: %p by a rejection, with no command sent', async (name, value, kind, quoted) => {
    const redis = mockRedis();
    const lock = new RedisLockRegistry(redis, { registryKey: 'orders' }).obtain('42');
    const options = untyped<LockOptions>({ [name]: value });
    let ran = false;
    const task = () => {
      ran = true;
    };
    for (const take of [
      () => lock.lock(options),
      () => lock.tryLock(options),
      () => lock.run(task, options),
      () => lock.tryRun(task, options),
    ]) {
      const error = await take().catch((reason: unknown) => reason);
      expect(error).toBeInstanceOf(kind);
      expect(String(error)).toContain(`\`${name}\``);
      expect(String(error)).toContain(quoted);
    }
    expect(ran).toBe(false);
    expect(redis.sent).toBe(0);
    expect(lock.isAcquiredInThisProcess).toBe(false);
  });

  it('refuses a minHold that is longer than the ttl of the call, and takes one that is as long', async () => {
    const lock = new RedisLockRegistry(mockRedis(), { registryKey: 'orders' }).obtain('42');
    const tooLong = lock.lock({ ttl: 1_000, minHold: 1_001 });
    await expect(tooLong).rejects.toThrow('Expected `minHold` to be at most the ttl of 1000 ms, got 1001 (number)');
    await expect(tooLong).rejects.toBeInstanceOf(RangeError);
    await (await lock.lock({ ttl: 1_000, minHold: 1_000 })).unlock();
  });

  it('takes a ttl of 5 ms: whether that is long enough for an answer is another matter', async () => {
    const lock = new RedisLockRegistry(mockRedis(), { registryKey: 'orders' }).obtain('42');
    const outcome = await lock.tryLock({ ttl: 5 }).catch((reason: unknown) => reason);
    expect(outcome).not.toBeInstanceOf(RangeError);
  });

  it.each([null, 42, 'fast'])('refuses %p as options', async (options) => {
    const redis = mockRedis();
    const lock = new RedisLockRegistry(redis, { registryKey: 'orders' }).obtain('42');
    await expect(lock.lock(untyped<LockOptions>(options))).rejects.toThrow(TypeError);
    expect(redis.sent).toBe(0);
  });

  it('refuses a task that is not a function, before it acquires the lock', async () => {
    const redis = mockRedis();
    const registry = new RedisLockRegistry(redis, { registryKey: 'orders' });
    await expect(registry.run('42', untyped<() => void>('task'))).rejects.toThrow(TypeError);
    await expect(registry.tryRun('42', untyped<() => void>('task'))).rejects.toThrow(TypeError);
    await expect(registry.run(untyped<string>(''), () => undefined)).rejects.toThrow(TypeError);
    expect(redis.sent).toBe(0);
  });

  it.each([0, 0.5, 1, 2 ** 31, 2 ** 40, Number.MAX_VALUE, Number.POSITIVE_INFINITY])(
    'takes a waitTime of %p',
    async (waitTime) => {
      const lock = new RedisLockRegistry(mockRedis(), { registryKey: 'orders' }).obtain('42');
      await (await lock.lock({ waitTime })).unlock();
    },
  );
});

describe('other methods', () => {
  it.each(badTtls)('refuse %p as the ttl of a renewal, with no command sent', async (ttl, kind, quoted) => {
    const redis = mockRedis();
    const registry = new RedisLockRegistry(redis, { registryKey: 'orders' });
    const lease = await registry.obtain('42').lock();
    const before = redis.sent;
    await expect(lease.renew(untyped<number>(ttl))).rejects.toThrow(kind);
    await expect(lease.renew(untyped<number>(ttl))).rejects.toThrow(quoted);
    await expect(registry.renewLock('42', untyped<number>(ttl))).rejects.toThrow(kind);
    expect(redis.sent).toBe(before);
    lease.assertHeld();
    await lease.unlock();
  });

  it.each([
    ['', {}, '`script`'],
    [undefined, {}, '`script`'],
    [42, {}, '`script`'],
    ['return 1', { keys: 'stock:42' }, "`keys` to be an array of strings, got 'stock:42'"],
    ['return 1', { keys: ['a', 42] }, '`keys[1]` to be a string, got 42'],
    ['return 1', { arguments: [1] }, '`arguments[0]` to be a string, got 1'],
    ['return 1', { argument: [] }, '`argument`'],
    ['return 1', null, '`options`'],
  ] as const)('refuse the script %p with %j, with no command sent', async (script, options, message) => {
    const redis = mockRedis();
    const lease = await new RedisLockRegistry(redis, { registryKey: 'orders' }).obtain('42').lock();
    const before = redis.sent;
    const evaluating = lease.eval(untyped<string>(script), untyped<LeaseEvalOptions>(options));
    await expect(evaluating).rejects.toThrow(message);
    await expect(evaluating).rejects.toBeInstanceOf(TypeError);
    expect(redis.sent).toBe(before);
    await lease.unlock();
  });

  it('refuse the key of a script in another slot of the cluster than the lock, with no command sent', async () => {
    const redis = Object.assign(mockRedis(), { slots: [] });
    const lease = await new RedisLockRegistry(redis, { registryKey: 'orders' }).obtain('{42}').lock();
    const before = redis.sent;
    const evaluating = lease.eval('return 1', { keys: ['{42}:stock', 'stock:42'] });
    await expect(evaluating).rejects.toThrow(
      /`keys\[1\]` to be in slot 8000 .* "orders:\{42\}" is, got "stock:42" in slot/,
    );
    await expect(evaluating).rejects.toBeInstanceOf(RangeError);
    expect(redis.sent).toBe(before);
    await lease.eval('return 1', { keys: ['{42}:stock'] });
    await lease.unlock();
  });

  it.each(badStrings)('refuse to renew the key %p', async (key, kind, quoted) => {
    const registry = new RedisLockRegistry(mockRedis(), { registryKey: 'orders' });
    await expect(registry.renewLock(untyped<string>(key))).rejects.toThrow(kind);
    await expect(registry.renewLock(untyped<string>(key))).rejects.toThrow(quoted);
  });

  it.each([
    [-1, RangeError],
    [Number.NaN, RangeError],
    ['1s', TypeError],
    [null, TypeError],
  ] as const)('refuse %p as the timeout of close, and leave the registry open then', async (timeout, kind) => {
    const registry = new RedisLockRegistry(mockRedis(), { registryKey: 'orders' });
    await expect(registry.close({ timeout: untyped<number>(timeout) })).rejects.toThrow(kind);
    await registry.run('42', () => undefined);
    await registry.close();
  });
});
