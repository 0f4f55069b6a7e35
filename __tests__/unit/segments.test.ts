import { getEventListeners } from 'node:events';
import { beforeEach, expect, it } from '@jest/globals';
import {
  CannotAcquireLockError,
  type DistributedLock,
  type Lease,
  LockLostError,
  type LockOptions,
  LockTimeoutError,
  type Segment,
  SegmentedLock,
} from '../../lib';
import { FakeClock } from '../support/fake-clock';

const time = FakeClock.install();

interface Visit {
  readonly index: number;
  readonly options: LockOptions;
  /** The lock is granted: resolves as the task does. */
  enter(): Promise<unknown>;
  refuse(error: Error): void;
}

/** What is asked for and not answered, by index. */
let visits: Visit[];
let asked: number[];
/** The key of the lock that is lost when it is looked at. */
let lost: string | undefined;
/** What each lock answers at once: 'free', 'busy' to who does not wait, or an error; `undefined`: the test says. */
let answers: (string | Error | undefined)[];

beforeEach(() => {
  visits = [];
  asked = [];
  lost = undefined;
  answers = [];
});

const lockOf = (index: number): Pick<DistributedLock, 'run'> => ({
  run(task: (lease: Lease) => unknown, options: LockOptions = {}) {
    asked.push(index);
    const key = `stock:${index}`;
    const assertHeld = (): void => {
      if (key === lost) throw new LockLostError(key, 'expired');
    };
    const lease = { key, assertHeld } as Lease;
    const answer = answers[index];
    if (answer instanceof Error) return Promise.reject(answer);
    if (answer === 'free') return (async () => task(lease))() as Promise<never>;
    if (answer === 'busy' && options.waitTime === 0) return Promise.reject(new LockTimeoutError('stock', 0));
    return new Promise<unknown>((resolve, reject) => {
      const enter = async () => {
        const running = (async () => task(lease))();
        running.then(resolve, reject);
        return running.catch((error: unknown) => error);
      };
      visits.push({ index, options, enter, refuse: reject });
    }) as Promise<never>;
  },
});

const all = (answer: string | Error | undefined, segments = 4) => {
  answers = new Array(segments).fill(answer);
};

/** Tried in this order: 1, 2, … , 0. */
const stockOf = (segments = 4, random = () => 0) =>
  new SegmentedLock({ obtain: (key) => lockOf(Number(key.slice(6))) as DistributedLock }, 'stock', {
    segments,
    random,
  });

const serve = ({ index }: Segment) => index;
const FAILURE = new CannotAcquireLockError('no connection', 'stock:1');
const visit = (i: number) => visits[i] as Visit;

it('The order of segments takes one random number fewer than there are segments', async () => {
  all('free');
  let drawn = 0;
  const random = () => {
    drawn++;
    return 0;
  };
  expect(await stockOf(4, random).run(serve)).toEqual({ served: true, value: 1, segment: 1 });
  expect(drawn).toBe(3);
});

it('A segment that was busy, or exhausted, is tried last by the next calls', async () => {
  for (const refused of ['busy', 'exhausted']) {
    all('free');
    asked = [];
    const stock = stockOf();
    if (refused === 'busy') answers[1] = 'busy';
    await stock.run(({ index, exhausted }) => (index === 1 ? exhausted : index));
    expect(asked).toEqual([1, 2]);
    all('free');
    asked = [];
    for (let i = 0; i < 4; i++) await stock.run(serve);
    expect(asked).toEqual([2, 2, 2, 1]);
  }
});

it('A segment that has served again is tried before those that were exhausted lately', async () => {
  all('free');
  let drawn = 0;
  const stock = stockOf(4, () => drawn);
  await stock.run(({ exhausted }) => exhausted);
  for (drawn of [0.99, 0]) expect(await stock.run(serve)).toMatchObject({ segment: 0 });
});

it('A busy segment that is exhausted when it is entered is followed by the others', async () => {
  all('busy', 3);
  const answer = stockOf(3).run(({ index, exhausted }) => (index === 0 ? index : exhausted));
  await time.advance(0);
  expect([asked.join(' '), visits.map(({ index }) => index).join(' ')]).toEqual(['1 2 0 1 2', '1 2']);
  // A lock that was left is not entered any more.
  const [first, second] = [visit(0), visit(1)];
  expect(await first.enter()).toEqual(expect.any(Symbol));
  expect(await second.enter()).toMatchObject({ message: expect.stringContaining('left') });
  expect([first, second].map(({ options }) => options.signal?.aborted)).toEqual([true, true]);
  for (const index of [2, 0]) {
    await time.advance(0);
    const open = visits.filter((one) => one.index === index);
    await open.at(-1)?.enter();
  }
  expect(await answer).toEqual({ served: true, value: 0, segment: 0 });
});

it('Two busy segments are contended for, and one more after each 100 ms', async () => {
  all('busy');
  const answer = stockOf().run(serve, { waitTime: 1_000 });
  await time.advance(0);
  const counts = [visits.length];
  for (const ms of [99, 1, 100, 500]) {
    await time.advance(ms);
    counts.push(visits.length);
  }
  expect(counts).toEqual([2, 2, 3, 4, 4]);
  expect(time.delays.filter((ms) => ms === 100)).toHaveLength(2);
  expect(visits.map(({ options }) => options.waitTime)).toEqual([1_000, 1_000, 900, 800]);
  // Some of them may say that the time is over while others do not yet.
  for (const i of [0, 1, 2]) visit(i).refuse(new LockTimeoutError('stock', 1));
  await time.advance(0);
  await visit(3).enter();
  expect(await answer).toMatchObject({ served: true });
});

it('No busy segment is contended for any more when the time is over, which would be an attempt of its own', async () => {
  all('busy');
  const end = time.settled(stockOf().run(serve, { waitTime: 100 }));
  await time.advance(110);
  expect(asked).toHaveLength(6);
  for (const { refuse } of visits) refuse(new LockTimeoutError('stock:1', 100));
  expect(await end).toMatchObject({ error: { name: 'LockTimeoutError', key: 'stock', waitTime: 100 } });
});

it('Once a busy segment is entered, no other one is contended for', async () => {
  all('busy');
  const answer = stockOf().run(serve, { waitTime: 1_000 });
  await time.advance(0);
  await visit(0).enter();
  await time.advance(500);
  expect([visits.length, await answer]).toMatchObject([2, { served: true }]);
});

it('The time is over when all segments that are contended for say so', async () => {
  all('busy', 2);
  const end = time.settled(stockOf(2).run(serve, { waitTime: 1_000 }));
  await time.advance(300);
  for (const { refuse } of visits) refuse(new LockTimeoutError('stock:1', 700));
  expect(await end).toMatchObject({ error: { name: 'LockTimeoutError', key: 'stock', waitTime: 1_000 } });
  expect(time.delays.filter((ms) => ms === 100)).toEqual([]);
});

it.each<[string, LockOptions, error: Error, ms: number, waits: boolean]>([
  ['of a client without a connection', {}, FAILURE, 0, true],
  ['of a client without a connection, within the time', { waitTime: 100 }, FAILURE, 40, true],
  ['of a client without a connection, after it', { waitTime: 20 }, FAILURE, 30, false],
  ['of a client without a connection, for one that does not wait', { waitTime: 0 }, FAILURE, 0, false],
  ['of any other kind', {}, new TypeError('a mistake'), 0, false],
])('A segment that fails at once is waited for, or fails the call: %s', async (_, options, error, ms, waits) => {
  const stock = stockOf(1);
  const end = time.settled(stock.run(serve, options));
  await time.advance(ms);
  visit(0).refuse(error);
  await time.advance(0);
  expect(asked).toEqual(waits ? [0, 0] : [0]);
  if (waits) await visit(1).enter();
  expect(await end).toMatchObject(waits ? { value: { served: true } } : { error });
});

it('A segment that fails at once, without a connection, is waited for together with those that were not tried', async () => {
  all(undefined, 3);
  const answer = stockOf(3).run(({ index, exhausted }) => (index === 1 ? index : exhausted));
  await time.advance(0);
  visit(0).refuse(FAILURE);
  for (const i of [2, 3, 4]) {
    await time.advance(0);
    await visit(i).enter();
  }
  expect(asked).toEqual([1, 1, 2, 0, 1]);
  expect(await answer).toEqual({ served: true, value: 1, segment: 1 });
});

it.each([
  [20, 50],
  [1_000, 1_000],
  [0, 5_000],
])('An answer about a segment is waited for as long as the caller waits: %d ms, %d', async (waitTime, ms) => {
  const end = time.settled(stockOf(2).run(serve, { waitTime }), 5_000);
  if (waitTime === 0) return expect([await end, visits.length]).toEqual([undefined, 1]);
  const message = `Lock "stock" could not be acquired: Redis has not said for ${ms} ms whether segment 1 is free`;
  expect(await end).toMatchObject({ after: ms, error: { name: 'CannotAcquireLockError', key: 'stock', message } });
  expect(visit(0).options).toMatchObject({ waitTime: 0, signal: { aborted: true } });
});

it('A task may fail with the error of a lock, before its lock has said anything else', async () => {
  const error = new LockTimeoutError('another', 7);
  all('free');
  const fail = () => {
    throw error;
  };
  await expect(stockOf().run(fail)).rejects.toBe(error);
  await expect(stockOf().runAll(fail)).rejects.toBe(error);
});

it.each([undefined, 0])('Segments are locked in their order, and as many as needed: waitTime %p', async (waitTime) => {
  all('free');
  const options = { ...(waitTime === undefined ? {} : { waitTime }), signal: new AbortController().signal };
  expect(await stockOf().runAll((segments) => segments.map(serve), options)).toEqual([0, 1, 2, 3]);
  expect(asked).toEqual([0, 1, 2, 3]);
  asked = [];
  const commit = (parts: readonly { amount: number }[]) => {
    if (lost !== undefined) throw new Error('It committed');
    return parts.map(({ amount }) => amount);
  };
  const across = { available: serve, commit };
  const taken = { served: true, value: [1, 1], segments: [1, 2] };
  expect(await stockOf().runAcross(2, across, options)).toEqual(taken);
  expect(asked).toEqual([0, 1, 2]);
  await stockOf().run(serve, options);
  expect(getEventListeners(options.signal, 'abort')).toEqual([]);
  lost = 'stock:1';
  await expect(stockOf().runAll(serve as never, options)).rejects.toThrow('lost');
  await expect(stockOf().runAcross(2, across, options)).rejects.toThrow('lost');
  lost = undefined;
  answers[2] = 'busy';
  if (waitTime === 0) await expect(stockOf().runAll(serve as never, options)).rejects.toThrow(LockTimeoutError);
  await expect(stockOf().runAcross(0, across)).rejects.toThrow('`amount`');
});
