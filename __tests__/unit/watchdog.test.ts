import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { clock, reliableUntil } from '../../lib/internal/clock';
import { Watchdog, type WatchedLease } from '../../lib/lease/watchdog';
import { LockNames } from '../../lib/redis/names';
import { Claim, type Ownership } from '../../lib/strategies/strategy';
import { FakeClock } from '../support/fake-clock';
import { FakeStrategy } from '../support/fake-strategy';

let time: FakeClock;
let strategy: FakeStrategy;
let watchdog: Watchdog;
let sequence = 0;

beforeEach(() => {
  time = new FakeClock();
  strategy = new FakeStrategy();
  watchdog = new Watchdog(strategy, 5_000);
});

afterEach(() => {
  watchdog.close();
  time.restore();
});

class FakeLease implements WatchedLease {
  readonly claim: Claim;
  readonly renewUntil: number;
  until: number;
  isHeld = true;
  renewAt = Number.POSITIVE_INFINITY;
  renewing = false;
  previous: WatchedLease | undefined;
  next: WatchedLease | undefined;
  lostAt: number | undefined;
  suspect = false;

  constructor(ttl: number, renewFor = Number.POSITIVE_INFINITY) {
    this.claim = new Claim(new LockNames('unit', 'key'), `owner:${++sequence}`, { ttl, waits: true }, 1);
    this.until = reliableUntil(time.now, ttl);
    this.renewUntil = time.now + renewFor;
    watchdog.add(this, time.now);
  }

  isSuspectAt(): boolean {
    return this.suspect;
  }

  confirm(ownership: Ownership): void {
    if (ownership.state === 'held') this.until = Math.max(this.until, ownership.until);
    else if (ownership.state !== 'unknown') this.#end();
  }

  loseByDeadline(): void {
    this.lostAt = time.now;
    this.#end();
  }

  #end(): void {
    this.isHeld = false;
    watchdog.remove(this);
  }
}

/** When, counted from now, a lease was asked to be renewed. */
function timesOf(lease: FakeLease, since: number): number[] {
  return strategy.renewals.filter(({ claims }) => claims.includes(lease.claim)).map(({ at }) => Math.round(at - since));
}

describe('The watchdog', () => {
  it('renews at a third of the ttl, counted from the request before', async () => {
    const since = time.now;
    const lease = new FakeLease(3_000);
    strategy.latency = 20;
    await time.advance(4_500);
    expect(timesOf(lease, since)).toEqual([1_000, 2_000, 3_000, 4_000]);
  });

  it('renews together what was taken one by one', async () => {
    const leases: FakeLease[] = [];
    for (let i = 0; i < 100; i++) {
      leases.push(new FakeLease(3_000));
      await time.advance(2);
    }
    await time.advance(2_900);
    expect(leases.filter(({ isHeld }) => isHeld)).toHaveLength(100);
    expect(strategy.renewals.length).toBeLessThanOrEqual(4);
  });

  it('never has two renewals of one lease in flight, however slow Redis is', async () => {
    strategy.latency = 1_900;
    const lease = new FakeLease(3_000);
    await time.advance(20_000);
    expect(strategy.overlap).toBe(1);
    strategy.trouble = 'silence';
    await time.advance(20_000);
    expect(strategy.overlap).toBe(1);
    expect(lease.isHeld).toBe(false);
  });

  it.each([
    ['error', 5],
    ['silence', 3],
  ] as const)(
    'after %s tries again, at least %s times, with short pauses, until the deadline (P4, P6)',
    async (trouble, tries) => {
      const since = time.now;
      const lease = new FakeLease(3_000);
      strategy.trouble = trouble;
      await time.advance(10_000);
      const times = timesOf(lease, since);
      expect(times[0]).toBe(1_000);
      expect(times.length).toBeGreaterThanOrEqual(tries);
      expect(times.length).toBeLessThan(20);
      expect(times.at(-1)).toBeLessThan(3_000);
      expect(lease.lostAt).toBeCloseTo(lease.until, -1);
    },
  );

  it('goes back to its rhythm once Redis answers again (P6)', async () => {
    const since = time.now;
    const lease = new FakeLease(3_000);
    strategy.trouble = 'error';
    await time.advance(2_000);
    strategy.trouble = undefined;
    await time.advance(4_000);
    const late = timesOf(lease, since).filter((at) => at > 2_000);
    expect(late.length).toBeLessThanOrEqual(5);
    expect(lease.isHeld).toBe(true);
  });

  it.each([1, 5, 20, 100])('sends a bounded number of commands for a ttl of %s ms', async (ttl) => {
    const since = time.now;
    const leases = Array.from({ length: 50 }, () => new FakeLease(ttl));
    await time.advance(1_000);
    expect(strategy.renewals.length).toBeLessThanOrEqual(110);
    // What cannot be renewed in time ends in time.
    for (const { isHeld, lostAt = 0 } of leases) expect(isHeld || lostAt - since <= ttl).toBe(true);
  });

  it('sends a bounded number of commands when Redis refuses at once, and every reader finds the lease suspect', async () => {
    const lease = new FakeLease(60_000);
    lease.suspect = true;
    strategy.trouble = 'error';
    for (let i = 0; i < 1_000; i++) {
      watchdog.hurry(); // as each read of `remaining` does
      await time.advance(1);
    }
    expect(strategy.renewals.length).toBeLessThanOrEqual(110);
  });

  it('late by a pause of the process, never renews what is over (P5)', async () => {
    const over = new FakeLease(3_000);
    const alive = new FakeLease(60_000);
    time.now += 3_100;
    time.wallNow += 3_100;
    await time.advance(20_000);
    expect(timesOf(over, 0)).toEqual([]);
    expect(over.lostAt).toBeDefined();
    expect(alive.isHeld).toBe(true);
    expect(timesOf(alive, 0)).toHaveLength(1);
  });

  it('renews no more after maxHold, and the lease ends with its ttl', async () => {
    const since = time.now;
    const lease = new FakeLease(3_000, 4_500);
    await time.advance(20_000);
    expect(timesOf(lease, since)).toEqual([1_000, 2_000, 3_000, 4_000]);
    expect((lease.lostAt as number) - since).toBeCloseTo(7_000, -1);
  });

  it('renews no lease that is not to be renewed, and tells it of its end (P4)', async () => {
    const since = time.now;
    const lease = new FakeLease(3_000, Number.NEGATIVE_INFINITY);
    await time.advance(10_000);
    expect(strategy.renewals).toEqual([]);
    expect((lease.lostAt as number) - since).toBeLessThanOrEqual(3_000);
  });

  it('lets one bad key harm no other (P6)', async () => {
    const leases = Array.from({ length: 10 }, () => new FakeLease(3_000));
    const [stolen, unknown, ...others] = leases as [FakeLease, FakeLease, ...FakeLease[]];
    strategy.verdicts.set(stolen.claim, { state: 'stolen' });
    strategy.verdicts.set(unknown.claim, { state: 'unknown', cause: undefined });
    await time.advance(10_000);
    expect(stolen.isHeld).toBe(false);
    expect(stolen.lostAt).toBeUndefined();
    expect(unknown.lostAt).toBeDefined();
    expect(others.every(({ isHeld }) => isHeld)).toBe(true);
  });

  it('does not let leases that are short for the network take the time of the long ones', async () => {
    strategy.latency = 40;
    const long = new FakeLease(9_000);
    for (let i = 0; i < 400; i++) {
      new FakeLease(90);
      await time.advance(30);
    }
    expect(long.isHeld).toBe(true);
    expect(long.until).toBeGreaterThan(time.now + 5_000);
  });

  it('asks nothing of a lease that was removed, and has no timer left when it is closed (P7, P8)', async () => {
    const lease = new FakeLease(3_000);
    watchdog.remove(lease);
    await time.advance(10_000);
    expect(strategy.renewals).toEqual([]);
    expect(lease.lostAt).toBeUndefined();
    expect(time.pending).toBe(0);
    new FakeLease(3_000);
    expect(time.pending).toBe(1);
    watchdog.close();
    expect(time.pending).toBe(0);
  });

  it('has one timer for any number of leases, and none that keeps the process alive (P8)', async () => {
    const set = clock.setTimeout;
    let unreferenced = 0;
    let made = 0;
    clock.setTimeout = (callback, ms) => {
      const handle = set(callback, ms);
      made++;
      return Object.assign(handle, {
        unref() {
          unreferenced++;
          return handle;
        },
      });
    };
    for (let i = 0; i < 100; i++) new FakeLease(3_000 + i);
    expect(time.pending).toBe(1);
    await time.advance(10_000);
    expect(time.pending).toBe(1);
    expect(unreferenced).toBe(made);
  });
});
