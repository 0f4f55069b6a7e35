import { expect, it } from '@jest/globals';
import { Wait } from '../../lib/core/wait';
import type { Waiting } from '../../lib/kinds/common/waiting';
import { TimeSlice, YieldToListeners } from '../../lib/kinds/common/yielding';
import { FakeClock } from '../support/fake-clock';

const IDLE = 100;
/** ms; a little longer than a polling interval. */
const PAUSE = 1.1 * IDLE;

const time = FakeClock.install();

/** A release at the end of a slice, which is answered at once. */
const release = (others = 1) => {
  const { now } = time;
  return { sentAt: now, answeredAt: now, others, areCounted: true, hintsBefore: 0, atSliceEnd: true, headStart: 0 };
};

/** Acquires now, and hands over until the slice is over. Returns its length in ms. */
const use = (slice: TimeSlice): number => {
  const from = time.now;
  slice.acquired(from);
  while (!slice.isSliceOver(time.now)) time.now++;
  return time.now - from;
};

/** The slices of a process that contends all the time, with a pause of `ms` after each. */
const lengths = (slice: TimeSlice, count: number, ms: number): number[] =>
  Array.from({ length: count }, () => {
    const length = use(slice);
    slice.released(release());
    time.now += ms;
    return length;
  });

it.each<[string, handOver: number | undefined, pause: number, number[]]>([
  ['doubles with each pause without a refusal, up to the longest', undefined, PAUSE + 1, [400, 800, 1_600, 1_600]],
  ['doubles also when the timer of the pause ends a moment early', undefined, PAUSE - 2, [400, 800, 1_600, 1_600]],
  ['does not grow when the pause was too short', undefined, PAUSE - 10, [400, 400, 400]],
  ['doubles also some time after the pause', undefined, 509, [400, 800]],
  ['does not grow when the pause was long ago', undefined, 510, [400, 400, 400]],
  ['has one length where the application says it', 400, PAUSE + 1, [400, 400, 400]],
])('%s', (_, handOver, pause, expected) => {
  expect(lengths(new TimeSlice(IDLE, handOver), expected.length, pause)).toEqual(expected);
});

it.each([
  ['between them', 20, [80, 160, 320, 320]],
  ['the least', 10, [50, 100, 200, 200]],
  ['the most', 300, [400, 800, 1_600, 1_600]],
])('A time slice is four intervals long where these are shorter, within limits: %s', (_, idle, expected) => {
  expect(lengths(new TimeSlice(idle), expected.length, 1.1 * idle + 1)).toEqual(expected);
});

it('A time slice begins again with the first length when another owner had the lock', () => {
  const slice = new TimeSlice(IDLE);
  lengths(slice, 3, PAUSE + 1);
  slice.refused('other', time.now);
  time.now += 10;
  expect(lengths(slice, 2, PAUSE + 1)).toEqual([400, 800]);
});

it('A time slice does not grow after an ordinary release', () => {
  const slice = new TimeSlice(IDLE);
  slice.acquired(time.now);
  slice.released({ ...release(), atSliceEnd: false });
  time.now += PAUSE + 1;
  expect(use(slice)).toBe(400);
  slice.released(release());
  time.now += PAUSE + 1;
  slice.acquired(time.now);
  // It was acquired anew, and others may have had it.
  expect(use(slice)).toBe(400);
  time.now = 100;
  expect(use(new TimeSlice(IDLE))).toBe(400);
});

it('A time slice is followed by a pause for others', () => {
  const slice = new TimeSlice(IDLE);
  const wait = new Wait('key', 1_000, undefined);
  use(slice);
  expect(slice.standBack(wait)).toBeUndefined();
  slice.released(release());
  expect(slice.standBack(wait)).toBeDefined();
  time.now += PAUSE + 1;
  expect(slice.standBack(wait)).toBeUndefined();
});

/** The intervals of its polls, each of which finds one of these owners. */
const intervals = (slice: TimeSlice, owners: string, between = 1): number[] =>
  [...owners].map((owner) => {
    time.now += between * IDLE;
    slice.refused(owner, time.now);
    return slice.pollingInterval(false);
  });

it('A time slice of a process that waits leaves the interval as it is while one owner holds the lock, unless the caller holds other locks', () => {
  const slice = new TimeSlice(IDLE);
  expect(intervals(slice, 'aaa')).toEqual([100, 100, 100]);
  expect(slice.pollingInterval(true)).toBe(12.5);
});

it('A time slice of a process that waits halves the interval with each turn that it missed, down to an eighth', () => {
  expect(intervals(new TimeSlice(IDLE), 'abbacd')).toEqual([100, 50, 50, 25, 12.5, 12.5]);
});

it('A time slice of a process that waits counts the first turn of another process too when it has just had a slice', () => {
  const slice = new TimeSlice(IDLE);
  use(slice);
  slice.released(release());
  expect(intervals(slice, 'aab')).toEqual([50, 50, 25]);
});

it('A time slice of a process that waits has shorter slices while it misses several turns, and one more after that', () => {
  const slice = new TimeSlice(IDLE);
  // The last ones meet nobody.
  const used = ['ab', 'abc', 'ab', 'ab', 'abc', '', ''].map((owners) => {
    intervals(slice, owners);
    return use(slice);
  });
  expect(used).toEqual([400, 120, 120, 400, 120, 120, 400]);
});

it('A time slice is as long as usual when nobody waited since the turns that were missed', () => {
  const slice = new TimeSlice(IDLE);
  intervals(slice, 'abc');
  time.now += 3 * IDLE + 1;
  expect(use(slice)).toBe(400);
});

it('A time slice of a process that waits begins anew when it had a turn, or when nobody waited for a while', () => {
  const slice = new TimeSlice(IDLE);
  expect(intervals(slice, 'abc')).toEqual([100, 50, 25]);
  slice.acquired(time.now);
  expect(intervals(slice, 'ab')).toEqual([100, 50]);
  expect(intervals(slice, 'c', 3)).toEqual([25]);
  expect(intervals(slice, 'cd', 3.1)).toEqual([100, 100]);
});

it('Yielding to listeners begins after 50 ms by default, and a release is remembered for a second', () => {
  const yielding = new YieldToListeners();
  yielding.acquired(time.now);
  expect([49, 50].map((ms) => yielding.isSliceOver(time.now + ms))).toEqual([false, true]);
  yielding.released(release());
  time.now += 999;
  expect(standBack(yielding, { hints: 0, hintedAt: time.now })).not.toBeUndefined();
  time.now += 1;
  expect(standBack(yielding, { hints: 0, hintedAt: time.now })).toBeUndefined();
});

it('Yielding to listeners leaves two slices to others where it is not known how many there are', () => {
  const yielding = new YieldToListeners(50);
  const isLeft = () => standBack(yielding, { hints: 2, hintedAt: time.now }) !== undefined;
  yielding.released({ ...release(), areCounted: false });
  time.now += 99;
  expect(isLeft()).toBe(true);
  time.now += 1;
  expect(isLeft()).toBe(false);
});

const standBack = (
  yielding: YieldToListeners,
  waiting: { -readonly [K in keyof Waiting]?: Waiting[K] },
  waitTime = 10_000,
) =>
  yielding.standBack(
    new Wait('key', waitTime, undefined),
    Object.assign(waiting, { onRelease: waiting.onRelease ?? (() => () => undefined) }) as unknown as Waiting,
  );

it.each([
  ['one other: two of the longest steps', 1, 40],
  ['three others: four of them', 3, 80],
  ['many others: no longer than at most', 30, 200],
])('Yielding to listeners does not leave a free lock alone for long after a slow reply: %s', (_, others, ms) => {
  const yielding = new YieldToListeners(50);
  yielding.released({ ...release(others), sentAt: time.now - 900 });
  void standBack(yielding, { hints: 0, hintedAt: 0 });
  expect(time.delays).toEqual([ms]);
});

/** A process that waits, and hears of a release by `released`. */
function listening() {
  const waiting = {
    hints: 0,
    hintedAt: 0,
    released: (): void => undefined,
    onRelease: (resume: () => void) => {
      waiting.released = resume;
      return () => undefined;
    },
  };
  return waiting;
}

it('Yielding to listeners ends when it has lasted for as long as is allowed, whatever is released meanwhile', async () => {
  const yielding = new YieldToListeners(50);
  const { now } = time;
  yielding.released(release(30));
  const waiting = listening();
  let isOver = false;
  void standBack(yielding, waiting)?.then(() => (isOver = true));
  for (let i = 0; i < 30 && !isOver; i++) {
    await time.advance(10);
    waiting.hintedAt = time.now;
    waiting.released();
  }
  await time.advance(0);
  expect(isOver).toBe(true);
  expect(time.now - now).toBe(200);
});

it('Yielding to listeners ends when all of them have had it, and with half of what is left of a wait', async () => {
  const yielding = new YieldToListeners(50);
  yielding.released({ ...release(1), atSliceEnd: false });
  const waiting = listening();
  const over = standBack(yielding, waiting) as Promise<void>;
  Object.assign(waiting, { hints: 2, hintedAt: time.now });
  waiting.released();
  expect([(await time.settled(over))?.after, time.delays]).toEqual([0, [4]]);
  yielding.released({ ...release(3), sentAt: time.now - 900 });
  const short = standBack(yielding, { hints: 0, hintedAt: 0 }, 20) as Promise<void>;
  expect((await time.settled(short))?.after).toBe(10);
});

it.each([
  ['two others, in their time', 99, {}, 4],
  ['two others, after it', 101, {}, 0],
  ['one other, in its time', 49, { others: 1 }, 4],
  ['one other, after it', 51, { others: 1 }, 0],
  ['others that cannot be counted: as two', 99, { others: 1, areCounted: false }, 4],
  ['no slice', 10, { atSliceEnd: false }, 0],
])('Yielding to listeners after a slice leaves two steps to turns that are short: %s', (_, after, how, ms) => {
  const yielding = new YieldToListeners(50);
  yielding.released({ ...release(2), ...how });
  time.now += after;
  // All other listeners have had a turn.
  void standBack(yielding, { hints: 100, hintedAt: time.now });
  expect(time.delays.at(-1) ?? 0).toBe(ms);
});

it.each([
  [0, 4],
  [100, 110 + 4],
  [150, 165 + 4],
  [1_000, 500 + 4],
])(
  'A process that gave the lock up leaves another one its head start of %d ms, and then the listeners theirs',
  (interval, ms) => {
    const yielding = new YieldToListeners();
    yielding.acquired(time.now);
    yielding.released({ ...release(1), headStart: interval, atSliceEnd: false });
    const wait = new Wait('k', 10_000, undefined);
    time.delays = [];
    void yielding.standBack(wait, undefined);
    expect(time.delays).toEqual([expect.closeTo(ms)]);
  },
);

it.each([
  ['others may have had it in between', 3, PAUSE + 4],
  ['no more once all have had a turn', 5, 4],
])('A process leaves the head start of another one free at each release that it notices: %s', (_, hints, ms) => {
  const yielding = new YieldToListeners();
  yielding.acquired(time.now);
  yielding.released({ ...release(3), headStart: IDLE });
  time.now += 80;
  void standBack(yielding, { hints, hintedAt: time.now });
  expect(time.delays.at(-1)).toBeCloseTo(ms);
});

it.each([
  ['after its own release', 1, PAUSE + 4],
  ['no more once it has noticed another one', 2, 4],
])('A process that has a head start leaves the others as much: %s', (_, hints, ms) => {
  const yielding = new YieldToListeners();
  yielding.acquired(time.now);
  yielding.released(release(2));
  void standBack(yielding, { hints, hintedAt: time.now, headStart: IDLE });
  expect(time.delays.at(-1)).toBeCloseTo(ms);
});
