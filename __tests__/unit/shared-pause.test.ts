import { afterEach, beforeEach, expect, it } from '@jest/globals';
import { SharedPause } from '../../lib/acquire/shared-pause';
import { FakeClock } from '../support/fake-clock';

let time: FakeClock;

beforeEach(() => {
  time = new FakeClock();
});

afterEach(() => time.restore());

it('ends at the same time for those that begin it at about the same time, and not early for any', async () => {
  const pause = new SharedPause(100);
  const ended: string[] = [];
  pause.join(() => ended.push('first'));
  await time.advance(9);
  pause.join(() => ended.push('second'));
  await time.advance(6);
  pause.join(() => ended.push('third'));
  await time.advance(94);
  expect(ended).toEqual([]);
  await time.advance(1);
  expect(ended).toEqual(['first', 'second']);
  await time.advance(14);
  expect(ended).toEqual(['first', 'second']);
  await time.advance(1);
  expect(ended).toEqual(['first', 'second', 'third']);
});

it('does not end for those that leave', async () => {
  const pause = new SharedPause(100);
  const ended: string[] = [];
  const leave = pause.join(() => ended.push('first'));
  pause.join(() => ended.push('second'));
  leave();
  await time.advance(pause.longest);
  expect(ended).toEqual(['second']);
});
