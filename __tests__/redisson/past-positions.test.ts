import { afterEach, beforeEach, expect, it } from '@jest/globals';
import { PastPositions } from '../../lib/protocols/redisson/redisson-fair';
import { untilCollected } from '../support/collected';
import { FakeClock } from '../support/fake-clock';

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
