import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { Pollers, USUAL_PACE_FOR } from '../../lib/protocols/pollers/pollers';
import { FakeClock } from '../support/fake-clock';

/** ms between two attempts of a waiter here. */
const IDLE = 100;

/** ms between two polls of a waiter that listens, while nobody else polls. */
const SELDOM = 1_000;

/** ms of the key of every holder. */
const TTL = 60_000;

/** ms for which the poller has the lock: until after the pause. */
const HELD = 300;

let time: FakeClock;

beforeEach(() => {
  time = new FakeClock();
});

afterEach(() => time.restore());

interface Poller {
  /** ms between two attempts. */
  readonly period: number;
  /** ms after which it begins. */
  readonly phase: number;
}

/**
 * One caller that takes the lock over and over for `work` ms each, beside one poller, for `ms`. Between two turns it is
 * free for an instant only, which the poller never meets. Returns the waits of the poller, the last one unfinished.
 */
function pollBeside(work: number, { period, phase }: Poller, ms: number): number[] {
  const pollers = new Pollers(IDLE, USUAL_PACE_FOR);
  const end = time.now + ms;
  const waits: number[] = [];
  let [since, next] = [time.now + phase, time.now + phase];
  while (time.now < end) {
    pollers.acquired(time.now);
    time.now += work;
    pollers.released(time.now, true);
    const freeFrom = time.now;
    const freeUntil = freeFrom + pollers.pauses.beforeAttempt();
    while (next < freeFrom) next += period;
    time.now = freeUntil;
    if (next >= freeUntil) continue;
    waits.push(next - since);
    const heldUntil = next + HELD;
    for (; time.now < heldUntil; time.now += IDLE) pollers.refused(time.now, TTL - (time.now - next), 0);
    [since, next] = [heldUntil, heldUntil];
  }
  waits.push(time.now - since);
  return waits;
}

describe('A busy lock beside a poller', () => {
  // Redisson's spin lock sleeps for 128 ms; to that comes the round trip.
  const cases = [20, 105, 128, 140].flatMap((period) =>
    [1, 20, 170, 700].flatMap((work) => [0, 33, 66, 99, 133].map((phase) => ({ work, period, phase }))),
  );

  it('comes to a poller in its first pause, whenever that polls', () => {
    const late = cases.filter(({ work, ...poller }) => Math.max(...pollBeside(work, poller, 20_000)) >= 6_000);
    expect(late).toEqual([]);
  });

  it('comes to a poller within 2 s once it was seen', () => {
    const late = cases.filter(({ work, ...poller }) => Math.max(...pollBeside(work, poller, 40_000).slice(1)) >= 2_000);
    expect(late).toEqual([]);
  });

  it('is left free for less than 3 % of the time while nobody polls', () => {
    const pollers = new Pollers(IDLE, USUAL_PACE_FOR);
    const start = time.now;
    let free = 0;
    while (time.now < start + 600_000) {
      pollers.acquired(time.now);
      time.now += 20;
      pollers.released(time.now, true);
      const pause = pollers.pauses.beforeAttempt();
      free += pause;
      time.now += pause;
    }
    expect(free / (time.now - start)).toBeLessThan(0.03);
    expect(free).toBeGreaterThan(0);
  });

  it('is left free more rarely again when no poller was seen for a minute', () => {
    const pollers = new Pollers(IDLE, USUAL_PACE_FOR);
    pollers.pauses.begin(time.now, true);
    pollers.refused(time.now, TTL, 0);
    expect(pollers.pauses.interval(time.now)).toBe(400);
    for (let unused = 0; unused < 5; unused++) {
      pollers.pauses.begin(time.now, true);
      pollers.acquired(time.now);
    }
    expect(pollers.pauses.interval(time.now + 59_000)).toBe(1_600);
    expect(pollers.pauses.interval(time.now + 60_000)).toBeGreaterThanOrEqual(5_000);
  });
});

describe('A lock that another process left to pollers', () => {
  it('is left alone until that process has had the time to take it back', () => {
    const pollers = new Pollers(IDLE, USUAL_PACE_FOR);
    pollers.refused(time.now, TTL, 0);
    expect(pollers.pauses.beforeAttempt()).toBe(0);
    pollers.announced(time.now);
    expect(pollers.pauses.beforeAttempt()).toBeGreaterThan(pollers.pauses.length);
    time.now += pollers.pauses.beforeAttempt();
    expect(pollers.pauses.beforeAttempt()).toBe(0);
  });

  it('is left alone also when an attempt is refused that was sent before', () => {
    const pollers = new Pollers(IDLE, USUAL_PACE_FOR);
    pollers.announced(time.now);
    pollers.refused(time.now, TTL, 0);
    expect(pollers.pauses.beforeAttempt()).toBeGreaterThan(0);
  });

  it('is no sign of pollers when its holder changes', () => {
    const pollers = new Pollers(IDLE, USUAL_PACE_FOR);
    for (let change = 0; change < 3; change++) {
      pollers.refused(time.now, TTL - 500, 0);
      pollers.announced(time.now);
      time.now += 500;
      pollers.refused(time.now, TTL, 0);
    }
    expect(pollers.pollingInterval(SELDOM)).toBe(SELDOM);
  });

  it('is free for everybody once a release was published', () => {
    const pollers = new Pollers(IDLE, USUAL_PACE_FOR);
    pollers.announced(time.now);
    pollers.pauses.announcedRelease();
    expect(pollers.pauses.beforeAttempt()).toBe(0);
  });
});

describe('The message of a process about its own pause', () => {
  it('changes nothing: a poller that takes the lock is seen, and the pause is not longer', () => {
    const pollers = new Pollers(IDLE, USUAL_PACE_FOR);
    pollers.pauses.begin(time.now, true);
    pollers.announced(time.now + 1);
    expect(pollers.pauses.beforeAttempt()).toBe(pollers.pauses.length);
    expect(pollers.pollingInterval(SELDOM)).toBe(SELDOM);
    pollers.refused(time.now, TTL, 0);
    expect(pollers.pollingInterval(SELDOM)).toBe(IDLE);
  });

  it('holds up nobody when it arrives late: after this process has taken the lock back, and released it', () => {
    const pollers = new Pollers(IDLE, USUAL_PACE_FOR);
    pollers.pauses.begin(time.now, true);
    pollers.acquired(time.now + 150);
    pollers.announced(time.now + 151);
    pollers.released(time.now + 152, true);
    expect(pollers.pauses.beforeAttempt()).toBe(0);
  });
});
