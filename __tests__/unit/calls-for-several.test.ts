import { beforeEach, expect, it } from '@jest/globals';
import { Availability } from '../../lib/core/availability';
import type { LockProtocol } from '../../lib/core/protocol';
import { type CallForSeveral, CallsForSeveral } from '../../lib/core/several';
import { FakeClock } from '../support/fake-clock';

const time = FakeClock.install();
let calls: CallsForSeveral;
let started: string[];

beforeEach(() => {
  calls = new CallsForSeveral();
  started = [];
});

/** A key, and what the messages about it call. `hints`: `undefined`: nobody listens. */
function keyOf(hints?: number) {
  const watchers = new Set<() => void>();
  const protocol = {
    availability: new Availability(),
    hints,
    pollingInterval: hints === undefined ? 100 : 1_000,
    watch(onHint: () => void) {
      watchers.add(onHint);
      return () => watchers.delete(onHint);
    },
  };
  const settings = { handOver: undefined, idleBetweenTries: 100 };
  const lock = {
    callers: 0,
    begin: () => void lock.callers++,
    end: () => void lock.callers--,
    isTaken: false,
    services: { settings },
    openProtocol: () => protocol as unknown as LockProtocol,
  };
  const hint = () => {
    if (protocol.hints !== undefined) protocol.hints++;
    for (const watcher of watchers) watcher();
  };
  return { lock, watchers, hint };
}

type Key = ReturnType<typeof keyOf>;

/** A call that waits. It takes the turns when it starts, as those of a registry do. */
function waitFor(name: string, ...keys: Key[]): CallForSeveral {
  const call: CallForSeveral = {
    previous: undefined,
    next: undefined,
    sought: keys.map(({ lock }) => calls.seek(lock)),
    start: () => {
      call.start = undefined;
      started.push(name);
      for (const { lock } of keys) lock.isTaken = true;
    },
  };
  calls.append(call);
  return call;
}

const look = async () => {
  calls.freed();
  await time.advance(0);
};

it('Of the calls for several keys, the first whose keys are all free in its process goes first', async () => {
  const [a, b, c] = [keyOf(), keyOf(), keyOf()];
  a.lock.isTaken = b.lock.isTaken = true;
  waitFor('ab', a, b);
  waitFor('bc', b, c);
  waitFor('ab again', a, b);
  b.lock.isTaken = false;
  await look();
  expect(started).toEqual(['bc']);
  a.lock.isTaken = b.lock.isTaken = c.lock.isTaken = false;
  await look();
  expect(started).toEqual(['bc', 'ab']);
});

it('A key that Redis refused is not asked for until a message says that it may be free, or until it is time', async () => {
  const [heard, polled] = [keyOf(7), keyOf()];
  const one = waitFor('heard', heard);
  one.sought[0]?.refused(7, time.now);
  const other = waitFor('polled', polled);
  other.sought[0]?.refused(undefined, time.now);
  await look();
  expect(started).toEqual([]);
  heard.hint();
  await time.advance(0);
  expect(started).toEqual(['heard']);
  await time.advance(3);
  expect(started).toEqual(['heard', 'polled']);
});

it('A refusal that a message has overtaken does not count', async () => {
  const key = keyOf(7);
  const call = waitFor('a', key);
  key.hint();
  call.sought[0]?.refused(7, time.now);
  await look();
  expect(started).toEqual(['a']);
});

/** Of a key: how many releases were noticed, ms that a streak lasts, and the pause after it. */
const STREAKS: [what: string, hints: number | undefined, streak: number, pause: number][] = [
  ['that others poll for', undefined, 400, 110],
  ['whose releases others hear of', 7, 50, 10],
];

it.each(STREAKS)(
  'Calls of one process leave a key %s to others, after they have had it for long',
  async (_, hints, streak, pause) => {
    const key = keyOf(hints);
    const call = waitFor('a', key);
    const [sought] = call.sought;
    sought?.granted(time.now);
    await time.advance(streak - 1);
    calls.released(key.lock);
    expect(sought?.mayBeFree(time.now)).toBe(true);
    await time.advance(1);
    calls.released(key.lock);
    // It hears its own release too.
    key.hint();
    await time.advance(pause - 1);
    expect(started).toEqual([]);
    await time.advance(1);
    expect(started).toEqual(['a']);
  },
);

it.each(STREAKS)(
  'Calls of one process have a key %s for longer, where nobody took it when it was left',
  async (_, hints, usual, pause) => {
    const key = keyOf(hints);
    const [sought] = waitFor('a', key).sought;
    /** How long the calls have it until it is left to others. */
    const streak = async (): Promise<number> => {
      const since = time.now;
      sought?.granted(since);
      while (sought?.mayBeFree(time.now)) {
        await time.advance(10);
        calls.released(key.lock);
      }
      return time.now - since;
    };
    const lengths: number[] = [];
    for (let i = 0; i < 4; i++) {
      lengths.push((await streak()) / usual);
      await time.advance(pause);
      expect(sought?.mayBeFree(time.now)).toBe(true);
    }
    expect(lengths).toEqual([1, 2, 4, 4]);
    sought?.refused(hints, time.now);
    await time.advance(1_000);
    expect(sought?.mayBeFree(time.now)).toBe(true);
    expect(await streak()).toBe(usual);
  },
);

it('A key that nobody waits for any more is not listened for', () => {
  const key = keyOf(7);
  const [one, other] = [waitFor('a', key), waitFor('b', key)];
  expect(key.watchers.size).toBe(1);
  for (const { sought } of [one, other]) for (const each of sought) calls.leave(each);
  expect(key.watchers.size).toBe(0);
});
