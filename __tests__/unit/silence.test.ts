import { beforeEach, expect, it } from '@jest/globals';
import type { ScriptCommand } from '../../lib/redis/command';
import { Line, Silence } from '../../lib/redis/silence';
import { FakeClock } from '../support/fake-clock';

const time = FakeClock.install();
let sentAt: number[];
let line: Line;

beforeEach(() => {
  sentAt = [];
  line = new Line(new Silence(true), (calls) => sentAt.push(...calls.map(() => Math.round(time.now - 1_000))));
});

const call = (isOver = false) => ({ isOver }) as ScriptCommand;
const isHeldBack = () => line.holdsBack(call(), time.now);

it('Calls to a silent server are held back from the 200th unanswered key on, and sent when it answers', async () => {
  line.asked(199, time.now);
  await time.advance(600);
  expect(isHeldBack()).toBe(false);
  line.asked(1, time.now);
  expect(isHeldBack()).toBe(true);
  line.settled(1, time.now);
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
