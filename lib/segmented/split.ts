import { wholeNumber } from '../internal/validation';
import { MOST_SEGMENTS } from '../settings';

/**
 * Splits `total` into one share for each segment. The shares differ by at most one, the larger ones come first, and
 * they add up to `total`.
 * @throws TypeError or RangeError unless `total` is a whole number from 0 up, and `segments` one from 1 to 16 384.
 * @example
 * split(7, 3); // [3, 2, 2]
 */
export function split(total: number, segments: number): number[] {
  wholeNumber('total', total, 0);
  wholeNumber('segments', segments, 1, MOST_SEGMENTS);
  const larger = total % segments;
  const share = (total - larger) / segments;
  return Array.from({ length: segments }, (_, index) => (index < larger ? share + 1 : share));
}
