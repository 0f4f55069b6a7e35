import { describe, expect, it } from '@jest/globals';
import { Wait } from '../../lib/core/wait';
import { TimeSlice, YieldToListeners } from '../../lib/protocols/sharing';
import type { Waiting } from '../../lib/protocols/waiting';
import { FakeClock } from '../support/fake-clock';

const IDLE = 100;
/** ms; a little longer than a polling interval. */
const PAUSE = 1.1 * IDLE;

describe('A time slice', () => {
  const time = FakeClock.install();

  const slices = (handOver?: number) => new TimeSlice(IDLE, handOver);

  /** Acquires now, and hands over until the slice is over. Returns its length in ms. */
  const use = (slice: TimeSlice): number => {
    const from = time.now;
    slice.acquired(from);
    while (!slice.isSliceOver(time.now)) time.now++;
    return time.now - from;
  };

  const release = (slice: TimeSlice, atSliceEnd = true): void =>
    slice.released({ sentAt: time.now, answeredAt: time.now, others: 1, areCounted: true, hintsBefore: 0, atSliceEnd });

  /** The slices of a process that contends all the time. `between`: what happens before it acquires again. */
  const lengths = (slice: TimeSlice, count: number, between: () => void): number[] =>
    Array.from({ length: count }, () => {
      const length = use(slice);
      release(slice);
      between();
      return length;
    });

  const pass = (ms: number) => () => {
    time.now += ms;
  };

  it('doubles with each pause in which no attempt was refused, up to the longest', () => {
    expect(lengths(slices(), 5, pass(PAUSE + 1))).toEqual([400, 800, 1_600, 1_600, 1_600]);
  });

  it('also doubles when the timer of the pause ends a moment early', () => {
    expect(lengths(slices(), 4, pass(PAUSE - 1))).toEqual([400, 800, 1_600, 1_600]);
  });

  it('begins again with the first length when another owner had the lock', () => {
    const slice = slices();
    lengths(slice, 3, pass(PAUSE + 1));
    slice.refused('other', time.now);
    time.now += 10;
    expect(lengths(slice, 2, pass(PAUSE + 1))).toEqual([400, 800]);
  });

  it.each([
    ['was too short', PAUSE - 10],
    ['was long ago', PAUSE + 401],
  ])('does not grow when the pause %s', (_, ms) => {
    expect(lengths(slices(), 3, pass(ms))).toEqual([400, 400, 400]);
  });

  it('does not grow after an ordinary release', () => {
    const slice = slices();
    slice.acquired(time.now);
    release(slice, false);
    time.now += PAUSE + 1;
    expect(use(slice)).toBe(400);
  });

  it('has one length where the application says it', () => {
    expect(lengths(slices(400), 3, pass(PAUSE + 1))).toEqual([400, 400, 400]);
  });

  describe('of a process that waits', () => {
    const intervals = (slice: TimeSlice, owners: string[], between = 1): number[] =>
      owners.map((owner) => {
        time.now += between * IDLE;
        slice.refused(owner, time.now);
        return slice.pollingInterval(false);
      });

    it('leaves the interval as it is while one owner holds the lock', () => {
      expect(intervals(slices(), ['a', 'a', 'a'])).toEqual([100, 100, 100]);
    });

    it('halves the interval with each turn that it missed, down to an eighth', () => {
      const owners = ['a', 'b', 'b', 'a', 'c', 'd'];
      expect(intervals(slices(), owners)).toEqual([100, 50, 50, 25, 12.5, 12.5]);
    });

    it('has the shortest interval at once for a caller that holds other locks', () => {
      const slice = slices();
      expect(intervals(slice, ['a', 'a'])).toEqual([100, 100]);
      expect(slice.pollingInterval(true)).toBe(12.5);
    });

    it('counts the first turn of another process too when it has just had a slice', () => {
      const slice = slices();
      use(slice);
      release(slice);
      expect(intervals(slice, ['a', 'a', 'b'])).toEqual([50, 50, 25]);
    });

    it('has shorter slices while it misses several turns, and one more after that', () => {
      const slice = slices();
      intervals(slice, ['a', 'b']);
      expect(use(slice)).toBe(400);
      intervals(slice, ['a', 'b', 'c']);
      expect(use(slice)).toBe(120);
      intervals(slice, ['a', 'b']);
      expect(use(slice)).toBe(120);
      intervals(slice, ['a', 'b']);
      expect(use(slice)).toBe(400);
    });

    it('begins anew when it had a turn, or when nobody waited for a while', () => {
      const slice = slices();
      expect(intervals(slice, ['a', 'b', 'c'])).toEqual([100, 50, 25]);
      slice.acquired(time.now);
      expect(intervals(slice, ['a', 'b'])).toEqual([100, 50]);
      expect(intervals(slice, ['c', 'd'], 4)).toEqual([100, 100]);
    });
  });

  it('is followed by a pause for others', () => {
    const slice = slices();
    const wait = new Wait('key', 1_000, undefined);
    use(slice);
    expect(slice.standBack(wait)).toBeUndefined();
    release(slice);
    expect(slice.standBack(wait)).toBeDefined();
    time.now += PAUSE + 1;
    expect(slice.standBack(wait)).toBeUndefined();
  });
});

describe('Yielding to listeners', () => {
  const time = FakeClock.install();

  /** The ms that a caller stands back, `after` ms from a release on, once all other listeners have had a turn. */
  function stepsBack(after: number, release: { others: number; areCounted: boolean; atSliceEnd: boolean }): number {
    const sharing = new YieldToListeners(50);
    sharing.released({ ...release, sentAt: time.now, answeredAt: time.now, hintsBefore: 0 });
    time.now += after;
    const waiting = { hints: 100, hintedAt: time.now, onRelease: () => () => undefined } as unknown as Waiting;
    void sharing.standBack(new Wait('key', 10_000, undefined), waiting);
    return time.delays.at(-1) ?? 0;
  }

  it.each([
    ['one other: two of the longest steps', 1, 40],
    ['three others: four of them', 3, 80],
    ['many others: no longer than at most', 30, 200],
  ])('does not leave a free lock alone for long because the reply was slow: %s', (_, others, ms) => {
    const sharing = new YieldToListeners(50);
    const answeredAt = time.now;
    sharing.released({
      others,
      sentAt: answeredAt - 900,
      answeredAt,
      areCounted: true,
      hintsBefore: 0,
      atSliceEnd: true,
    });
    const waiting = { hints: 0, hintedAt: 0, onRelease: () => () => undefined } as unknown as Waiting;
    void sharing.standBack(new Wait('key', 10_000, undefined), waiting);
    expect(time.delays).toEqual([ms]);
  });

  it('ends when it has lasted for as long as is allowed, whatever is released meanwhile', async () => {
    const sharing = new YieldToListeners(50);
    const { now } = time;
    sharing.released({ others: 30, sentAt: now, answeredAt: now, areCounted: true, hintsBefore: 0, atSliceEnd: true });
    let released = (): void => undefined;
    const waiting = {
      hints: 0,
      hintedAt: 0,
      onRelease: (resume: () => void) => {
        released = resume;
        return () => undefined;
      },
    };
    let isOver = false;
    const stoodBack = sharing.standBack(new Wait('key', 10_000, undefined), waiting as unknown as Waiting);
    void stoodBack?.then(() => (isOver = true));
    for (let i = 0; i < 30 && !isOver; i++) {
      await time.advance(10);
      waiting.hintedAt = time.now;
      released();
    }
    await time.advance(0);
    expect(isOver).toBe(true);
    expect(time.now - now).toBeLessThanOrEqual(210);
  });

  it.each([
    ['two others, in their time', 99, { others: 2, areCounted: true, atSliceEnd: true }, 4],
    ['two others, after it', 101, { others: 2, areCounted: true, atSliceEnd: true }, 0],
    ['one other, in its time', 49, { others: 1, areCounted: true, atSliceEnd: true }, 4],
    ['one other, after it', 51, { others: 1, areCounted: true, atSliceEnd: true }, 0],
    ['others that cannot be counted: as two', 99, { others: 1, areCounted: false, atSliceEnd: true }, 4],
    ['no slice', 10, { others: 2, areCounted: true, atSliceEnd: false }, 0],
  ])('after a slice leaves two steps to turns that are short: %s', (_, after, release, ms) => {
    expect(stepsBack(after, release)).toBe(ms);
  });
});
