import { expect, it } from '@jest/globals';
import { hashTag, LockNames } from '../../lib/redis/names';

it("names key and channel of a lock as Spring Integration's RedisLockRegistry does", () => {
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
])('names a companion of %s:%s that shares its hash slot', (registryKey, key, companion) => {
  const names = new LockNames(registryKey, key);
  expect(names.companion('fence')).toBe(companion);
  expect(hashTag(companion) ?? companion).toBe(hashTag(names.lock) ?? names.lock);
});

it.each(['{', '}', '{}', 'a{b', 'a}b', '}{', '{}{a}'])(
  'finds no companion for the name %s, whose braces make no hash tag, and says so',
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
])('finds the hash tag of %j as Redis does: %j', (name, tag) => {
  expect(hashTag(name)).toBe(tag);
});
