import { afterEach, beforeEach, expect, it } from '@jest/globals';
import { SharedTimer } from '../../lib/internal/timers';
import { FakeClock } from '../support/fake-clock';

let time: FakeClock;
let timer: SharedTimer;
let calls: string[];

beforeEach(() => {
  time = new FakeClock();
  timer = new SharedTimer();
  calls = [];
});

afterEach(() => time.restore());

const call = (name: string) => () => void calls.push(name);
const schedule = (name: string, ms: number) => timer.schedule(call(name), time.now + ms);

it('makes calls together that are due within 20 ms, and none later than it is due', async () => {
  schedule('first', 100);
  schedule('second', 120);
  schedule('third', 121);
  await time.advance(99);
  expect(calls).toEqual([]);
  await time.advance(1);
  expect(calls).toEqual(['first', 'second']);
  await time.advance(20);
  expect(calls).toEqual(['first', 'second']);
  await time.advance(1);
  expect(calls).toEqual(['first', 'second', 'third']);
  expect(time.pending).toBe(0);
});

it('makes a call once, at the earliest time that it was scheduled for', async () => {
  const first = call('first');
  timer.schedule(first, time.now + 100);
  timer.schedule(first, time.now + 50);
  timer.schedule(first, time.now + 200);
  await time.advance(50);
  expect(calls).toEqual(['first']);
  await time.advance(200);
  expect(calls).toEqual(['first']);
});

it('does not make a call that was cancelled, not even by another one that is made with it', async () => {
  const [first, second] = [call('first'), call('second')];
  timer.schedule(first, time.now + 100);
  schedule('third', 100);
  timer.cancel(first);
  timer.schedule(() => timer.cancel(second), time.now + 100);
  timer.schedule(second, time.now + 100);
  await time.advance(100);
  expect(calls).toEqual(['third']);
});

it('makes a call later that a call has scheduled, though it is due soon', async () => {
  timer.schedule(() => schedule('again', 10), time.now + 100);
  await time.advance(100);
  expect(calls).toEqual([]);
  await time.advance(10);
  expect(calls).toEqual(['again']);
});
