import { beforeEach, expect, it } from '@jest/globals';
import { DETACHED, KEPT } from '../../lib/api/owner-name';
import { type Pauses, Pollers, USUAL_PACE_FOR } from '../../lib/kinds/common/shared-with-pollers';
import { FakeClock } from '../support/fake-clock';

/** ms between two attempts of a waiter here. */
const IDLE = 100;

/** ms between two polls of a waiter that listens, while nobody else polls. */
const SELDOM = 1_000;

/** ms of the key of every holder. */
const TTL = 60_000;

/** ms for which the poller has the lock: until after the pause. */
const HELD = 300;

const time = FakeClock.install();
let pollers: Pollers;

beforeEach(() => {
  pollers = new Pollers(IDLE, USUAL_PACE_FOR);
});

/** This process releases the lock: to pollers, if a pause is due. */
function release(of = pollers): void {
  if (of.isDue(time.now)) of.left(time.now);
  else of.released(time.now);
}

/** This process has the lock for `ms`, and leaves it to pollers. */
function useAndLeave(ms = pollers.interval): void {
  pollers.acquired(time.now);
  time.now += ms;
  expect(pollers.isDue(time.now)).toBe(true);
  pollers.left(time.now);
}

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
    release(pollers);
    const freeFrom = time.now;
    const freeUntil = freeFrom + pollers.freeFor;
    while (next < freeFrom) next += period;
    time.now = freeUntil;
    if (next >= freeUntil) continue;
    waits.push(next - since);
    const heldUntil = next + HELD;
    for (; time.now < heldUntil; time.now += IDLE) pollers.refused(time.now, { remaining: TTL - (time.now - next) }, 0);
    [since, next] = [heldUntil, heldUntil];
  }
  waits.push(time.now - since);
  return waits;
}

// Redisson's spin lock sleeps for 128 ms; to that comes the round trip.
const cases = [20, 105, 128, 140].flatMap((period) =>
  [1, 20, 170, 700].flatMap((work) => [0, 33, 66, 99, 133].map((phase) => ({ work, period, phase }))),
);

it('A busy lock beside a poller comes to a poller in its first pause, whenever that polls', () => {
  const late = cases.filter(({ work, ...poller }) => Math.max(...pollBeside(work, poller, 20_000)) >= 3_000);
  expect(late).toEqual([]);
});

it.each([1, 100, 300, 1_000])('A busy lock is left free for a sixth of the time: idleBetweenTries of %i', (idle) => {
  const pollers = new Pollers(idle, USUAL_PACE_FOR);
  const start = time.now;
  let free = 0;
  while (time.now < start + 600_000) {
    pollers.acquired(time.now);
    time.now += 20;
    release(pollers);
    const pause = pollers.freeFor;
    free += pause;
    time.now += pause;
  }
  const share = free / (time.now - start);
  expect(share).toBeGreaterThan(0.14);
  expect(share).toBeLessThan(0.167);
});

it('A busy lock beside a poller is not left free where it is free for as long anyway', () => {
  for (const end = time.now + 60_000; time.now < end; time.now += pollers.pause) {
    pollers.acquired(time.now);
    time.now += 20;
    expect(pollers.isDue(time.now)).toBe(false);
    release();
  }
});

it('A busy lock beside a poller is left free by a process that always waits for it, too', () => {
  const others = 500;
  let left = 0;
  for (const end = time.now + 60_000; time.now < end; ) {
    pollers.refused(time.now, { remaining: TTL }, time.now);
    time.now += others;
    pollers.acquired(time.now);
    time.now += 20;
    if (pollers.isDue(time.now)) left++;
    release();
  }
  expect(left).toBeGreaterThan(20);
});

it('A busy lock beside a poller is busy anew once a poller had it', () => {
  useAndLeave();
  time.now += pollers.pause;
  pollers.refused(time.now, { remaining: TTL - 50 }, 0);
  time.now += 2 * pollers.interval;
  pollers.refused(time.now, { remaining: TTL }, 0);
  pollers.acquired(time.now);
  expect(pollers.isDue(time.now + pollers.interval - 1)).toBe(false);
  expect(pollers.isDue(time.now + pollers.interval)).toBe(true);
});

it('A busy lock beside a poller is not one whose last caller was refused a minute before, and gave up', () => {
  for (const [ms, isBusy] of [
    [59_999, true],
    [60_000, false],
  ] as const) {
    pollers.refused(time.now, { remaining: TTL }, 0);
    time.now += ms;
    pollers.acquired(time.now);
    expect(pollers.isDue(time.now)).toBe(isBusy);
    pollers.released(time.now);
    time.now += pollers.interval;
  }
  // Nor does the next one go on with the wait of that caller.
  pollers.refused(time.now, { remaining: TTL }, 0);
  time.now += 60_000;
  seeChange();
  expect(pollers.pollingInterval(SELDOM)).toBe(IDLE);
});

const startPause = () => {
  const pauses: Pauses = new Set();
  let ends = 0;
  pollers = new Pollers(IDLE, USUAL_PACE_FOR, pauses);
  pollers.left(time.now, async () => void ends++);
  return { pauses, ends: () => ends };
};

it('A lock that this process left to pollers is left alone for a pause, whose timer keeps no process alive; then waiters are notified', async () => {
  const { pauses, ends } = startPause();
  expect([time.pending, time.keepingAlive]).toEqual([1, 0]);
  expect(pollers.freeFor).toBe(pollers.pause);
  await time.advance(pollers.pause);
  expect(pollers.freeFor).toBe(0);
  expect(ends()).toBe(0);
  await time.advance(99);
  expect(ends()).toBe(0);
  await time.advance(1);
  expect(ends()).toBe(1);
  expect(pauses.size).toBe(0);
});

it('A lock that this process left to pollers is announced once when the registry is closed', async () => {
  const { pauses, ends } = startPause();
  for (const end of pauses) await end();
  expect(ends()).toBe(1);
  expect(pauses.size).toBe(0);
  expect(time.pending).toBe(0);
});

it('A lock that another process left to pollers is left alone until that process has had the time to take it back, also when an earlier attempt is refused', () => {
  pollers.refused(time.now, { remaining: TTL }, 0);
  expect(pollers.freeFor).toBe(0);
  pollers.announced(time.now);
  expect(pollers.freeFor).toBeGreaterThan(pollers.pause);
  pollers.refused(time.now, { remaining: TTL }, 0);
  expect(pollers.freeFor).toBeGreaterThan(0);
  time.now += pollers.freeFor;
  expect(pollers.freeFor).toBe(0);
});

it('A lock that another process left to pollers has had its pause', () => {
  pollers.acquired(time.now);
  time.now += pollers.interval;
  pollers.announced(time.now);
  expect(pollers.isDue(time.now)).toBe(false);
});

it('A lock that another process left to pollers is no sign of pollers when its holder changes', () => {
  for (let change = 0; change < 3; change++) {
    pollers.refused(time.now, { remaining: TTL - 500 }, 0);
    pollers.announced(time.now);
    time.now += 500;
    pollers.refused(time.now, { remaining: TTL }, 0);
  }
  expect(pollers.pollingInterval(SELDOM)).toBe(SELDOM);
});

it('A lock that another process left to pollers is free for everybody once a release was published', () => {
  pollers.announced(time.now);
  pollers.announcedRelease();
  expect(pollers.freeFor).toBe(0);
});

it('The message of a process about its own pause changes nothing', () => {
  pollers.left(time.now);
  time.now++;
  pollers.announced(time.now);
  expect(pollers.freeFor).toBe(pollers.pause - 1);
});

it('The message of a process about its own pause holds up nobody when it arrives late: after this process has taken the lock back, and released it', () => {
  pollers.left(time.now);
  pollers.acquired(time.now + 150);
  pollers.announced(time.now + 151);
  pollers.released(time.now + 152);
  expect(pollers.freeFor).toBe(0);
});

it('A pause for pollers lasts for half a second at most', () => {
  expect(new Pollers(60_000, USUAL_PACE_FOR).pause).toBe(500);
});

/** Is refused; 50 ms later the holder is another one. */
const seeChange = (remaining = TTL) => {
  pollers.refused(time.now, { remaining: TTL - 50 }, 0);
  time.now += 50;
  pollers.refused(time.now, { remaining: remaining }, 0);
};

it.each([
  ['stays', TTL - 100],
  ['renews its lease', TTL + TTL / 3],
])('A waiter polls at its usual pace while the holder %s', (_, remaining) => {
  seeChange(remaining);
  expect(pollers.pollingInterval(SELDOM)).toBe(SELDOM);
});

it.each([
  ['was kept for its minHold', KEPT],
  ['was detached by its holder', DETACHED],
])('A waiter polls at its usual pace when there is a new holder of a lock that %s', (_, prefix) => {
  for (const owner of ['one', `${prefix}one`, 'another']) {
    time.now += 50;
    pollers.refused(time.now, { remaining: TTL - (owner === 'one' ? 50 : 0), owner }, 0);
  }
  expect(pollers.pollingInterval(SELDOM)).toBe(SELDOM);
});

it('A waiter polls faster and faster while holders change without a message, and then for a minute as others poll', () => {
  const waits = time.now;
  seeChange();
  expect(pollers.pollingInterval(SELDOM)).toBe(IDLE);
  time.now = waits + USUAL_PACE_FOR + 250;
  expect(pollers.pollingInterval(SELDOM)).toBe(IDLE / 2);
  time.now += 250;
  expect(pollers.pollingInterval(SELDOM)).toBe(IDLE / 4);
  time.now += 1_000;
  expect(pollers.pollingInterval(SELDOM)).toBe(IDLE);
  time.now += 50_000;
  expect(pollers.pollingInterval(SELDOM)).toBe(IDLE);
  time.now += 10_000;
  expect(pollers.pollingInterval(SELDOM)).toBe(SELDOM);
});

it('A waiter polls every 3 ms at most, and as others do in its next wait', () => {
  seeChange();
  time.now += 10_000;
  seeChange();
  expect(pollers.pollingInterval(SELDOM)).toBe(3);
  pollers.acquired(time.now);
  seeChange();
  expect(pollers.pollingInterval(SELDOM)).toBe(IDLE);
});

// Each key as a refusal finds it: after how many ms, and what is left of it.
it.each<[string, before: number, after: number, remaining: number, isNew: boolean]>([
  ['a fifth of the key was gained', 800, 0, 1_000, true],
  ['more was gained', 799, 0, 1_000, false],
  ['nothing was gained', 1_000, 0, 1_000, false],
  ['as much was gained as has passed, and more', 40_000, 20_000, 40_001, false],
])('A waiter sees a new holder where %s, or not', (_, before, after, remaining, isNew) => {
  pollers.refused(time.now, { remaining: before }, 0);
  time.now += after;
  pollers.refused(time.now, { remaining }, 0);
  expect(pollers.pollingInterval(SELDOM)).toBe(isNew ? IDLE : SELDOM);
  // A poller had it while this process waited: it has been busy since this process has it.
  pollers.acquired(time.now);
  expect(pollers.isDue(time.now + pollers.interval - 1)).toBe(!isNew && after > 0);
});

it('A waiter polls as others do for a second after a change, and as usual after a minute', () => {
  const changed = time.now + 50;
  seeChange();
  const paces = [999, 1_000, 59_999, 60_000].map((ms) => {
    time.now = changed + ms;
    return pollers.pollingInterval(SELDOM);
  });
  expect(paces.map((ms) => (ms < IDLE ? 'fast' : ms))).toEqual(['fast', IDLE, IDLE, SELDOM]);
});

/** A pause begins, and at its end the lock is this owner's. */
function isTakenInPauseBy(owner: string): void {
  pollers.left(time.now);
  time.now += pollers.pause;
  pollers.refused(time.now, { remaining: TTL, owner }, 0);
}

const OURS = `web-1:${'A'.repeat(22)}:1`;

it('The next pause comes after one more where a process of this library, which polls often, took the lock in it', () => {
  const pauses = (of: number) => expect(pollers.interval).toBe(of * pollers.pause);
  isTakenInPauseBy(OURS);
  pauses(1);
  pollers.refused(time.now + 200, { remaining: TTL, owner: '0f'.repeat(16) }, 0);
  pauses(1);
  isTakenInPauseBy('0f'.repeat(16));
  pauses(5);
  isTakenInPauseBy(OURS);
  pollers.acquired(time.now + 300);
  pauses(1);
  // Nobody took it in this pause.
  pollers.left(time.now + 400);
  pollers.acquired(time.now + 400 + pollers.pause);
  pauses(5);
});

it('A waiter lets others go first after the release of such a process, unless it has waited for five pauses', () => {
  const freeFor = () => {
    pollers.announcedRelease();
    return pollers.freeFor;
  };
  pollers.refused(time.now, { remaining: TTL, owner: OURS }, 0);
  expect(freeFor()).toBe(0);
  isTakenInPauseBy(OURS);
  expect(freeFor()).toBe(IDLE);
  time.now += 5 * pollers.pause;
  expect(freeFor()).toBe(0);
  pollers.acquired(time.now);
  // Its own release.
  expect(freeFor()).toBe(0);
});

it('The next pause is due five pauses after the one of another process, or after a waiter found it taken', () => {
  const { pause, interval } = pollers;
  const dueFrom = (at: number) => [at - 1, at].map((now) => pollers.isDue(now));
  expect(pollers.isDue(1e9)).toBe(false);
  pollers.left(1_000);
  expect(time.pending).toBe(0);
  pollers.announced(1_000 + pause);
  expect(dueFrom(1_000 + 2 * pause + interval)).toEqual([false, true]);
  pollers.released(10_000);
  pollers.refused(10_000 + interval, { remaining: TTL }, 0);
  expect(dueFrom(10_000 + 2 * interval)).toEqual([false, true]);
  // It waits on.
  pollers.refused(10_000 + 2 * interval, { remaining: TTL }, 0);
  expect(dueFrom(10_000 + 2 * interval)).toEqual([false, true]);
});
