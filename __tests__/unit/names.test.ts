import { expect, it } from '@jest/globals';
import { hashTag, LockNames } from '../../lib/redis/names';

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
