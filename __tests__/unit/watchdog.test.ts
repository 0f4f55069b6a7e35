import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { Hold, type LeaseOfHold } from '../../lib/core/hold';
import { RedisLease } from '../../lib/core/lease';
import type { RedisLock } from '../../lib/core/lock';
import type { LockProtocol, Ownership } from '../../lib/core/protocol';
import type { LockRequest } from '../../lib/core/request';
import { Watchdog } from '../../lib/core/watchdog';
import { clock, reliableUntil } from '../../lib/internal/clock';
import type { Connection } from '../../lib/redis/connection';
import { FakeClock } from '../support/fake-clock';

/** ms */
const COMMAND_TIMEOUT = 5_000;

// Before the clock is restored.
afterEach(() => watchdog.close());

const time = FakeClock.install();
let watchdog: Watchdog;
let protocol: FakeProtocol;
/** How often the watchdog has found a lease overdue. */
let overdue: number;

beforeEach(() => {
  watchdog = new Watchdog(COMMAND_TIMEOUT, () => overdue++);
  overdue = 0;
  protocol = new FakeProtocol();
});

/** A protocol without a Redis, on the library's clock. It records the renewals, and does nothing else. */
class FakeProtocol {
  /** ms that every answer takes. */
  latency = 0;
  /** No answer, or an error instead. */
  trouble: 'silence' | 'error' | undefined;
  /** By owner: the answer, where it is not "held". */
  readonly verdicts = new Map<string, Ownership>();
  /** Renewals that were asked for in one turn of the event loop are one request: they go to Redis as one command. */
  readonly requests: { readonly at: number; readonly owners: string[]; readonly ttls: number[] }[] = [];
  /** Two renewals of one owner were in flight together. */
  hasOverlapped = false;
  #isSameTurn = false;
  readonly #inFlight = new Set<string>();

  async renew(owner: string, ttl: number, timeout: number, settle: (ownership: Ownership) => void) {
    const sentAt = clock.now();
    if (!this.#isSameTurn) this.requests.push({ at: sentAt, owners: [], ttls: [] });
    this.#isSameTurn = true;
    queueMicrotask(() => (this.#isSameTurn = false));
    this.requests.at(-1)?.owners.push(owner);
    this.requests.at(-1)?.ttls.push(ttl);
    this.hasOverlapped ||= this.#inFlight.has(owner);
    this.#inFlight.add(owner);
    const isAnswered = this.trouble === undefined && this.latency <= timeout;
    const duration = this.trouble === 'error' ? 0 : isAnswered ? this.latency : timeout;
    if (duration > 0) await new Promise<void>((resolve) => clock.setTimeout(resolve, duration));
    else await null;
    this.#inFlight.delete(owner);
    if (!isAnswered) settle({ state: 'unknown', cause: new Error('trouble') });
    else settle(this.verdicts.get(owner) ?? { state: 'held', until: reliableUntil(sentAt, ttl) });
  }
}

interface LeaseOptions {
  /** ms for which it is renewed. */
  readonly renewFor?: number;
  /** ms that the reply took which granted it. */
  readonly replyTook?: number;
  /** It was granted by hand-over, for `window` ms, and its first renewal is in flight. */
  readonly firstRenewal?: { readonly window: number; readonly answer: Promise<Ownership> };
}

let count = 0;

/** A hold that is granted now, with a lease of the library. Notes when it was lost. */
class NotedLease extends Hold {
  lostAt: number | undefined;
  readonly #lease: RedisLease;

  constructor(ttl: number, { renewFor = Number.POSITIVE_INFINITY, replyTook = 0, firstRenewal }: LeaseOptions = {}) {
    const asked = { ttl, waits: true, minHold: 0, permits: 1 };
    super(`owner:${++count}`, asked, {} as Connection, protocol as Partial<LockProtocol> as LockProtocol);
    this.stamp();
    const lock = {
      key: 'key',
      services: { settings: { maxHold: renewFor, commandTimeout: COMMAND_TIMEOUT } },
      leaseOver: () => {
        this.lostAt = clock.now();
      },
    } as unknown as RedisLock;
    const now = clock.now();
    const request = { ttl, renew: renewFor > 0, explicitTtl: true, minHold: 0, permits: 1 } as LockRequest;
    this.#lease = new RedisLease(lock, this, request, now, false);
    const until = reliableUntil(now - replyTook, firstRenewal?.window ?? ttl);
    const renewal = firstRenewal && { renewal: firstRenewal.answer };
    const grant = { granted: true, owner: this.ticket, until, fencingToken: undefined, drift: this.drift } as const;
    this.granted({ ...grant, ...renewal }, this.#lease, watchdog, now);
  }

  get remaining(): number {
    return this.#lease.remaining;
  }

  get lossReason(): string | undefined {
    return this.#lease.lossError().reason;
  }
}

const grant = (ttl: number, options?: LeaseOptions) => new NotedLease(ttl, options);

/** When, counted from `since`, Redis was asked about a lease. */
function timesOf(lease: NotedLease, since: number): number[] {
  return protocol.requests.filter(({ owners }) => owners.includes(lease.owner)).map(({ at }) => Math.round(at - since));
}

describe('The watchdog', () => {
  it('The watchdog renews at a third of the ttl, counted from the request before', async () => {
    const since = time.now;
    const lease = grant(3_000);
    protocol.latency = 20;
    await time.advance(4_500);
    expect(timesOf(lease, since)).toEqual([1_000, 2_000, 3_000, 4_000]);
  });

  it('The watchdog renews together what was taken one by one', async () => {
    const leases: NotedLease[] = [];
    for (let i = 0; i < 100; i++) {
      leases.push(grant(3_000));
      await time.advance(2);
    }
    await time.advance(2_900);
    expect(leases.filter(({ isHeld }) => isHeld)).toHaveLength(100);
    expect(protocol.requests.length).toBeLessThanOrEqual(4);
  });

  it('The watchdog never has two renewals of one lease in flight, however slow Redis is', async () => {
    // The timer fires for one lease while the renewal of the other is in flight.
    protocol.latency = 900;
    const lease = grant(3_000);
    await time.advance(400);
    grant(3_000);
    await time.advance(20_000);
    expect(lease.isHeld).toBe(true);
    expect(protocol.hasOverlapped).toBe(false);
    protocol.trouble = 'silence';
    await time.advance(20_000);
    expect(protocol.hasOverlapped).toBe(false);
    expect(lease.isHeld).toBe(false);
  });

  it.each([
    ['error', 5],
    ['silence', 3],
  ] as const)(
    'The watchdog after %s tries again, at least %s times, with short pauses, until the deadline (P4, P6)',
    async (trouble, tries) => {
      const since = time.now;
      const lease = grant(3_000);
      protocol.trouble = trouble;
      await time.advance(10_000);
      const times = timesOf(lease, since);
      expect(times[0]).toBe(1_000);
      expect(times.length).toBeGreaterThanOrEqual(tries);
      // The pauses get shorter towards the deadline, down to 10 ms.
      expect(times.length).toBeLessThan(35);
      expect(times.at(-1)).toBeLessThan(3_000);
      expect(lease.lostAt).toBeCloseTo(lease.until, -1);
    },
  );

  it('The watchdog goes back to its rhythm once Redis answers again (P6)', async () => {
    const since = time.now;
    const lease = grant(3_000);
    protocol.trouble = 'error';
    await time.advance(2_000);
    protocol.trouble = undefined;
    await time.advance(4_000);
    const late = timesOf(lease, since).filter((at) => at > 2_000);
    expect(late.length).toBeLessThanOrEqual(5);
    expect(lease.isHeld).toBe(true);
  });

  it.each([5, 20, 100])('The watchdog sends a bounded number of commands for a ttl of %s ms', async (ttl) => {
    const since = time.now;
    const leases = Array.from({ length: 50 }, () => grant(ttl));
    await time.advance(1_000);
    // At least 8 ms are between two of them: the interval of 10, less a quarter.
    expect(protocol.requests.length).toBeLessThanOrEqual(125);
    // What cannot be renewed in time ends in time.
    for (const { isHeld, lostAt = 0 } of leases) expect(isHeld || lostAt - since <= ttl).toBe(true);
  });

  it('The watchdog sends a bounded number of commands when Redis refuses at once, and every reader finds the lease suspect', async () => {
    const lease = grant(60_000);
    time.wallNow += 3_600_000; // suspended
    protocol.trouble = 'error';
    for (let i = 0; i < 1_000; i++) {
      expect(lease.remaining).toBe(0);
      await time.advance(1);
    }
    expect(protocol.requests.length).toBeLessThanOrEqual(110);
  });

  it('The watchdog asks at once about a lease that is suspect, also after the wall clock was set back before (P12)', async () => {
    const lease = grant(60_000);
    time.wallNow -= 10_000;
    await time.advance(21_000);
    time.wallNow += 10_000;
    expect(lease.remaining).toBe(0);
    await time.advance(1);
    expect(lease.remaining).toBeGreaterThan(59_000);
  });

  it('The watchdog, late by a pause of the process, never renews what is over (P5)', async () => {
    const over = grant(3_000);
    const alive = grant(60_000);
    time.now += 3_100;
    time.wallNow += 3_100;
    await time.advance(20_000);
    expect(timesOf(over, 0)).toEqual([]);
    expect(over.lostAt).toBeDefined();
    expect(alive.isHeld).toBe(true);
    expect(timesOf(alive, 0)).toHaveLength(1);
  });

  it('The watchdog renews a lease early enough whose grant came late', async () => {
    const since = time.now;
    const lease = grant(3_000, { replyTook: 2_500 });
    await time.advance(2_000);
    expect(timesOf(lease, since)[0]).toBeLessThan(450);
    expect(lease.isHeld).toBe(true);
  });

  it('The watchdog lets one bad key harm no other (P6)', async () => {
    const leases = Array.from({ length: 10 }, () => grant(3_000));
    const [stolen, unknown, ...others] = leases as [NotedLease, NotedLease, ...NotedLease[]];
    protocol.verdicts.set(stolen.owner, { state: 'stolen' });
    protocol.verdicts.set(unknown.owner, { state: 'unknown', cause: undefined });
    await time.advance(10_000);
    expect([stolen.isHeld, stolen.lossReason]).toEqual([false, 'stolen']);
    expect([unknown.isHeld, unknown.lossReason]).toEqual([false, 'unconfirmed']);
    expect(others.every(({ isHeld }) => isHeld)).toBe(true);
  });

  it('The watchdog does not let leases that are short for the network take the time of the long ones', async () => {
    protocol.latency = 40;
    const long = grant(9_000);
    for (let i = 0; i < 400; i++) {
      grant(90);
      await time.advance(30);
    }
    expect(long.isHeld).toBe(true);
    expect(long.until).toBeGreaterThan(time.now + 5_000);
  });

  it('The watchdog asks once more about a lease that may have been released while its renewal was in flight', async () => {
    const since = time.now;
    const lease = grant(60_000);
    protocol.latency = 30;
    await time.advance(20_010);
    // The renewal was answered before the release.
    lease.confirmNow();
    await time.advance(100);
    expect(timesOf(lease, since)).toEqual([20_000, 20_030]);
    await time.advance(20_000);
    expect(timesOf(lease, since)).toHaveLength(3);
  });

  it('The watchdog asks about a hold that may have been released while it was confirmed for its next lease', async () => {
    const since = time.now;
    const hold = grant(60_000);
    const next = hold.lease as LeaseOfHold;
    await time.advance(1_000);
    hold.unlocked();
    hold.confirmNow();
    await time.advance(5);
    expect(timesOf(hold, since)).toEqual([]);
    hold.passedOn(next, false, time.now);
    await time.advance(5);
    expect(timesOf(hold, since)).toHaveLength(1);
  });

  it('The watchdog asks about every lease at once after a reconnect, and extends only those that may be renewed', async () => {
    const [renewed, fixed] = [grant(60_000), grant(60_000, { renewFor: 0 })];
    await time.advance(5_000);
    protocol.verdicts.set(fixed.owner, { state: 'expired' });
    // It is asked 1 ms later.
    const left = Math.floor(fixed.until - time.now) - 1;
    watchdog.askAboutAll();
    await time.advance(1);
    expect(protocol.requests).toMatchObject([{ owners: [renewed.owner, fixed.owner], ttls: [60_000, left] }]);
    expect([fixed.isHeld, fixed.lossReason]).toEqual([false, 'expired']);
    await time.advance(60_000);
    expect(renewed.isHeld).toBe(true);
  });

  it('The watchdog asks a bounded number of times when a pool reports many connections one after the other', async () => {
    grant(60_000);
    await time.advance(5_000);
    for (let i = 0; i < 100; i++) {
      watchdog.askAboutAll();
      await time.advance(1);
    }
    expect(protocol.requests.length).toBeGreaterThan(5);
    expect(protocol.requests.length).toBeLessThanOrEqual(11);
  });

  it('The watchdog does not read leases that are not due', async () => {
    let reads = 0;
    class Counted extends NotedLease {
      override get isHeld(): boolean {
        reads++;
        return super.isHeld;
      }
    }
    for (let i = 0; i < 1_000; i++) new Counted(60_000 + i);
    const short = grant(30);
    reads = 0;
    await time.advance(2_000);
    expect(short.isHeld).toBe(true);
    expect(timesOf(short, time.now).length).toBeGreaterThan(100);
    expect(reads).toBe(0);
  });

  it('The watchdog asks nothing of a lease that was removed, and has no timer left when it is closed (P7, P8)', async () => {
    const lease = grant(3_000);
    watchdog.remove(lease);
    await time.advance(10_000);
    expect(protocol.requests).toEqual([]);
    expect(lease.lostAt).toBeUndefined();
    expect(time.pending).toBe(0);
    grant(3_000);
    expect(time.pending).toBe(1);
    watchdog.close();
    expect(time.pending).toBe(0);
  });

  it('The watchdog has one timer for any number of leases, and none that keeps the process alive (P8)', async () => {
    for (let i = 0; i < 100; i++) grant(3_000 + i);
    for (let turn = 0; turn < 10; turn++) {
      expect([time.pending, time.keepingAlive]).toEqual([1, 0]);
      await time.advance(1_000);
    }
  });
});

describe('A lease that was granted for a claim window', () => {
  it('A lease that was granted for a claim window ends with the window unless its first renewal is confirmed (P4)', async () => {
    const since = time.now;
    const window = 1_000;
    const unanswered = grant(9_000, { firstRenewal: { window, answer: new Promise(() => {}) } });
    const held = { state: 'held', until: reliableUntil(since, 9_000) } as const;
    const fixed = grant(9_000, { renewFor: 0, firstRenewal: { window, answer: Promise.resolve(held) } });
    await time.advance(1_100);
    expect([unanswered.isHeld, unanswered.lossReason]).toEqual([false, 'unconfirmed']);
    expect((unanswered.lostAt as number) - since).toBeLessThanOrEqual(window);
    expect(fixed.isHeld).toBe(true);
    await time.advance(10_000);
    expect(fixed.lossReason).toBe('expired');
    expect((fixed.lostAt as number) - since).toBeCloseTo(reliableUntil(0, 9_000), -1);
  });

  it('A lease that was granted for a claim window has a first renewal without an answer repeated, also if it is not to be renewed otherwise', async () => {
    const unknown = { state: 'unknown', cause: new Error('trouble') } as const;
    const firstRenewal = { window: 1_000, answer: Promise.resolve(unknown) };
    const lease = grant(9_000, { renewFor: Number.NEGATIVE_INFINITY, firstRenewal });
    await time.advance(3_000);
    expect(lease.isHeld).toBe(true);
    expect(protocol.requests).toMatchObject([{ owners: [lease.owner], ttls: [9_000] }]);
    await time.advance(10_000);
    expect(lease.lossReason).toBe('expired');
  });
});
