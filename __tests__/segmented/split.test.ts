import { describe, expect, it } from '@jest/globals';
import { assert, integer, property } from 'fast-check';
import { split } from '../../lib';

describe('split', () => {
  it('gives the larger shares to the first segments', () => {
    expect(split(7, 3)).toEqual([3, 2, 2]);
    expect(split(1_000, 20)).toEqual(Array(20).fill(50));
    expect(split(2, 4)).toEqual([1, 1, 0, 0]);
    expect(split(0, 2)).toEqual([0, 0]);
    expect(split(5, 1)).toEqual([5]);
  });

  it('distributes any total completely, in shares that differ by at most one', async () => {
    await assert(
      property(
        integer({ min: 0, max: Number.MAX_SAFE_INTEGER }),
        integer({ min: 1, max: 1_000 }),
        (total, segments) => {
          const shares = split(total, segments);
          expect(shares).toHaveLength(segments);
          expect(shares.reduce((sum, share) => sum + BigInt(share), 0n)).toBe(BigInt(total));
          expect(Math.max(...shares) - Math.min(...shares)).toBeLessThanOrEqual(1);
        },
      ),
    );
  });

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
  ])('refuses split(%p, %p)', (total, segments, kind, name, quoted) => {
    const cut = () => split(total as number, segments as number);
    expect(cut).toThrow(kind);
    expect(cut).toThrow(name);
    expect(cut).toThrow(quoted);
  });
});
