import { getEventListeners } from 'node:events';
import { beforeEach, expect, it, jest } from '@jest/globals';
import { CannotAcquireLockError, type DistributedLock, type Leadership, type Lease, LockLostError } from '../../lib';
import type { LeadOptions } from '../../lib/api/options';
import { lead } from '../../lib/registry/lead';
import { FakeClock } from '../support/fake-clock';

const time = FakeClock.install();
let stop: AbortController;
/** What the leases of the lock are lost by, one for each. */
let losses: AbortController[];
/** What each attempt to take the lock rejects with; `undefined`: it is granted, as later ones are. */
let refusals: unknown[];
/** When the lock was asked for. */
let asked: number[];
/** By which signal each of these attempts ends. */
let signals: (AbortSignal | undefined)[];
let given: Leadership[];

beforeEach(() => {
  stop = new AbortController();
  [losses, refusals, asked, signals, given] = [[], [], [], [], []];
});

const reason = new Error('stop');

const lock = {
  key: 'key',
  run: async (task: (lease: Lease) => unknown, { signal }: { signal?: AbortSignal }) => {
    asked.push(time.now - 1_000);
    signals.push(signal);
    if (signal?.aborted) throw signal.reason;
    if (refusals.length > 0) throw refusals.shift();
    const loss = new AbortController();
    losses.push(loss);
    return task({ key: 'key', signal: loss.signal } as Lease);
  },
} as unknown as DistributedLock;

/** Leads with a task that does one thing after the other, one for each time that it runs. */
function leading(options: LeadOptions | undefined, ...tasks: ((() => unknown) | undefined)[]) {
  const task = async (leadership: Leadership) => {
    given.push(leadership);
    return tasks[given.length - 1]?.();
  };
  return lead(lock, task, options);
}

/** The same as a signal of another realm has: nothing of an AbortSignal of this one. */
function foreign() {
  const { signal } = stop;
  return {
    get aborted() {
      return signal.aborted;
    },
    get reason() {
      return signal.reason;
    },
    addEventListener: signal.addEventListener.bind(signal),
    removeEventListener: signal.removeEventListener.bind(signal),
  } as AbortSignal;
}

const throws = (error: unknown) => () => {
  throw error;
};
const unreachable = (cause?: unknown) => new CannotAcquireLockError('silent', 'key', { cause });

it('lead() says what it needs', async () => {
  await expect(lead(lock, 'task' as never)).rejects.toThrow('Expected `task` to be a function');
  await expect(leading({ signal: 5 as never })).rejects.toThrow('Expected `signal` to be an AbortSignal, got 5');
  await expect(leading({ ttl: 5 } as never)).rejects.toThrow('Unknown option `ttl` (5); known are signal');
  expect(asked).toEqual([]);
});

it('A leader has the signal of its lease, and that of its caller where there is one', async () => {
  expect(await leading(undefined, () => 5)).toBe(5);
  expect(given[0]?.signal).toBe(losses[0]?.signal);
  const { signal } = stop;
  await leading({ signal }, undefined, () => losses[1]?.abort(reason));
  await leading({ signal }, undefined, undefined, () => stop.abort(reason));
  expect(signals).toEqual([undefined, signal, signal]);
  for (const { signal: both } of given.slice(1)) expect([both.aborted, both.reason]).toEqual([true, reason]);
});

it.each([
  ['an AbortSignal', () => stop.signal],
  ['a signal of another realm', foreign],
])('A process whose signal has aborted does not lead: %s', async (_, of) => {
  stop.abort(reason);
  expect(await leading({ signal: of() })).toBeUndefined();
  expect(asked).toEqual([]);
});

it('A signal of another realm stops a leader with its reason, and keeps no listener', async () => {
  expect(await leading({ signal: foreign() }, () => 5)).toBe(5);
  expect(getEventListeners(stop.signal, 'abort')).toHaveLength(0);
  const stopped = leading({ signal: foreign() }, undefined, () => {
    stop.abort(reason);
    throw given[1]?.signal.reason;
  });
  expect(await stopped).toBeUndefined();
  expect(given[1]?.signal.reason).toBe(reason);
  expect(getEventListeners(stop.signal, 'abort')).toHaveLength(0);
});

it('A process that could not reach Redis stands again a second later, for as long as it takes', async () => {
  refusals = [unreachable(), unreachable(new Error('reset'))];
  expect(await time.settled(leading(undefined, () => 5))).toEqual({ after: 2_000, value: 5 });
  expect(asked).toEqual([0, 1_000, 2_000]);
});

it('A process that has led and cannot reach Redis after its loss stands again too', async () => {
  const losing = () => {
    refusals = [unreachable(), unreachable()];
    losses[0]?.abort();
    throw loss('key', 'stolen');
  };
  expect(await time.settled(leading(undefined, losing, () => 5))).toEqual({ after: 2_000, value: 5 });
  expect(asked).toEqual([0, 0, 1_000, 2_000]);
});

it('A process that pauses before it stands again leaves at once by its signal', async () => {
  refusals = [unreachable()];
  const ended = time.settled(leading({ signal: stop.signal }));
  await time.advance(500);
  stop.abort(reason);
  await time.advance(0);
  expect(await Promise.race([ended, time.advance(10)])).toMatchObject({ value: undefined });
  expect([asked, given, time.pending]).toEqual([[0], [], 0]);
  expect(getEventListeners(stop.signal, 'abort')).toHaveLength(0);
});

it('A pause that has ended leaves no listener', async () => {
  refusals = [unreachable()];
  await time.settled(leading({ signal: stop.signal }));
  expect(getEventListeners(stop.signal, 'abort')).toHaveLength(0);
});

it('A process whose signal aborts during an attempt does not lead, whatever the attempt ends with', async () => {
  const { run } = lock;
  const attempt = jest.spyOn(lock, 'run').mockImplementationOnce(async (...call) => {
    stop.abort(reason);
    return run.apply(lock, call as never) as never;
  });
  const refused = new Error('of another kind');
  expect(await leading({ signal: stop.signal })).toBeUndefined();
  stop = new AbortController();
  attempt.mockImplementationOnce(async () => {
    stop.abort(reason);
    throw refused;
  });
  expect(await leading({ signal: stop.signal })).toBeUndefined();
  attempt.mockRestore();
});

it.each([
  ['the server refuses for good', unreachable(new Error('NOPERM no rights'))],
  ['the lock cannot be asked for', new RangeError('The name has braces')],
])('lead() rejects at once where %s', async (_, error) => {
  refusals = [error];
  expect(await time.settled(leading(undefined))).toEqual({ after: 0, error });
});

const loss = (key: string, why: 'stolen' | 'unconfirmed') => new LockLostError(key, why);

it.each<[string, unknown, boolean, boolean]>([
  ['the loss of its lease', loss('key', 'stolen'), true, true],
  ['the loss of another lock, from a leader that lost its own', loss('another', 'stolen'), true, true],
  ['a lease that Redis has to confirm', loss('key', 'unconfirmed'), false, true],
  ['a lease of another lock that Redis has to confirm', loss('another', 'unconfirmed'), false, false],
  ['a loss that its signal does not know', loss('key', 'stolen'), false, false],
  ['another error of a leader that lost its lease', reason, true, false],
  ['nothing', undefined, true, false],
])('A leader stands again after a loss, and else rejects: %s', async (_, error, isLost, again) => {
  const task = () => {
    if (isLost) losses[0]?.abort();
    throw error;
  };
  const ended = leading({ signal: stop.signal }, task, () => 'led to its end');
  if (again) expect(await ended).toBe('led to its end');
  else await expect(ended).rejects.toBe(error);
});

it.each<[string, unknown, boolean]>([
  ['the reason of its signal', reason, true],
  ['an AbortError', new DOMException('left', 'AbortError'), true],
  ['another error', new Error('a bug'), false],
  ['null', null, false],
  ['undefined', undefined, false],
])('A leader that its signal stopped ends with %s', async (_, error, isQuiet) => {
  const stopped = leading({ signal: stop.signal }, () => {
    stop.abort(reason);
    throw error;
  });
  if (isQuiet) expect(await stopped).toBeUndefined();
  else await expect(stopped).rejects.toBe(error);
});

it('An AbortError of a leader that nobody stopped rejects lead()', async () => {
  const error = new DOMException('of a request', 'AbortError');
  await expect(leading({ signal: stop.signal }, throws(error))).rejects.toBe(error);
  await expect(leading(undefined, undefined, throws(error))).rejects.toBe(error);
});
