import { expect, it } from '@jest/globals';
import { LocalQueue, type Turn } from '../../lib/core/local-queue';
import { Wait } from '../../lib/core/wait';

const patiently = (signal?: AbortSignal): Wait => new Wait('key', Number.POSITIVE_INFINITY, signal);

function taken(turn: Turn | undefined): Turn {
  if (turn === undefined) throw new Error('The turn was not to be had');
  return turn;
}

it('The local queue never lets two in, nor anybody in between when the turn goes to the next', async () => {
  const queue = new LocalQueue();
  const first = taken(queue.tryEnter());
  const next = queue.enter(undefined, patiently());
  first.release();
  // Whether the turn is on its way or has arrived: it is not free.
  for (let tick = 0; tick < 10; tick++) {
    expect(queue.tryEnter()).toBeUndefined();
    await null;
  }
  taken(await next).release();
});

it('The local queue does nothing at a second release', async () => {
  const queue = new LocalQueue();
  const first = taken(queue.tryEnter());
  first.release();
  const second = taken(await queue.enter(undefined, patiently()));
  first.release();
  await null;
  expect(queue.tryEnter()).toBeUndefined();
  second.release();
});

it('The local queue is free when everybody left while the turn was on its way to them', async () => {
  const queue = new LocalQueue();
  const first = taken(queue.tryEnter());
  const controller = new AbortController();
  const rejected = expect(queue.enter(undefined, patiently(controller.signal))).rejects.toBe('gone');
  first.release();
  controller.abort('gone');
  await rejected;
  await new Promise(setImmediate);
  taken(queue.tryEnter()).release();
});

it('The local queue remembers nothing of a thousand who left: the next one is served at once', async () => {
  const queue = new LocalQueue();
  const first = taken(queue.tryEnter());
  const controller = new AbortController();
  const outcomes = Promise.allSettled(
    Array.from({ length: 1_000 }, () => queue.enter(undefined, patiently(controller.signal))),
  );
  controller.abort('gone');
  expect((await outcomes).every(({ status }) => status === 'rejected')).toBe(true);
  let ticks = 0;
  let served = false;
  const next = queue.enter(undefined, patiently()).then((turn) => {
    served = true;
    return turn;
  });
  first.release();
  while (!served && ticks < 1_000) {
    ticks += 1;
    await null;
  }
  expect(ticks).toBeLessThan(20); // a walk over those who left would take a tick for each
  taken(await next).release();
});
