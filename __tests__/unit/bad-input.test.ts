import { beforeEach, describe, expect, it } from '@jest/globals';
import {
  type AcrossTask,
  type LeaseEvalOptions,
  type LockOptions,
  type RedisClient,
  RedisLockRegistry,
  type RedisLockRegistryOptions,
  type Segment,
  SegmentedLock,
  type SegmentedLockOptions,
  split,
} from '../../lib';
import { mockRedis } from '../support/mock-redis';

/** Without types, as plain JavaScript calls it. */
const untyped = <T>(value: unknown): T => value as T;

/** A value, the error that it causes, and what its message contains. */
type Bad = readonly [value: unknown, kind: ErrorConstructor, quoted: string];

const badStrings: readonly Bad[] = [
  ['', TypeError, "''"],
  [undefined, TypeError, 'undefined'],
  [null, TypeError, 'null'],
  [42, TypeError, '42'],
  [{}, TypeError, '{}'],
  [Symbol('key'), TypeError, 'Symbol(key)'],
  // Lone surrogates: in UTF-8 all of them become the same character, and different keys the same lock.
  ...['\ud800', 'order:\udc00', '\udc00\ud800', 'a\ud83d'].map((key) => [key, TypeError, 'well-formed'] as const),
];
const notNumbers: readonly Bad[] = [
  ['100', TypeError, "'100'"],
  [null, TypeError, 'null'],
  [100n, TypeError, '100n'],
  [{}, TypeError, '{}'],
];
const negative: readonly Bad[] = [
  [-1, RangeError, '-1'],
  [Number.NaN, RangeError, 'NaN'],
];
const badDurations: readonly Bad[] = [
  ...notNumbers,
  ...negative,
  [0, RangeError, '0'],
  [Number.POSITIVE_INFINITY, RangeError, 'Infinity'],
  [2 ** 31, RangeError, '2147483648'],
];
/** With the margin for drift, nothing is left of one of 1 ms. */
const badTtls: readonly Bad[] = [...badDurations, ...[0.5, 1, 4.9].map((ttl) => [ttl, RangeError, 'from 5'] as const)];

const named = (name: string, bad: readonly Bad[]) =>
  bad.map(([value, kind, quoted]) => [name, value, kind, quoted] as const);

/** The call throws or rejects with an error of this kind, whose message contains these parts. */
async function expectRefusal(call: () => unknown, kind: ErrorConstructor, ...parts: string[]): Promise<void> {
  const error = await (async () => call())().then(
    () => undefined,
    (reason: unknown) => reason,
  );
  expect(error).toBeInstanceOf(kind);
  for (const part of parts) expect(String(error)).toContain(part);
}

let redis: ReturnType<typeof mockRedis>;
let registry: RedisLockRegistry;

beforeEach(() => {
  redis = mockRedis();
  registry = new RedisLockRegistry(redis, { registryKey: 'orders' });
});

describe('the constructor', () => {
  const construct = (options: unknown) => new RedisLockRegistry(redis, untyped<RedisLockRegistryOptions>(options));
  const constructWith = (options: object) => construct({ registryKey: 'orders', ...options });

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
    const make = () => new RedisLockRegistry(untyped<RedisClient>(client), { registryKey: 'orders' });
    return expectRefusal(make, TypeError, 'Expected `client` to be a Redis client with the methods eval and evalSha');
  });

  it.each([undefined, null, 'orders', 42])('refuses %p as options', (options) =>
    expectRefusal(() => construct(options), TypeError),
  );

  const durations = ['expireAfter', 'maxHold', 'idleBetweenTries', 'commandTimeout', 'unavailableAfter'];
  it.each([
    ...named('registryKey', badStrings),
    ...durations.flatMap((name) => named(name, badDurations)),
    ...named('cacheCapacity', [...badDurations, [1.5, RangeError, '1.5']]),
    ...named('warnAfter', [...negative, [0, RangeError, '0'], ['1', TypeError, "'1'"]]),
    ...named('handOver', [...negative, ['50', TypeError, "'50'"]]),
    ['expireAfter', 1, RangeError, 'from 5'],
    ['expireAfter', 4.9, RangeError, '4.9'],
    ['expireAfter', 29.9, RangeError, 'from 30 to 2147483647 ms for a lease that is renewed, got 29.9'],
    ['lockType', 'zookeeper', RangeError, "'zookeeper'"],
    ['lockType', 'SPIN', RangeError, "'SPIN'"],
    ['lockType', 'toString', RangeError, "'toString'"],
    ['lockType', 1, TypeError, '1'],
    ['renew', 'yes', TypeError, "'yes'"],
    ['renew', 1, TypeError, '1'],
    ['fencing', null, TypeError, 'null'],
    ['legacyChannel', 'both', TypeError, "'both'"],
    ['subscriber', {}, TypeError, 'object'],
    ['subscriber', { subscribe() {} }, TypeError, 'subscribe'],
    ['onWarning', 'console', TypeError, "'console'"],
  ] as const)('refuses %s: %p', (name, value, kind, quoted) =>
    expectRefusal(() => constructWith({ [name]: value }), kind, `\`${name}\``, quoted),
  );

  it.each([
    ...durations.map((name) => [name, name === 'expireAfter' ? 30 : 0.5, 2 ** 31 - 1] as const),
    ['cacheCapacity', 1, 100_000, 2 ** 31 - 1],
    ['handOver', 0, 0.5, Number.POSITIVE_INFINITY],
  ] as const)('takes %s: %p and %p', (name, ...values) => {
    for (const value of values) expect(() => constructWith({ [name]: value })).not.toThrow();
  });

  it('takes a shorter expireAfter where leases are not renewed, and refuses it by a call that asks for that', async () => {
    const registry = constructWith({ expireAfter: 5, renew: false });
    const isRefused = () => registry.obtain('42').lock({ renew: true });
    await expectRefusal(isRefused, RangeError, 'Expected `expireAfter` to be from 30', 'got 5 (number)');
  });

  it('treats undefined as an option that is not given', () => {
    constructWith({ expireAfter: undefined, lockType: undefined, onWarning: undefined });
  });
});

describe('obtain', () => {
  it.each(badStrings)('refuses %p as a key', async (key, kind, quoted) => {
    await expectRefusal(() => registry.obtain(untyped<string>(key)), kind, quoted);
    expect(registry.size).toBe(0);
  });

  it('takes a key with characters beyond the basic plane', () => {
    expect(registry.obtain('order:\u{1f600}').key).toBe('order:\u{1f600}');
  });
});

describe('acquiring a lock', () => {
  const task = () => {
    throw new Error('It ran');
  };

  it.each([
    ...named('ttl', badTtls),
    ...named('waitTime', [...notNumbers, ...negative, [Number.NEGATIVE_INFINITY, RangeError, '-Infinity']]),
    ...named('minHold', [...notNumbers, ...negative, [Number.POSITIVE_INFINITY, RangeError, 'Infinity']]),
    ['renew', 'no', TypeError, "'no'"],
    ['signal', {}, TypeError, '{}'],
    ['signal', new AbortController(), TypeError, 'AbortController'],
    ['timeout', 100, TypeError, '100'],
    ['wait', 100, TypeError, '100'],
  ] as const)('refuses %s: %p by a rejection, with no command sent', async (name, value, kind, quoted) => {
    const lock = registry.obtain('42');
    const options = untyped<LockOptions>({ [name]: value });
    for (const take of [
      () => lock.lock(options),
      () => lock.tryLock(options),
      () => lock.run(task, options),
      () => lock.tryRun(task, options),
    ]) {
      const rejected = take();
      await expectRefusal(() => rejected, kind, `\`${name}\``, quoted);
    }
    expect(redis.sent).toBe(0);
    expect(lock.isAcquiredInThisProcess).toBe(false);
  });

  it('refuses a ttl that renewals cannot keep, and takes it for a lease that is not renewed', async () => {
    const lock = registry.obtain('42');
    const isRefused = () => lock.lock({ ttl: 29, renew: true });
    await expectRefusal(isRefused, RangeError, 'Expected `ttl` to be from 30', 'got 29 (number)');
    expect(redis.sent).toBe(0);
    await (await lock.lock({ ttl: 30, renew: true })).unlock();
    await (await lock.lock({ ttl: 29, renew: false })).unlock();
  });

  it('refuses a minHold that is longer than the ttl of the call, and takes one that is as long', async () => {
    const lock = registry.obtain('42');
    const tooLong = () => lock.lock({ ttl: 1_000, minHold: 1_001 });
    await expectRefusal(tooLong, RangeError, 'Expected `minHold` to be at most the ttl of 1000 ms, got 1001 (number)');
    await (await lock.lock({ ttl: 1_000, minHold: 1_000 })).unlock();
  });

  it.each([null, 42, 'fast'])('refuses %p as options', async (options) => {
    await expectRefusal(() => registry.obtain('42').lock(untyped<LockOptions>(options)), TypeError);
    expect(redis.sent).toBe(0);
  });

  it('refuses a task that is not a function, before it acquires the lock', async () => {
    await expectRefusal(() => registry.run('42', untyped<() => void>('task')), TypeError);
    await expectRefusal(() => registry.tryRun('42', untyped<() => void>('task')), TypeError);
    await expectRefusal(() => registry.run(untyped<string>(''), () => undefined), TypeError);
    expect(redis.sent).toBe(0);
  });

  it.each([0, 0.5, 1, 2 ** 31, 2 ** 40, Number.MAX_VALUE, Number.POSITIVE_INFINITY])(
    'takes a waitTime of %p',
    async (waitTime) => {
      await (await registry.obtain('42').lock({ waitTime })).unlock();
    },
  );
});

describe('other methods', () => {
  it.each(badTtls)('refuse %p as the ttl of a renewal, with no command sent', async (ttl, kind, quoted) => {
    const lease = await registry.obtain('42').lock();
    const before = redis.sent;
    await expectRefusal(() => lease.renew(untyped<number>(ttl)), kind, quoted);
    await expectRefusal(() => registry.renewLock('42', untyped<number>(ttl)), kind);
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
    const lease = await registry.obtain('42').lock();
    const before = redis.sent;
    const evaluate = () => lease.eval(untyped<string>(script), untyped<LeaseEvalOptions>(options));
    await expectRefusal(evaluate, TypeError, message);
    expect(redis.sent).toBe(before);
    await lease.unlock();
  });

  it('refuse the key of a script in another slot of the cluster than the lock, with no command sent', async () => {
    const cluster = Object.assign(redis, { slots: [] });
    const lease = await new RedisLockRegistry(cluster, { registryKey: 'orders' }).obtain('{42}').lock();
    const before = redis.sent;
    const evaluate = () => lease.eval('return 1', { keys: ['{42}:stock', 'stock:42'] });
    const parts = ['`keys[1]` to be in slot 8000 ', ' "orders:{42}" is, got "stock:42" in slot'];
    await expectRefusal(evaluate, RangeError, ...parts);
    expect(redis.sent).toBe(before);
    await lease.eval('return 1', { keys: ['{42}:stock'] });
    await lease.unlock();
  });

  it.each(badStrings)('refuse to renew the key %p', (key, kind, quoted) =>
    expectRefusal(() => registry.renewLock(untyped<string>(key)), kind, quoted),
  );

  it.each([...negative, ['1s', TypeError, "'1s'"], [null, TypeError, 'null']] as const)(
    'refuse %p as the timeout of close, and leave the registry open then',
    async (timeout, kind, quoted) => {
      await expectRefusal(() => registry.close({ timeout: untyped<number>(timeout) }), kind, quoted);
      await registry.run('42', () => undefined);
      await registry.close();
    },
  );

  it.each([
    [Number.NaN, RangeError, 'NaN'],
    ['100', TypeError, "'100'"],
    [undefined, TypeError, 'undefined'],
  ] as const)('refuse %p as the age of expireUnusedOlderThan', (age, kind, quoted) =>
    expectRefusal(() => registry.expireUnusedOlderThan(untyped<number>(age)), kind, quoted),
  );
});

describe('a segmented lock', () => {
  let stock: SegmentedLock;
  const create = (key: unknown, options: unknown) =>
    new SegmentedLock(registry, untyped<string>(key), untyped<SegmentedLockOptions>(options));
  const serve = ({ index }: Segment) => index;
  const across: AcrossTask<string> = { available: () => 1, commit: () => 'served' };

  beforeEach(() => {
    stock = create('stock', { segments: 2 });
  });

  it.each([
    ['', { segments: 2 }, TypeError, "Expected `key` to be a non-empty string, got '' (string)"],
    [7, { segments: 2 }, TypeError, '`key`'],
    ['stock', undefined, TypeError, '`options`'],
    ['stock', null, TypeError, '`options`'],
    ['stock', {}, TypeError, 'Expected `segments` to be a number, got undefined'],
    ['stock', { segments: '2' }, TypeError, "'2'"],
    ['stock', { segments: 0 }, RangeError, 'Expected `segments` to be a whole number from 1 to 16384, got 0 (number)'],
    ['stock', { segments: 2.5 }, RangeError, '2.5'],
    ['stock', { segments: 16_385 }, RangeError, '16385'],
    ['stock', { segments: 2, random: 42 }, TypeError, '`random`'],
    ['stock', { segments: 2, seed: 42 }, TypeError, 'Unknown option `seed` (42); known are segments, random'],
  ])('refuses %p, %p', (key, options, kind, message) => expectRefusal(() => create(key, options), kind, message));

  it('treats undefined as an option that is not given', () => {
    expect(create('stock', { segments: 1, random: undefined }).names).toEqual(['stock:0']);
  });

  it.each([
    [{ waitTime: -1 }, RangeError, '`waitTime`'],
    [{ waitTime: '1' }, TypeError, '`waitTime`'],
    [{ ttl: 0 }, RangeError, '`ttl`'],
    [{ signal: 'stop' }, TypeError, '`signal`'],
    [{ timeout: 1 }, TypeError, 'Unknown option `timeout`'],
    [null, TypeError, '`options`'],
  ])('rejects options such as %p', async (bad, kind, message) => {
    const options = untyped<LockOptions>(bad);
    const calls = [
      stock.run(serve, options),
      stock.runAcross(1, across, options),
      stock.runAll(() => 'served', options),
    ];
    for (const call of calls) await expectRefusal(() => call, kind, message);
  });

  it('rejects a task that is not a function', async () => {
    const acrossWith = (task: unknown) => () => stock.runAcross(1, untyped<AcrossTask<string>>(task));
    await expectRefusal(() => stock.run(untyped<() => number>(undefined)), TypeError, '`task`');
    await expectRefusal(() => stock.runAll(untyped<() => number>('task')), TypeError, '`task`');
    await expectRefusal(acrossWith(undefined), TypeError, '`task.available`');
    await expectRefusal(acrossWith({ available() {} }), TypeError, '`task.commit`');
  });

  it.each([0, -1, 1.5, Number.NaN, Number.POSITIVE_INFINITY])('rejects %p as an amount', (amount) =>
    expectRefusal(() => stock.runAcross(amount, across), RangeError),
  );

  it.each([-1, 0.5, Number.NaN, '3', undefined])(
    'rejects %p as what is available, and gives back what it holds',
    async (available) => {
      const commit = () => expect(true).toBe(false);
      const call = () => stock.runAcross(1, { available: () => untyped<number>(available), commit });
      await expectRefusal(call, Error, '`available`');
      expect(registry.obtain('stock:0').isAcquiredInThisProcess).toBe(false);
    },
  );

  it.each([1, -0.1, Number.NaN, '0.5'])('rejects %p as a random number', (drawn) =>
    expectRefusal(
      () => create('stock', { segments: 2, random: () => drawn }).run(serve),
      Error,
      'Expected `random()` to be a number',
    ),
  );

  it.each([
    [-1, 3, RangeError, '`total`', '-1'],
    [1.5, 3, RangeError, '`total`', '1.5'],
    [Number.NaN, 3, RangeError, '`total`', 'NaN'],
    [2 ** 53, 3, RangeError, '`total`', '9007199254740992'],
    ['7', 3, TypeError, '`total`', "'7'"],
    [7, 0, RangeError, '`segments`', '0'],
    [7, 1.5, RangeError, '`segments`', '1.5'],
    [7, 16_385, RangeError, '`segments`', '16385'],
    [7, undefined, TypeError, '`segments`', 'undefined'],
  ])('refuses split(%p, %p)', (total, segments, kind, name, quoted) =>
    expectRefusal(() => split(total as number, segments as number), kind, name, quoted),
  );
});
