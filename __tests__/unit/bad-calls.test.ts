import { beforeEach, expect, it } from '@jest/globals';
import { type LeaseEvalOptions, type LockOptions, RedisLockRegistry } from '../../lib';
import { runCoordinator } from '../../lib/integrations/node-cron';
import { webLocks } from '../../lib/integrations/web-locks';
import { toNode } from '../../lib/tools/dashboard';
import { mockRedis } from '../support/mock-redis';
import { badStrings, badTtls, expectRefusal, named, negative, notNumbers, untyped } from '../support/refusals';

let redis: ReturnType<typeof mockRedis>;
let registry: RedisLockRegistry;

beforeEach(() => {
  redis = mockRedis();
  registry = new RedisLockRegistry(redis, { registryKey: 'orders' });
});

const task = () => {
  throw new Error('It ran');
};

it.each([
  ...named('ttl', badTtls),
  ...named('waitTime', [...notNumbers, ...negative, [Number.NEGATIVE_INFINITY, RangeError, '-Infinity']]),
  ...named('minHold', [...notNumbers, ...negative, [Number.POSITIVE_INFINITY, RangeError, 'Infinity']]),
  ['renew', 'no', TypeError, "'no'"],
  ['permits', 0, RangeError, '0'],
  ['permits', 1.5, RangeError, '1.5'],
  ['permits', '2', TypeError, "'2'"],
  ['signal', [], TypeError, '[]'],
  ['signal', { aborted: false }, TypeError, '{ aborted: false }'],
  ['signal', new AbortController(), TypeError, 'AbortController'],
] as const)('A call refuses %s: %p by a rejection, with no command sent', async (name, value, kind, quoted) => {
  const lock = registry.obtain('42');
  const options = untyped<LockOptions>({ [name]: value });
  const calls = [lock.lock(options), lock.tryLock(options), lock.run(task, options), lock.tryRun(task, options)];
  for (const call of calls) await expectRefusal(() => call, kind, `\`${name}\``, quoted);
  expect(redis.sent).toBe(0);
  expect(lock.isAcquiredInThisProcess).toBe(false);
});

it('A call refuses a ttl that renewals cannot keep, and takes it for a lease that is not renewed', async () => {
  const lock = registry.obtain('42');
  const isRefused = () => lock.lock({ ttl: 29, renew: true });
  await expectRefusal(isRefused, RangeError, 'Expected `ttl` to be from 30', 'got 29 (number)');
  expect(redis.sent).toBe(0);
  for (const options of [
    { ttl: 30, renew: true },
    { ttl: 29, renew: false },
  ]) {
    const lease = await lock.lock(options);
    // On a busy machine so short a lease may have ended.
    await lease.unlock().catch((error) => expect(error).toMatchObject({ name: 'LockLostError' }));
  }
});

it('A call refuses a minHold that is longer than the ttl of the call, and takes one that is as long', async () => {
  const lock = registry.obtain('42');
  const tooLong = () => lock.lock({ ttl: 1_000, minHold: 1_001 });
  await expectRefusal(tooLong, RangeError, 'Expected `minHold` to be at most the ttl of 1000 ms, got 1001 (number)');
  await (await lock.lock({ ttl: 1_000, minHold: 1_000 })).unlock();
});

it('A call refuses a task that is not a function, before it acquires the lock', async () => {
  await expectRefusal(() => registry.run('42', untyped<() => void>('task')), TypeError);
  await expectRefusal(() => registry.tryRun('42', untyped<() => void>('task')), TypeError);
  await expectRefusal(() => registry.run(untyped<string>(''), () => undefined), TypeError);
  expect(redis.sent).toBe(0);
});

it.each([0, 0.5, 1, 2 ** 31, 2 ** 40, Number.MAX_VALUE, Number.POSITIVE_INFINITY])(
  'A call takes a waitTime of %p',
  async (waitTime) => {
    await (await registry.obtain('42').lock({ waitTime })).unlock();
  },
);

it.each(badTtls)('A renewal refuses %p as its ttl, with no command sent', async (ttl, kind, quoted) => {
  await expectRefusal(() => registry.renewLock('42', untyped<number>(ttl)), kind, '`ttl`', quoted);
  const lease = await registry.obtain('42').lock();
  const before = redis.sent;
  await expectRefusal(() => lease.renew(untyped<number>(ttl)), kind, quoted);
  await expectRefusal(() => registry.renewLock('42', untyped<number>(ttl)), kind, '`ttl`');
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
] as const)('A lease refuses the script %p with %j, with no command sent', async (script, options, message) => {
  const lease = await registry.obtain('42').lock();
  const before = redis.sent;
  const evaluate = () => lease.eval(untyped<string>(script), untyped<LeaseEvalOptions>(options));
  await expectRefusal(evaluate, TypeError, message);
  expect(redis.sent).toBe(before);
  await lease.unlock();
});

it('A lease refuses the key of a script in another slot of the cluster than the lock, with no command sent', async () => {
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

it.each(badStrings)('A renewal refuses the key %p', (key, kind, quoted) =>
  expectRefusal(() => registry.renewLock(untyped<string>(key)), kind, '`key`', quoted),
);

it.each([...negative, ['1s', TypeError, "'1s'"], [null, TypeError, 'null']] as const)(
  'A registry refuses %p as the timeout of close, and stays open then',
  async (timeout, kind, quoted) => {
    await expectRefusal(() => registry.close({ timeout: untyped<number>(timeout) }), kind, quoted);
    await registry.run('42', () => undefined);
    await registry.close();
  },
);

it.each([
  [Number.NaN, RangeError, '`age` to be a number of milliseconds, got NaN'],
  ['100', TypeError, "`age` to be a number, got '100'"],
  [undefined, TypeError, 'undefined'],
] as const)('A registry refuses %p as the age of expireUnusedOlderThan', (age, kind, quoted) =>
  expectRefusal(() => registry.expireUnusedOlderThan(untyped<number>(age)), kind, quoted),
);

it.each([
  ['webLocks', webLocks],
  ['runCoordinator', runCoordinator],
  ['toNode', toNode],
] as const)('What is made of a registry or a page refuses anything else at once: %s', (_, make) => {
  for (const wrong of [undefined, null, {}, mockRedis()]) {
    expect(() => make(untyped(wrong))).toThrow(TypeError);
    expect(() => make(untyped(wrong))).toThrow(
      /^Expected `(registry` to be a LockRegistry|handler` to be a function), got/,
    );
  }
});
