import { afterEach, beforeEach, expect, it, jest } from '@jest/globals';
import { PastPositions } from '../../lib/protocols/redisson/redisson-fair';
import { untilCollected } from '../support/collected';
import { FakeClock } from '../support/fake-clock';
import { type LateReply, lateReply } from '../support/mock-redis';

let time: FakeClock;

beforeEach(() => {
  time = new FakeClock();
});

afterEach(() => time.restore());

it('forgets a position that was given up half a minute ago, with its lock, though no other follows', async () => {
  const positions = new PastPositions();
  const refer = () => {
    const lock = {};
    positions.add(lock, async () => lock);
    return new WeakRef(lock);
  };
  const first = refer();
  await time.advance(20_000);
  const second = refer();
  await time.advance(11_000);
  await untilCollected(first);
  expect(second.deref()).toBeDefined();
  await time.advance(20_000);
  await untilCollected(second);
  expect(time.pending).toBe(0);
});

it('has no timer left when it is closed', () => {
  const positions = new PastPositions();
  positions.add({}, async () => undefined);
  expect(time.keepingAlive).toBe(0);
  positions.close();
  expect(time.pending).toBe(0);
});

it('removes a position once more after many reconnects, however many fail before Redis answers', async () => {
  const positions = new PastPositions();
  const removals: LateReply[] = [];
  const remove = jest.fn(() => {
    const removal = lateReply();
    removals.push(removal);
    return removal.promise;
  });
  positions.add({}, remove);
  for (let i = 0; i < 50; i++) {
    positions.removeAgain();
    await time.advance(20);
  }
  expect(remove).toHaveBeenCalledTimes(1);
  // It may have been the server before the last reconnect that answered.
  removals[0]?.resolve(1);
  await time.advance(20);
  expect(remove).toHaveBeenCalledTimes(2);
  removals[1]?.reject(new Error('Socket closed unexpectedly'));
  await time.advance(5_000);
  expect(remove).toHaveBeenCalledTimes(3);
  removals[2]?.resolve(1);
  await time.advance(5_000);
  expect(remove).toHaveBeenCalledTimes(3);
  positions.removeAgain();
  expect(remove).toHaveBeenCalledTimes(4);
  positions.close();
});
