import { expect, it, jest } from '@jest/globals';
import { Semaphore } from 'async-mutex';
import { LocalQueue, type Turn } from '../../lib/core/local-queue';
import { Wait } from '../../lib/core/wait';
import { type Linked, LinkedList } from '../../lib/internal/linked-list';

const patiently = (signal?: AbortSignal): Wait => new Wait('key', Number.POSITIVE_INFINITY, signal);

function taken(turn: Turn | undefined): Turn {
  if (turn === undefined) throw new Error('The turn was not to be had');
  return turn;
}

it('The local queue rejects a caller that was interrupted before it came', async () => {
  const queue = new LocalQueue();
  queue.tryEnter();
  const wait = patiently();
  wait.interrupt('left');
  await expect(queue.enter(undefined, wait)).rejects.toBe('left');
});

it('A member that leaves a list twice, or was in none, changes nothing', () => {
  interface Member extends Linked<Member> {}
  const [left, stays, never] = [1, 2, 3].map((): Member => ({ previous: undefined, next: undefined })) as [
    Member,
    Member,
    Member,
  ];
  const list = new LinkedList<Member>();
  for (const member of [left, stays]) list.append(member);
  for (const member of [left, left, never]) list.remove(member);
  expect([[...list], list.first, list.last, list.size]).toEqual([[stays], stays, stays, 1]);
});

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
  const requests = jest.spyOn(Semaphore.prototype, 'acquire');
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
  expect(requests).toHaveBeenCalledTimes(1);
  requests.mockRestore();
  expect(ticks).toBeLessThan(20); // a walk over those who left would take a tick for each
  taken(await next).release();
});

it('The local queue serves three callers in their order, and says how many wait and whether somebody is in', async () => {
  const queue = new LocalQueue<string>();
  expect([queue.isTaken, queue.length, queue.next]).toEqual([false, 0, undefined]);
  const first = taken(queue.tryEnter());
  const served: string[] = [];
  const all = ['a', 'b', 'c'].map(async (name) => {
    const turn = taken((await queue.enter(name, patiently())) as Turn);
    served.push(name);
    expect(queue.isTaken).toBe(true);
    turn.release();
  });
  const left = queue.enter('does not wait', new Wait('key', 0, undefined));
  expect([queue.isTaken, queue.length, queue.next]).toEqual([true, 3, 'a']);
  expect(await left).toBeUndefined();
  first.release();
  await Promise.all(all);
  expect(served).toEqual(['a', 'b', 'c']);
  expect([queue.isTaken, queue.length]).toEqual([false, 0]);
});

it('The local queue that is dismissed gives every waiter a turn that nobody has to give back', async () => {
  const queue = new LocalQueue();
  const first = taken(queue.tryEnter());
  const waiting = [1, 2].map(() => queue.enter(undefined, patiently()));
  queue.dismiss();
  for (const turn of await Promise.all(waiting)) taken(turn).release();
  await null;
  expect([queue.isTaken, queue.hasWaiters]).toEqual([true, false]);
  first.release();
  expect(queue.isTaken).toBe(false);
});
