import { expect, it } from '@jest/globals';
import { assert, integer, property } from 'fast-check';
import { SegmentedLock, split } from '../../lib';
import { hashSlot } from '../../lib/redis/cluster';
import { LocalRegistry } from './local-registry';

const namesOf = (key: string, segments: number) => new SegmentedLock(new LocalRegistry(), key, { segments }).names;
const slotsOf = (key: string, segments: number) =>
  new Set(namesOf(key, segments).map((name) => hashSlot(`orders:${name}`)));

it('The names of segments are the key and the index', () => {
  expect(namesOf('product:7', 3)).toEqual(['product:7:0', 'product:7:1', 'product:7:2']);
});

it('The names of segments have the index inside the hash tag where the key has one', () => {
  expect(namesOf('{product:7}', 2)).toEqual(['{product:7:0}', '{product:7:1}']);
  expect(namesOf('shop:{7}:{stock}', 2)).toEqual(['shop:{7:0}:{stock}', 'shop:{7:1}:{stock}']);
  expect(namesOf("{$&$'}", 1)).toEqual(["{$&$':0}"]);
});

it('The names of segments do not treat other braces as a hash tag', () => {
  expect(namesOf('a{}b', 1)).toEqual(['a{}b:0']);
  expect(namesOf('a}b{c', 1)).toEqual(['a}b{c:0']);
});

it.each(['product:7', '{product:7}', 'shop:{7}:stock'])(
  'The names of segments spread over the slots of a cluster for the key %p',
  (key) => {
    // By the birthday problem, two of 20 segments share a slot in one key of eighty.
    expect(slotsOf(key, 20).size).toBe(20);
    const thirds = [...slotsOf(key, 300)].map((slot) => Math.floor((slot * 3) / 16_384));
    for (const third of [0, 1, 2]) expect(thirds.filter((each) => each === third).length).toBeGreaterThan(60);
  },
);

it('The names of segments put data that are named after a segment with a hash tag into its slot', () => {
  for (const name of namesOf('{product:7}', 20)) {
    expect(new Set([`orders:${name}`, `stock:${name}`, `ledger:${name}`].map(hashSlot)).size).toBe(1);
  }
});

it('The hash slots of segments are those of the specification', () => {
  expect(hashSlot('123456789')).toBe(0x31c3);
  expect(hashSlot('foo{bar}{zap}')).toBe(hashSlot('bar'));
});

it('`split` gives the larger shares to the first segments', () => {
  expect(split(7, 3)).toEqual([3, 2, 2]);
  expect(split(1_000, 20)).toEqual(Array(20).fill(50));
  expect(split(2, 4)).toEqual([1, 1, 0, 0]);
  expect(split(0, 2)).toEqual([0, 0]);
  expect(split(5, 1)).toEqual([5]);
});

it('`split` distributes any total completely, in shares that differ by at most one', async () => {
  await assert(
    property(integer({ min: 0, max: Number.MAX_SAFE_INTEGER }), integer({ min: 1, max: 1_000 }), (total, segments) => {
      const shares = split(total, segments);
      expect(shares).toHaveLength(segments);
      expect(shares.reduce((sum, share) => sum + BigInt(share), 0n)).toBe(BigInt(total));
      expect(Math.max(...shares) - Math.min(...shares)).toBeLessThanOrEqual(1);
    }),
  );
});
