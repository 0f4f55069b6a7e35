import type { Lease } from '../api/distributed-lock';
import { wholeNumber } from '../internal/validation';
import { hashTag } from '../redis/names';

/** A Redis cluster has this many slots: more segments could not spread any further. */
export const MOST_SEGMENTS = 16_384;

declare const brand: unique symbol;

/** The type of `segment.exhausted`, which is its only value. */
export type Exhausted = symbol & { readonly [brand]: 'exhausted' };

export const EXHAUSTED = Symbol('exhausted') as Exhausted;

/** A segment whose lock is held: no other caller uses its part of the data. */
export interface Segment {
  /** From 0 up. */
  readonly index: number;
  /** The key of its lock, for `registry.obtain` too. Its part of the data is best named after it. */
  readonly name: string;
  readonly lease: Lease;
  /** What a task returns when this segment cannot serve it. It must have changed nothing: the next segment is tried. */
  readonly exhausted: Exhausted;
}

/** The part of a total that belongs to one segment. */
export interface Share {
  readonly index: number;
  readonly name: string;
  readonly amount: number;
}

/** The part of an amount that is taken from one segment, whose lock is held. */
export interface Part extends Share {
  readonly lease: Lease;
}

/** One segment served the task, or none could: each was entered under its lock. */
export type SegmentedResult<T> =
  | { readonly served: true; readonly value: T; readonly segment: number }
  | { readonly served: false };

/** These segments served the task together, or all of them together could not. */
export type AcrossResult<T> =
  | { readonly served: true; readonly value: T; readonly segments: readonly number[] }
  | { readonly served: false };

/** How an amount is taken from several segments. */
export interface AcrossTask<T> {
  /** The amount that the segment has, a whole number from 0 up. Called under its lock; it must change nothing. */
  available(segment: Segment): number | PromiseLike<number>;
  /** Takes `amount` from each of the parts, all or nothing. Called once, when there is enough, while all are locked. */
  commit(parts: readonly Part[]): T | PromiseLike<T>;
}

/**
 * `product:7` becomes `product:7:3`, and `{product:7}` becomes `{product:7:3}`. The part between braces decides on the
 * slot of a cluster: with the index inside it the segments spread over the slots. Data that are named after a segment
 * share its slot.
 */
export function segmentName(key: string, index: number): string {
  const tag = hashTag(key);
  return tag === undefined ? `${key}:${index}` : key.replace(`{${tag}}`, () => `{${tag}:${index}}`);
}

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
