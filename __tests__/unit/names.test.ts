import { expect, it } from '@jest/globals';
import { RedisLockRegistry } from '../../lib';
import { lockOfCompanion } from '../../lib/kinds/common/look';
import { globPattern, hashTag, LockNames, literally, lockPrefix } from '../../lib/redis/names';
import { LOCK_TYPES } from '../support/lock-types';
import { mockRedis } from '../support/mock-redis';

it("The key and the channel of a lock have the names that Spring Integration's RedisLockRegistry gives them", () => {
  const names = new LockNames('orders', 'order:42');
  expect(names.lock).toBe('orders:order:42');
  expect(names.channel).toBe('orders-channel:orders:order:42');
});

it.each([
  ['orders', '42', '{orders:42}:fence'],
  ['orders', '{customer:7}:42', '{customer:7}:fence:orders:{customer:7}:42'],
  ['{shop}', '42', '{shop}:fence:{shop}:42'],
  ['orders', 'a}b{c}', '{c}:fence:orders:a}b{c}'],
  ['orders', '{a}{b}', '{a}:fence:orders:{a}{b}'],
  ['orders', '{{a}}', '{{a}:fence:orders:{{a}}'],
])('A companion of %s:%s shares its hash slot', (registryKey, key, companion) => {
  const names = new LockNames(registryKey, key);
  expect(names.companion('fence')).toBe(companion);
  expect(hashTag(companion) ?? companion).toBe(hashTag(names.lock) ?? names.lock);
});

it.each(['{', '}', '{}', 'a{b', 'a}b', '}{', '{}{a}'])(
  'The name %s has no companion, since its braces make no hash tag, and the error says so',
  (key) => {
    const names = new LockNames('orders', key);
    expect(() => names.companion('fence')).toThrow(RangeError);
    expect(() => names.companion('fence')).toThrow(`"orders:${key}"`);
  },
);

it.each([
  ['', undefined],
  ['name', undefined],
  ['{}', undefined],
  ['{', undefined],
  ['{open', undefined],
  ['}{', undefined],
  ['{}{a}', undefined], // only the first { counts
  ['{a}', 'a'],
  ['x{a}y{b}', 'a'],
  ['{{a}}', '{a'],
  ['}a{b}', 'b'],
])('The hash tag of %j is the one that Redis finds: %j', (name, tag) => {
  expect(hashTag(name)).toBe(tag);
});

it.each([
  ['{orders:1}:queue', 'orders:1'],
  ['{tag}:queue:orders:{tag}:1', 'orders:{tag}:1'],
  ['{a}:queue:two\nlines', 'two\nlines'],
  ['{a}:fence', undefined],
  ['{a}:queues', undefined],
  ['{}:queue', undefined],
  ['x{a}:queue', undefined],
])('The queue %j belongs to the lock %j', (queue, lock) => {
  expect(lockOfCompanion(queue, 'queue')).toBe(lock);
});

/** What the library and Redisson append to the name of a lock. */
const SUFFIXES = ['fence', 'queue', 'tickets', 'grants', 'waiters', 'evals', 'once', 'timeout', 'channel', 'token'];

it.each(LOCK_TYPES)(
  'Keys of %s locks that look like companions of each other are different locks, or one is refused by name',
  async (lockType) => {
    const redis = mockRedis();
    const registry = new RedisLockRegistry(redis, { registryKey: 'companions', lockType, fencing: true });
    const lockOf = new Map<string, string>();
    for (const key of ['{t}', 'plain'].flatMap((name) => [name, ...SUFFIXES.map((suffix) => `${name}:${suffix}`)])) {
      const sent = redis.calls.length;
      try {
        await registry.run(key, () => undefined);
      } catch (error) {
        expect([error, key]).toEqual([expect.any(RangeError), expect.stringContaining(':')]);
      }
      for (const name of redis.calls.slice(sent).flatMap((options) => options?.keys ?? [])) {
        expect([name, lockOf.get(name) ?? key]).toEqual([name, key]);
        lockOf.set(name, key);
      }
    }
    expect(new Set(lockOf.values()).size).toBeGreaterThan(10);
  },
);

it('An empty registryKey puts nothing before a key, and a name that a key of another lock has is refused', () => {
  expect([lockPrefix(''), lockPrefix('orders')]).toEqual(['', 'orders:']);
  for (const name of ['{a}:fence', '{a}:queue:b', '{a}:once']) expect(() => LockNames.checked('', name)).toThrow(name);
  for (const name of ['{a}:fences', 'x{a}:fence', '{}:fence', '{a}'])
    expect(LockNames.checked('', name).lock).toBe(name);
});

it.each([
  ['a*c', ['ac', 'abc', 'a\nc'], ['ab', 'xac', 'acx']],
  ['a?c', ['abc', 'a?c'], ['ac', 'abbc']],
  ['a\\*c', ['a*c'], ['abc', 'a\\*c']],
  ['[ab]', ['a', 'b'], ['c', '[ab]']],
  ['[^ab]', ['c', '^'], ['a', '']],
  ['[a-c]', ['b'], ['-', 'd']],
  ['[z-a\\d]', ['b', 'd'], ['-', '5']],
  ['[+-].', ['+', '5', '.'], ['+.', 'b']],
  ['[a^]', ['a', '^'], ['b']],
  ['[[]', ['['], ['[[]']],
  ['a.c+(d)|e$', ['a.c+(d)|e$'], ['abc+(d)|e$', 'a.ccd', 'e']],
  ['[', [], ['', '[']],
])('The glob %j matches %j, and none of %j', (glob, matching, others) => {
  const matches = (text: string) => globPattern(glob).test(text);
  expect([matching.map(matches), others.map(matches)]).toEqual([matching.map(() => true), others.map(() => false)]);
});

it('A text as a glob matches itself, and nothing else', () => {
  const text = 'a*b?[^c-d]\\{e}';
  expect(literally(text)).not.toBe(text);
  expect(globPattern(literally(text)).test(text)).toBe(true);
  for (const other of ['aab?[^c-d]\\{e}', 'a*b?e', 'a*bx[^c-d]\\{e}'])
    expect(globPattern(literally(text)).test(other)).toBe(false);
});
