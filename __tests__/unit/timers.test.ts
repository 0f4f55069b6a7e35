import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { integer, sample } from 'fast-check';
import { backgroundPause, clock, MAX_DELAY, Timer, within } from '../../lib/internal/clock';
import { TimeHeap, TimerForMany, WakeTimer } from '../../lib/internal/timers';
import { FakeClock } from '../support/fake-clock';

describe('Timer', () => {
  const time = FakeClock.install();

  it('A timer can be cancelled in each of its steps', async () => {
    let fired = 0;
    const timer = new Timer(2 * MAX_DELAY, () => {
      fired += 1;
    });
    await time.advance(MAX_DELAY + 1);
    timer.cancel();
    expect(time.pending).toBe(0);
    await time.advance(2 * MAX_DELAY);
    expect(fired).toBe(0);
  });

  it('A timer longer than a delay of JavaScript fires in time, and one that bounds a wait is cleared', async () => {
    let fired = 0;
    new Timer(MAX_DELAY + 1_000, () => void fired++);
    await time.advance(MAX_DELAY + 999);
    expect(fired).toBe(0);
    await time.advance(1);
    expect(fired).toBe(1);
    await within(10_000, Promise.resolve());
    expect(time.pending).toBe(0);
  });

  it('A timer that was set on a clock that is gone is set again', async () => {
    let fired = 0;
    const timer = new WakeTimer(() => fired++, false);
    timer.by(time.now + 100);
    time.begin();
    time.now += 500;
    timer.by(time.now + 1_000);
    await time.advance(1);
    expect(fired).toBe(1);
  });

  it('A timer costs nothing when it is infinite', () => {
    const timer = new Timer(Number.POSITIVE_INFINITY, () => undefined);
    expect(time.pending).toBe(0);
    timer.cancel();
  });
});

describe('A shared timer', () => {
  const time = FakeClock.install();
  let timer: TimerForMany;
  let calls: string[];

  beforeEach(() => {
    timer = new TimerForMany();
    calls = [];
  });

  const call = (name: string) => () => void calls.push(name);
  const schedule = (name: string, ms: number) => timer.schedule(call(name), time.now + ms);

  it('A shared timer makes calls together that are due within 20 ms, and none later than it is due', async () => {
    schedule('first', 100);
    schedule('second', 120);
    schedule('third', 121);
    await time.advance(99);
    expect(calls).toEqual([]);
    await time.advance(1);
    expect(calls).toEqual(['first', 'second']);
    await time.advance(20);
    expect(calls).toEqual(['first', 'second']);
    await time.advance(1);
    expect(calls).toEqual(['first', 'second', 'third']);
    expect(time.pending).toBe(0);
  });

  it('A shared timer makes a call once, at the earliest time that it was scheduled for', async () => {
    const first = call('first');
    for (const ms of [100, 50, 200]) timer.schedule(first, time.now + ms);
    await time.advance(50);
    expect(calls).toEqual(['first']);
    await time.advance(200);
    expect(calls).toEqual(['first']);
  });

  it('A shared timer does not make a call that was cancelled, not even by another one that is made with it', async () => {
    const [first, second] = [call('first'), call('second')];
    timer.schedule(first, time.now + 100);
    schedule('third', 100);
    timer.cancel(first);
    timer.schedule(() => timer.cancel(second), time.now + 100);
    timer.schedule(second, time.now + 100);
    await time.advance(100);
    expect(calls).toEqual(['third']);
  });

  it('A shared timer makes a call later that a call has scheduled, though it is due soon', async () => {
    timer.schedule(() => schedule('again', 10), time.now + 100);
    await time.advance(100);
    expect(calls).toEqual([]);
    await time.advance(10);
    expect(calls).toEqual(['again']);
  });
});

describe('A timer for many times', () => {
  const time = FakeClock.install();

  it('A timer for many times fires early rather than later than a timer can wait, and soon when it is overdue', async () => {
    const timer = new WakeTimer(() => undefined, true);
    timer.by(time.now + MAX_DELAY + 1_000);
    timer.by(time.now + 10);
    // As with a clock that was replaced: its timer does not fire.
    time.now += 50;
    timer.by(time.now + 1_000);
    timer.by(time.now + 2_000);
    expect(time.delays).toEqual([MAX_DELAY, 10, 1]);
    timer.cancel();
  });
});

describe('A timer that rests', () => {
  afterEach(() => {
    jest.restoreAllMocks();
  });

  /** Timers that keep the process alive. */
  const timers = () => process.getActiveResourcesInfo().filter((kind) => kind === 'Timeout').length;

  it('A timer that rests does not keep the process alive, and is the same one afterwards', () => {
    const timer = new WakeTimer(() => undefined, true);
    const others = timers();
    const set = jest.spyOn(clock, 'setTimeout');
    const at = clock.now() + 60_000;
    timer.by(at);
    expect(timers()).toBe(others + 1);
    timer.rest();
    expect(timers()).toBe(others);
    timer.by(at + 1_000);
    expect(timers()).toBe(others + 1);
    expect(set).toHaveBeenCalledTimes(1);
    timer.cancel();
    expect(timers()).toBe(others);
  });

  it('A timer that never keeps the process alive does not by a later time either', () => {
    const [timer, others] = [new WakeTimer(() => undefined, false), timers()];
    const at = clock.now() + 60_000;
    for (const time of [at, at + 1_000]) timer.by(time);
    expect(timers()).toBe(others);
    timer.cancel();
  });

  it('A shared timer without calls to make does not keep the process alive', () => {
    const [timer, call, others] = [new TimerForMany(), () => undefined, timers()];
    const another = (): void => undefined;
    for (const one of [call, another]) timer.schedule(one, clock.now() + 60_000);
    timer.cancel(another);
    expect(timers()).toBe(others + 1);
    timer.cancel(call);
    expect(timers()).toBe(others);
    timer.close();
  });
});

it('A timer whose clock has numbers for handles, as in a browser, cannot let the process end, and says nothing', async () => {
  const set = jest.spyOn(clock, 'setTimeout').mockReturnValue(1 as never);
  const timer = new WakeTimer(() => undefined, false);
  timer.by(clock.now() + 60_000);
  timer.rest();
  expect(await Promise.race([backgroundPause(1), 'paused'])).toBe('paused');
  expect(set).toHaveBeenCalledTimes(2);
  set.mockRestore();
  timer.cancel();
});

describe('A heap of times', () => {
  class Member {
    position = -1;
    readonly time: number;

    constructor(time: number) {
      this.time = time;
    }
  }

  it('A heap of times finds the earliest member, however many have joined and left before', () => {
    const heap = new TimeHeap<Member>();
    let expected: Member[] = [];
    // The same sequence in every run.
    for (const drawn of sample(integer({ min: 0 }), { seed: 1, numRuns: 2_000 })) {
      const leaving = expected[drawn % Math.max(1, expected.length)];
      if (leaving !== undefined && drawn % 3 === 0) {
        heap.remove(leaving);
        // It has left: a second time does nothing.
        heap.remove(leaving);
        expected = expected.filter((member) => member !== leaving);
      } else {
        const member = new Member(drawn % 100);
        heap.add(member, member.time);
        expected.push(member);
      }
      const earliest = Math.min(...expected.map(({ time }) => time));
      expect([heap.earliest, heap.first?.time ?? Number.POSITIVE_INFINITY]).toEqual([earliest, earliest]);
    }
    expect(expected.length).toBeGreaterThan(100);
    expect(new Set(heap.members)).toEqual(new Set(expected));
    const order: number[] = [];
    for (let { first } = heap; first !== undefined; { first } = heap) {
      order.push(first.time);
      heap.remove(first);
    }
    expect(order).toEqual(expected.map(({ time }) => time).sort((a, b) => a - b));
  });
});
