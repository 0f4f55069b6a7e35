import { beforeEach, expect, it } from '@jest/globals';
import { Line } from '../../lib/redis/line';
import { Silence } from '../../lib/redis/silence';
import { FakeClock } from '../support/fake-clock';

type Call = { isOver: boolean };

const time = FakeClock.install();
let sentAt: number[];
let line: Line<Call>;

beforeEach(() => {
  sentAt = [];
  line = new Line(new Silence(true), (calls) => sentAt.push(...calls.map(() => Math.round(time.now - 1_000))));
});

const call = (isOver = false): Call => ({ isOver });
const isHeldBack = () => line.holdsBack(call(), time.now);

it('Calls to a silent server are held back from the 200th unanswered key on, and sent when it answers', async () => {
  line.asked(199, time.now);
  await time.advance(600);
  expect(isHeldBack()).toBe(false);
  line.asked(1, time.now);
  expect(isHeldBack()).toBe(true);
  line.answered(1, time.now);
  expect(sentAt).toEqual([600]);
});

it('One of the calls that are held back goes out after a second, and then after pauses that double up to 5 s', async () => {
  line.asked(200, time.now);
  await time.advance(600);
  for (let i = 0; i < 10; i++) isHeldBack();
  await time.advance(16_000);
  const pauses = sentAt.map((at, i) => at - (sentAt[i - 1] ?? 600));
  expect(pauses.map((ms) => Math.round(ms / 1_000))).toEqual([0, 1, 2, 4, 5]);
});

it('Calls that were held back go out once each, also over a client that fails them at once', async () => {
  const sent: Call[] = [];
  line = new Line(new Silence(true), (calls) => {
    for (const one of calls) {
      sent.push(one);
      line.asked(1, time.now);
      line.failed(1, time.now, new Error('The client is closed'));
    }
  });
  line.asked(200, time.now);
  await time.advance(600);
  const held = [call(), call()];
  for (const one of held) expect(line.holdsBack(one, time.now)).toBe(true);
  line.answered(1, time.now);
  expect(sent).toEqual(held);
});

it('An answer after a lost one counts as late as if it were that to what was lost', async () => {
  const silence = new Silence(false);
  const own = new Line(silence, () => undefined);
  own.asked(1, time.now);
  await time.advance(600);
  own.failed(1, time.now - 600, new Error('Socket closed unexpectedly'));
  own.asked(1, time.now);
  own.answered(1, time.now);
  expect(silence.outdatedUntil).toBe(time.now + 120);
});

it('Calls are held back after 500 ms of silence, and those whose time is over are dropped', async () => {
  line.asked(200, time.now);
  await time.advance(500);
  expect(isHeldBack()).toBe(false);
  await time.advance(1);
  const over = { isOver: false };
  expect([line.holdsBack(over, time.now), isHeldBack()]).toEqual([true, true]);
  over.isOver = true;
  expect(time.keepingAlive).toBe(0);
  await time.advance(1_000);
  // The first one was over: the other one was sent to find out.
  expect(sentAt).toEqual([502]);
  over.isOver = false;
  line.holdsBack(over, time.now);
  over.isOver = true;
  line.answered(1, time.now);
  expect([sentAt, isHeldBack()]).toEqual([[502], false]);
});

it('A probe that is answered begins the pauses anew, and with nothing held back there is no timer', async () => {
  for (const before of [0, 4]) {
    line.asked(300, time.now);
    await time.advance(501);
    for (let i = 0; i < 4; i++) isHeldBack();
    await time.advance(4_000);
    expect(sentAt.length - before).toBe(3);
    line.answered(1, time.now);
    await time.advance(10_000);
    expect([sentAt.length - before, time.pending, isHeldBack()]).toEqual([4, 0, false]);
  }
});

it('What is unanswered counts from the first command since the last answer, also if that was lost with its connection', async () => {
  const since = (): (number | undefined)[] => [line.unansweredSince];
  // One that is not sent after all.
  line.asked(1, 4);
  line.dropped(1);
  expect(since()).toEqual([undefined]);
  line.asked(1, 5);
  line.asked(1, 6);
  expect(since()).toEqual([5]);
  line.dropped(1);
  expect(since()).toEqual([5]);
  line.answered(1, 6);
  expect(since()).toEqual([undefined]);
  line.asked(1, 7);
  line.failed(1, 7, new Error('Socket closed unexpectedly'));
  line.asked(1, 8);
  expect(since()).toEqual([7]);
  line.dropped(1);
  expect(since()).toEqual([7]);
  line.failed(1, 6, new Error('Socket closed unexpectedly'));
  expect(since()).toEqual([6]);
  line.failed(1, 8, new Error('ERR no'));
  expect(since()).toEqual([undefined]);
  line.asked(1, 9);
  line.failed(1, 9, new Error('Socket closed unexpectedly'));
  line.answered(1, 9);
  expect(since()).toEqual([undefined]);
});

it('A command that was answered is not kept, and one that was lost with its connection is no answer', async () => {
  const silence = new Silence(false);
  line = new Line(silence, () => undefined);
  line.asked(200, time.now);
  line.answered(1, time.now);
  line.asked(0, time.now);
  await time.advance(501);
  expect(isHeldBack()).toBe(false);
  line.failed(1, 1_000, new Error('Socket closed unexpectedly'));
  // A client may reject with anything.
  line.failed(1, 1_000, undefined);
  expect(silence.outdatedUntil).toBe(Number.NEGATIVE_INFINITY);
});

it('A command that was not sent says nothing of the server: what is held back stays, and so does the silence', async () => {
  line.asked(201, time.now);
  await time.advance(501);
  expect(isHeldBack()).toBe(true);
  line.dropped(1);
  expect([sentAt, isHeldBack(), line.unansweredSince]).toEqual([[], true, 1_000]);
});

it.each([
  ['one connection', true, [0, 500], Number.NEGATIVE_INFINITY],
  ['one connection', true, [0, 501], 1_621],
  ['several connections', false, [100, 501], 1_621],
  // One that took long behind others is no silence on one connection.
  ['one connection', true, [100, 501, 600], Number.NEGATIVE_INFINITY],
])('A client with %s (%p) that answers after %p ms may be outdated until %p', async (_, isOne, answersAt, until) => {
  const silence = new Silence(isOne);
  const lost = new Line(silence, () => undefined);
  lost.asked(1, 1_000);
  for (const at of answersAt) {
    await time.advance(at + 1_000 - time.now);
    if (at > 0) lost.answered(1, 1_000);
  }
  expect(silence.outdatedUntil).toBe(until);
});
