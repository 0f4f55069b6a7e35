import { expected, number } from '../internal/validation';

/**
 * The order in which each call tries the segments: random, except that segments that were busy or exhausted lately come
 * last, the latest at the end. "Lately" is within as many calls as there are segments: so no caller sticks to one
 * segment, and a segment that was filled up again is found.
 */
export class SegmentOrder {
  readonly #random: () => number;
  /**
   * By index: the call, counted from 1, in which the segment last was busy or exhausted; 0 when it has served since.
   */
  readonly #refusedIn: number[];
  #calls = 0;

  constructor(segments: number, random: () => number) {
    this.#random = random;
    this.#refusedIn = new Array(segments).fill(0);
  }

  /** The indices of all segments, in the order of a new call. */
  next(): number[] {
    const indices = [...this.#refusedIn.keys()];
    // Fisher-Yates. With only a random start, the neighbour of a busy segment would get twice the load.
    for (let left = indices.length; left > 1; left--) {
      const drawn = number('random()', this.#random());
      if (!(drawn >= 0 && drawn < 1)) {
        throw new RangeError(expected('random()', 'a number from 0 up to below 1', drawn));
      }
      const from = Math.floor(drawn * left);
      [indices[left - 1], indices[from]] = [indices[from] as number, indices[left - 1] as number];
    }
    const lately = ++this.#calls - indices.length;
    const refusal = (index: number): number => Math.max(0, (this.#refusedIn[index] as number) - lately);
    return indices.sort((a, b) => refusal(a) - refusal(b));
  }

  /** The segment was busy, or its task returned `exhausted`. */
  refused(index: number): void {
    this.#refusedIn[index] = this.#calls;
  }

  served(index: number): void {
    this.#refusedIn[index] = 0;
  }
}
