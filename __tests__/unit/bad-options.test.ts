import { beforeEach, expect, it } from '@jest/globals';
import { type RedisClient, RedisLockRegistry, type RedisLockRegistryOptions, type SemaphoreOptions } from '../../lib';
import { mockRedis } from '../support/mock-redis';
import { badDurations, badStrings, expectRefusal, named, negative, untyped } from '../support/refusals';

let redis: ReturnType<typeof mockRedis>;
let registry: RedisLockRegistry;

beforeEach(() => {
  redis = mockRedis();
  registry = new RedisLockRegistry(redis, { registryKey: 'orders' });
});

const construct = (options: unknown) => new RedisLockRegistry(redis, untyped<RedisLockRegistryOptions>(options));
const constructWith = (options: object) => construct({ registryKey: 'orders', ...options });

class Other {
  readonly password = 'secret';
}
const has = (...names: string[]) => Object.fromEntries(names.map((name) => [name, () => undefined]));
const adapter = (name: string, call: string) => `; wrap it: ${call}, the adapter in 'redis-lock-registry/${name}'`;

it.each<[unknown, string]>([
  [undefined, 'undefined'],
  [null, 'null'],
  [42, 'number'],
  ['redis://:secret@localhost', 'a string; make a client: createClient({ url })'],
  [{ password: 'secret' }, 'an options object; make a client: createClient({ url })'],
  [Object.create(null), 'an options object; make a client: createClient({ url })'],
  [has('eval'), 'an options object; make a client: createClient({ url })'],
  [has('evalSha'), 'an options object; make a client: createClient({ url })'],
  [{ eval: 1, evalSha: 2 }, 'an options object; make a client: createClient({ url })'],
  [new Other(), 'an instance of Other'],
  [has('evalsha', 'defineCommand'), `an ioredis or iovalkey client${adapter('ioredis', 'fromIoredis(redis)')}`],
  [has('invokeScript', 'customCommand'), `a valkey-glide client${adapter('valkey-glide', 'fromGlide(client)')}`],
  [has('send', 'evalsha', 'duplicate', 'connected'), `a client of Bun${adapter('bun', 'fromBun(client)')}`],
  [has('evalsha', 'createScript'), `a client of @upstash/redis${adapter('upstash', 'fromUpstash(redis)')}`],
])('The constructor says of %p what it is, and what to pass: %s', (client, what) => {
  const make = () => new RedisLockRegistry(untyped<RedisClient>(client), { registryKey: 'orders' });
  const expected = 'Expected `client` to be a Redis client with the methods eval and evalSha';
  expect(make).toThrow(new TypeError(`${expected}, got ${what}`));
});

const durations = ['expireAfter', 'maxHold', 'idleBetweenTries', 'commandTimeout', 'unavailableAfter'];
it.each([
  ...named(
    'registryKey',
    badStrings.filter(([bad]) => bad !== ''),
  ),
  ...durations.flatMap((name) => named(name, badDurations)),
  ...['cacheCapacity', 'maxWaiting'].flatMap((name) => named(name, [...badDurations, [1.5, RangeError, '1.5']])),
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
  ['subscriber', {}, TypeError, 'to be a client with the methods subscribe and unsubscribe, got'],
  ['subscriber', 5, TypeError, 'to be a client with the methods subscribe and unsubscribe, got'],
  ['subscriber', { subscribe() {} }, TypeError, 'subscribe'],
  [
    'subscriber',
    has('subscribe', 'unsubscribe', 'evalsha', 'defineCommand'),
    TypeError,
    'an ioredis or iovalkey client',
  ],
  ['minReplicas', -1, RangeError, '-1'],
  ['minReplicas', 1.5, RangeError, '1.5'],
  ['minReplicas', Number.POSITIVE_INFINITY, RangeError, 'Infinity'],
  ['minReplicas', '1', TypeError, "'1'"],
  ['replicaTimeout', 0, RangeError, '0'],
  ['replicaTimeout', '1', TypeError, "'1'"],
  ['onWarning', 'console', TypeError, "'console'"],
] as const)('The constructor refuses %s: %p', (name, value, kind, quoted) =>
  expectRefusal(() => constructWith({ [name]: value }), kind, `\`${name}\``, quoted),
);

it.each([
  ...durations.map((name) => [name, name === 'expireAfter' ? 30 : 0.5, 2 ** 31 - 1] as const),
  ['cacheCapacity', 1, 100_000, 2 ** 31 - 1],
  ['handOver', 0, 0.5, Number.POSITIVE_INFINITY],
] as const)('The constructor takes %s: %p and %p', (name, ...values) => {
  for (const value of values) expect(() => constructWith({ [name]: value })).not.toThrow();
});

it('The constructor takes a shorter expireAfter where leases are not renewed, and a call that asks for that refuses it', async () => {
  const registry = constructWith({ expireAfter: 5, renew: false });
  const isRefused = () => registry.obtain('42').lock({ renew: true });
  await expectRefusal(isRefused, RangeError, 'Expected `expireAfter` to be from 30', 'got 5 (number)');
});

it('The constructor treats undefined as an option that is not given', () => {
  constructWith({ expireAfter: undefined, lockType: undefined, onWarning: undefined });
});

it.each(badStrings)('A lock is not obtained by the key %p', async (bad, kind, quoted) => {
  const key = untyped<string>(bad);
  await expectRefusal(() => registry.obtain(key), kind, '`key`', quoted);
  await expectRefusal(() => registry.semaphore(key, { permits: 1 }), kind, '`key`', quoted);
  await expectRefusal(() => registry.readWrite(key), kind, '`key`', quoted);
  expect(registry.size).toBe(0);
});

it.each([
  ...[0, -1, 1.5, Number.NaN, Number.POSITIVE_INFINITY].map(
    (permits) => [{ permits }, RangeError, 'whole number from 1'] as const,
  ),
  [{ permits: '3' }, TypeError, '`permits`'],
  [{}, TypeError, '`permits`'],
  [undefined, TypeError, '`options`'],
] as const)('A semaphore is not made with %p', (options, kind, message) =>
  expectRefusal(() => registry.semaphore('key', untyped<SemaphoreOptions>(options)), kind, message),
);

it('A lock may have a key with characters beyond the basic plane', () => {
  expect(registry.obtain('order:\u{1f600}').key).toBe('order:\u{1f600}');
});
