import { channel } from 'node:diagnostics_channel';
import { expect, it } from '@jest/globals';
import { handOffs, onHandOff } from '../../lib/redis/hand-offs';

it('A hand-off counts once, and is heard by all who listen, until the last of them has left', () => {
  const moved = channel('node-redis:connection:handoff');
  // The channel is that of the process: other files of tests may still listen.
  const others = moved.hasSubscribers;
  const before = handOffs.epoch;
  const heard: string[] = [];
  const stopFirst = onHandOff(() => heard.push('first'));
  const stopSecond = onHandOff(() => heard.push('second'));
  moved.publish({});
  expect([heard, handOffs.epoch - before]).toEqual([['first', 'second'], 2 ** 32]);
  stopFirst();
  stopFirst();
  moved.publish({});
  expect([heard.length, handOffs.epoch - before]).toEqual([3, 2 ** 33]);
  stopSecond();
  expect(moved.hasSubscribers).toBe(others);
  onHandOff(() => heard.push('third'))();
  expect(moved.hasSubscribers).toBe(others);
  moved.publish({});
  expect([heard.length, handOffs.epoch - before]).toEqual([3, 2 ** 33]);
});
