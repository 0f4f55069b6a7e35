import { expect, it } from '@jest/globals';
import { LocalQueue, type Turn } from '../../lib/core/local-queue';
import { Wait } from '../../lib/core/wait';

const itself = (turn: Turn): Turn => turn;

const patiently = (signal?: AbortSignal): Wait => new Wait('key', Number.POSITIVE_INFINITY, signal);

function taken(turn: Turn | undefined): Turn {
  if (turn === undefined) throw new Error('The turn was not to be had');
  return turn;
}

it('gives a free turn in the same tick, and only once', () => {
  const queue = new LocalQueue();
  expect(queue.tryEnter()).toBeDefined();
  expect(queue.tryEnter()).toBeUndefined();
});

it('serves strictly in the order they came', async () => {
  const queue = new LocalQueue();
  const first = taken(queue.tryEnter());
  const order: number[] = [];
  const everybody = Promise.all(
    Array.from({ length: 50 }, async (_, i) => {
      const turn = taken(await queue.enter(undefined, patiently(), itself));
      order.push(i);
      if (i % 2) await null; // some hold on for longer
      turn.release();
    }),
  );
  first.release();
  await everybody;
  expect(order).toEqual(Array.from({ length: 50 }, (_, i) => i));
});

it('never lets two in, nor anybody in between when the turn goes to the next', async () => {
  const queue = new LocalQueue();
  const first = taken(queue.tryEnter());
  const next = queue.enter(undefined, patiently(), itself);
  first.release();
  // Whether the turn is on its way or has arrived: it is not free.
  for (let tick = 0; tick < 10; tick++) {
    expect(queue.tryEnter()).toBeUndefined();
    await null;
  }
  taken(await next).release();
});

it('does nothing at a second release', async () => {
  const queue = new LocalQueue();
  const first = taken(queue.tryEnter());
  first.release();
  const second = taken(await queue.enter(undefined, patiently(), itself));
  first.release();
  await null;
  expect(queue.tryEnter()).toBeUndefined();
  second.release();
});

it('lets one leave at its time-out, and nobody after it loses by that', async () => {
  const queue = new LocalQueue();
  const first = taken(queue.tryEnter());
  const impatient = queue.enter(undefined, new Wait('key', 20, undefined), itself);
  const patient = queue.enter(undefined, patiently(), itself);
  expect(await impatient).toBeUndefined();
  first.release();
  taken(await patient).release();
  await null;
  taken(queue.tryEnter());
});

it('lets one leave at once when it is aborted, wherever it stands', async () => {
  const queue = new LocalQueue();
  const first = taken(queue.tryEnter());
  const controllers = Array.from({ length: 5 }, () => new AbortController());
  const order: number[] = [];
  const outcomes = Promise.allSettled(
    controllers.map(async ({ signal }, i) => {
      const turn = taken(await queue.enter(undefined, patiently(signal), itself));
      order.push(i);
      turn.release();
    }),
  );
  for (const i of [0, 2, 4]) controllers[i]?.abort(`reason ${i}`);
  first.release();
  const reasons = (await outcomes).map((outcome) => (outcome.status === 'rejected' ? outcome.reason : 'served'));
  expect(reasons).toEqual(['reason 0', 'served', 'reason 2', 'served', 'reason 4']);
  expect(order).toEqual([1, 3]);
});

it('is free when everybody left while the turn was on its way to them', async () => {
  const queue = new LocalQueue();
  const first = taken(queue.tryEnter());
  const controller = new AbortController();
  const rejected = expect(queue.enter(undefined, patiently(controller.signal), itself)).rejects.toBe('gone');
  first.release();
  controller.abort('gone');
  await rejected;
  await new Promise(setImmediate);
  taken(queue.tryEnter()).release();
});

it('remembers nothing of a thousand who left: the next one is served at once', async () => {
  const queue = new LocalQueue();
  const first = taken(queue.tryEnter());
  const controller = new AbortController();
  const outcomes = Promise.allSettled(
    Array.from({ length: 1_000 }, () => queue.enter(undefined, patiently(controller.signal), itself)),
  );
  controller.abort('gone');
  expect((await outcomes).every(({ status }) => status === 'rejected')).toBe(true);
  let ticks = 0;
  let served = false;
  const next = queue.enter(undefined, patiently(), itself).then((turn) => {
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

it('serves ten thousand one after the other, in linear time', async () => {
  const queue = new LocalQueue();
  const first = taken(queue.tryEnter());
  let served = 0;
  const everybody = Promise.all(
    Array.from({ length: 10_000 }, async () => {
      const turn = taken(await queue.enter(undefined, patiently(), itself));
      served += 1;
      turn.release();
    }),
  );
  const start = performance.now();
  first.release();
  await everybody;
  expect(served).toBe(10_000);
  expect(performance.now() - start).toBeLessThan(30_000); // some 30 ms on an idle machine; quadratic would be minutes
});
