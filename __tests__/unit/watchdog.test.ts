import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { Hold } from '../../lib/core/hold';
import { type LockOfLease, RedisLease } from '../../lib/core/lease';
import type { LockProtocol, Ownership } from '../../lib/core/protocol';
import type { LockRequest } from '../../lib/core/request';
import { isOverdue, Watchdog } from '../../lib/core/watchdog';
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
    const duration = isAnswered || this.trouble === 'error' ? this.latency : timeout;
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

interface SceneOptions extends LeaseOptions, Partial<Pick<FakeProtocol, 'latency' | 'trouble'>> {
  readonly ttl?: number;
}

let count = 0;

/** A hold that is granted now, with a lease of the library. Notes when it was lost. */
class NotedLease extends Hold {
  lostAt: number | undefined;
  onLoss = (): void => undefined;
  readonly #lease: RedisLease;

  constructor(ttl: number, { renewFor = Number.POSITIVE_INFINITY, replyTook = 0, firstRenewal }: LeaseOptions = {}) {
    const asked = { ttl, waits: true, minHold: 0, permits: 1 };
    super(
      `owner:${++count}`,
      asked,
      { connection: {} as Connection, watchdog },
      protocol as Partial<LockProtocol> as LockProtocol,
    );
    this.stamp(0);
    const lock = {
      key: 'key',
      services: {
        connection: { lastError: undefined },
        inbox: { lost: () => undefined },
        settings: { maxHold: renewFor, commandTimeout: COMMAND_TIMEOUT },
      },
      leaseOver: () => {
        this.lostAt = clock.now();
        this.onLoss();
      },
    } as unknown as LockOfLease;
    const now = clock.now();
    const request = { ttl, renew: renewFor > 0, explicitTtl: true, minHold: 0, permits: 1 } as LockRequest;
    this.#lease = new RedisLease(lock, this, request, now, false);
    const until = reliableUntil(now - replyTook, firstRenewal?.window ?? ttl);
    const renewal = firstRenewal && { renewal: firstRenewal.answer };
    const grant = { granted: true, owner: this.ticket, until, fencingToken: undefined, drift: this.drift } as const;
    this.granted({ ...grant, ...renewal }, this.#lease, now);
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
  const recover = () => (protocol.trouble = undefined);
  const renew = (lease: Hold) => void lease.renew(3_000, 1_500);
  const nothing = () => undefined;
  const next = { ttl: 60_000, endsAt: Infinity, renewUntil: undefined, renewed: nothing, lost: nothing };
  const confirmSoon = (lease: Hold) => lease.confirmSoon();
  const confirmNow = (lease: Hold) => {
    lease.confirmNow();
    time.delays = [];
  };
  const suspend = (lease: NotedLease) => {
    time.wallNow += 3_600_000;
    expect(lease.remaining).toBe(0);
    // The timer fires before the answer.
    grant(200, { renewFor: 0 });
  };

  // What is done, and when the watchdog asks: ms from the grant on.
  it.each<[what: string, options: SceneOptions, steps: Record<number, (lease: NotedLease) => void>, asked: string]>([
    ['at a third of the ttl, counted from the request before', { latency: 20 }, {}, '1000 2000 3000 4000 5000'],
    ['early enough, where the grant came late', { replyTook: 2_500 }, {}, '1 1001 2001 3001 4001'],
    ['in its rhythm once Redis answers (P6)', { trouble: 'error' }, { 1100: recover }, '1000 1167 2167 3167 4167'],
    [
      'again at once, where that is due when an error comes',
      { ttl: 3_600, trouble: 'error', latency: 200 },
      { 1300: recover },
      '1200 1400 2600 3800 5000',
    ],
    [
      'once more, where it may have been released while a renewal was in flight',
      { ttl: 60_000, latency: 300 },
      { 20010: confirmNow, 20290: () => expect(time.delays.length).toBeLessThan(3), 21000: () => undefined },
      '20000 20300',
    ],
    [
      'where it may have been released while it was confirmed for its next lease',
      { ttl: 60_000 },
      { 999: (lease) => lease.unlocked(), 1000: confirmNow, 1005: (lease) => lease.passedOn(next, time.now) },
      '1006',
    ],
    [
      'where that was planned before it was confirmed for its next lease',
      { ttl: 60_000 },
      { 0: confirmSoon, 20: (lease) => lease.unlocked(), 25: (lease) => lease.passedOn(next, time.now) },
      '50',
    ],
    [
      'when what it knows is not fresh any more, where a message says that the lock was released',
      { ttl: 60_000 },
      { 0: confirmSoon, 100: confirmSoon },
      '50 101',
    ],
    ['after a renewal by its caller', { trouble: 'silence' }, { 900: renew, 2410: recover }, '900 2400 2698 3698 4698'],
    [
      'after a renewal by its caller while another one was in flight',
      { trouble: 'silence' },
      { 1100: renew, 2610: recover },
      '1000 1100 2600 2798 3798 4798',
    ],
    [
      'after each time that the machine was suspended, and not while an answer is awaited',
      { ttl: 60_000, latency: 300 },
      { 1000: suspend, 2000: suspend },
      '1001 2001',
    ],
  ])('The watchdog asks about a lease %s', async (_, { ttl = 3_000, trouble, latency = 0, ...how }, steps, asked) => {
    const since = time.now;
    Object.assign(protocol, { trouble, latency });
    const lease = grant(ttl, how);
    for (const [at, act] of Object.entries(steps)) {
      await time.advance(since + Number(at) - time.now);
      act(lease);
    }
    await time.advance(Math.max(0, since + 5_000 - time.now));
    expect([timesOf(lease, since).join(' '), lease.isHeld]).toEqual([asked, true]);
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
    ['silence', '1000 1998 2497 2747 2871 2934 2965 2980 2991', 8],
    [
      'error',
      '1000 1167 1334 1501 1668 1835 2002 2168 2306 2421 2517 2597 2664 2720 2766 2805 2837 2864 2886 2905 2921 2934 2945 2955 2965 2975 2985 2995',
      22,
    ],
  ] as const)(
    'The watchdog after %s tries again, with pauses that get shorter, until the deadline (P4, P6)',
    async (trouble, times, found) => {
      const since = time.now;
      const lease = grant(3_000);
      protocol.trouble = trouble;
      await time.advance(10_000);
      expect([Math.floor(lease.lostAt as number) - since, lease.lossReason]).toEqual([2_996, 'unconfirmed']);
      expect(timesOf(lease, since).join(' ')).toBe(times);
      expect(overdue).toBe(found);
    },
  );

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
    expect(lease.remaining).toBeGreaterThan(59_000);
    await time.advance(21_000);
    expect(lease.remaining).toBeGreaterThan(58_000);
    time.wallNow += 10_000;
    expect(lease.remaining).toBe(0);
    await time.advance(1);
    expect(lease.remaining).toBeGreaterThan(59_000);
  });

  it.each([2_996, 3_100])('The watchdog, late by %s ms, never renews what is over (P5)', async (pause) => {
    const since = time.now;
    const over = grant(3_000);
    const alive = grant(60_000);
    time.now += pause;
    time.wallNow += pause;
    const asked = grant(3_000);
    protocol.trouble = 'error';
    protocol.latency = 500;
    await time.advance(1_001);
    time.now = since + 2 * pause;
    await time.advance(20_000);
    expect([over, asked].map((lease) => [timesOf(lease, since), lease.lossReason])).toEqual([
      [[], 'unconfirmed'],
      [[pause + 1_000], 'unconfirmed'],
    ]);
    expect(timesOf(alive, since)[0]).toBe(20_000);
  });

  it('The watchdog takes what is due within a quarter of its interval, also behind what is not to be renewed', async () => {
    const since = time.now;
    const fixed = grant(1_200, { renewFor: 0 });
    const ended = grant(3_000);
    const first = grant(3_000);
    await time.advance(250);
    const soon = grant(3_000);
    await time.advance(1);
    const later = grant(3_000);
    (ended.lease as RedisLease).renewUntil = 0;
    ended.endRenewal();
    await time.advance(1_100);
    expect(protocol.requests).toEqual([
      { at: since + 1_000, owners: [first.owner, soon.owner], ttls: [3_000, 3_000] },
      { at: since + 1_197, owners: [later.owner], ttls: [3_000] },
    ]);
    expect((fixed.lostAt as number) - since).toBe(1_197);
  });

  it('The watchdog asks nothing of a lease that another one ended by its loss', async () => {
    const ends = grant(3_000, { renewFor: 0 });
    const leases = [grant(9_000), grant(9_000)];
    ends.onLoss = () => {
      leases[0]?.lose('stolen');
      leases[1]?.unlocked();
    };
    await time.advance(9_000);
    expect(protocol.requests).toEqual([]);
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

  it('The watchdog renews a lease when it is due, though a message asks about it later', async () => {
    grant(90).confirmSoon();
    await time.advance(31);
    expect(protocol.requests).toHaveLength(1);
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
      override get until(): number {
        reads++;
        return super.until;
      }
    }
    for (let i = 0; i < 1_000; i++) new Counted(60_000 + i, { renewFor: (i % 2) * 60_000 });
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
    const asked = [grant(3_000), grant(3_000)];
    protocol.latency = 100;
    await time.advance(1_050);
    void asked[1]?.renew(3_000, 500);
    for (const one of asked) one.unlocked();
    await time.advance(1_500);
    expect([timesOf(lease, 0), lease.lostAt, time.pending]).toEqual([[], undefined, 0]);
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
    expect([fixed.isHeld, timesOf(fixed, since)]).toEqual([true, []]);
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

// An interval is 3,000 ms; and Redis is silent after 250.
it.each([
  [{}, true],
  [{ keyUntil: 3_001 }, false],
  [{ sentAt: -3_249 }, false],
  [{ mayRenewAt: () => false }, false],
])('A lease with %o is overdue: %s', (other, expected) => {
  const hold = { ttl: 9_000, keyUntil: 3_000, sentAt: -3_250, mayRenewAt: () => true, ...other };
  expect(isOverdue(hold as unknown as Hold, 0)).toBe(expected);
  expect(isOverdue({ ...hold, keyUntil: hold.keyUntil + 500, sentAt: hold.sentAt + 500 } as unknown as Hold, 500)).toBe(
    expected,
  );
});
