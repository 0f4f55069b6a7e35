import { beforeEach, describe, expect, it } from '@jest/globals';
import { Hold } from '../../lib/core/hold';
import type { LeaseOfHold, WatchdogOfHold } from '../../lib/core/of-hold';
import type { LockProtocol, Ownership } from '../../lib/core/protocol';
import type { LockRequest } from '../../lib/core/request';
import { clock, drift } from '../../lib/internal/clock';
import type { Connection } from '../../lib/redis/connection';
import { ClientClosedError, CommandTimeoutError, NOT_ASKED, NotSentError } from '../../lib/redis/failure';
import { FakeClock } from '../support/fake-clock';
import { lateReply } from '../support/mock-redis';

const time = FakeClock.install();
let connection: {
  connectionEpoch: number | undefined;
  disruptions: number;
  isClientClosed: boolean;
  mayBeOutdated(): boolean;
};
/** The calls of the hold to its watchdog and to its lease. */
let log: string[];
let answer: (ownership: Ownership) => void;

beforeEach(() => {
  connection = { connectionEpoch: 1, disruptions: 3, isClientClosed: false, mayBeOutdated: () => false };
  log = [];
});

const note = (what: string) => (): void => void log.push(what);

function holdOf({ hasQueue = true, waits = true } = {}): Hold {
  const renew: LockProtocol['renew'] = (_owner, _ttl, _timeout, settle) => {
    answer = settle;
  };
  const protocol = { hasQueue, renew } as unknown as LockProtocol;
  const asked = { ttl: 3_000, waits, minHold: 0, permits: 1 };
  return new Hold('me:1', asked, { connection: connection as unknown as Connection, watchdog: WATCHDOG }, protocol);
}

const leaseOf = (other: Partial<LeaseOfHold> = {}): LeaseOfHold => ({
  ttl: 3_000,
  endsAt: Number.POSITIVE_INFINITY,
  renewUntil: undefined,
  renewed: note('renewed'),
  lost: (reason) => void log.push(`lost: ${reason}`),
  ...other,
});

const WATCHDOG: WatchdogOfHold<Hold> = {
  askedAboutAllAt: 0,
  add: note('add'),
  moved: note('moved'),
  remove: note('remove'),
  renewed: note('answered'),
  askAbout: note('ask'),
  hurry: note('hurry'),
};

/** Granted now, for 3,000 ms, with this lease. */
function grant(lease?: Partial<LeaseOfHold>, renewal?: Promise<Ownership>): Hold {
  const hold = holdOf();
  hold.stamp(0);
  const granted = { granted: true, owner: 'me:1', until: time.now + 3_000, fencingToken: undefined, drift: hold.drift };
  hold.granted({ ...granted, renewal } as Parameters<Hold['granted']>[0], leaseOf(lease), time.now);
  log = [];
  return hold;
}

it('A hold that was granted forgets what was asked for, unless an attempt may be executed later', () => {
  for (const lostTrack of [false, true]) {
    const hold = holdOf();
    hold.stamp(0);
    hold.attempts.answered();
    hold.attempts.lostTrack = lostTrack;
    expect(hold.isEnqueued).toBe(true);
    const granted = {
      granted: true,
      owner: 'me:1',
      until: time.now + 3_000,
      fencingToken: undefined,
      drift: 0,
    } as const;
    hold.granted(granted, leaseOf(), time.now);
    const { areCertain, reachedRedis } = hold.attempts;
    expect([hold.waits, hold.isEnqueued, areCertain, reachedRedis]).toEqual([lostTrack, lostTrack, !lostTrack, true]);
  }
});

it('A failure of a renewal is that of the hold until Redis confirms it', async () => {
  const hold = grant();
  const cause = new Error('cut');
  hold.renewInBackground(100, time.now, 0);
  answer({ state: 'unknown', cause });
  expect(hold.failure).toBe(cause);
  hold.renewInBackground(100, time.now, 0);
  answer({ state: 'held', until: time.now + 3_000 });
  expect(hold.failure).toBeUndefined();
});

describe('An attempt', () => {
  const lost = new Error('Socket closed unexpectedly');
  const loading = new Error('LOADING Redis is loading');
  const refused = new Error('NOPERM no rights');
  const unread = new Error("NOPERM this user has no permissions to run the 'evalsha' command");
  const closed = new ClientClosedError('closed');
  const late = (outcome: Promise<unknown>) => new CommandTimeoutError(300, outcome);

  /** The flags that are set. */
  const flagsOf = (hold: Hold): string =>
    Object.entries({
      certain: hold.attempts.areCertain,
      'wrote nothing': hold.attempts.wereNeverInDoubt,
      reachedRedis: hold.attempts.reachedRedis,
      lostTrack: hold.attempts.lostTrack,
      mayBeInRedis: hold.mayBeInRedis,
    })
      .flatMap(([flag, isSet]) => (isSet ? [flag] : []))
      .join(' ');

  const CLEAN = 'certain wrote nothing';
  const DOUBT = 'mayBeInRedis';
  const EXECUTED = 'certain reachedRedis mayBeInRedis';
  const LOST = 'reachedRedis lostTrack mayBeInRedis';

  it.each<[what: string, error: unknown, before: string, after: string]>([
    ['that the server refused for now', loading, `${CLEAN} reachedRedis`, `${CLEAN} reachedRedis`],
    ['that the server stopped half-way', refused, 'reachedRedis mayBeInRedis', EXECUTED],
    ['that the server refused before it ran', unread, CLEAN, CLEAN],
    ['that was not sent', new NotSentError(300), CLEAN, CLEAN],
    ['that a client refused which was closed', closed, CLEAN, CLEAN],
    ['whose connection was lost', lost, DOUBT, LOST],
    ['that is answered late', late(Promise.resolve(1)), DOUBT, EXECUTED],
    ['that is refused late', late(Promise.reject(refused)), DOUBT, EXECUTED],
    ['whose connection was lost late', late(Promise.reject(lost)), DOUBT, LOST],
    ['that was not sent in the end', late(Promise.reject(new NotSentError(300))), DOUBT, 'certain'],
    ['that was not asked for in the end', late(Promise.reject(NOT_ASKED)), DOUBT, 'certain'],
  ])('An attempt %s may be in Redis, or not', async (_, error, before, after) => {
    const hold = holdOf({ hasQueue: false });
    expect([flagsOf(hold), hold.position]).toEqual([CLEAN, -1]);
    connection.isClientClosed = error === closed;
    hold.stamp(0);
    const attempt = Promise.reject(error);
    hold.attempts.failed(error, attempt);
    attempt.catch(() => undefined);
    const seen = [flagsOf(hold)];
    await time.advance(0);
    expect([...seen, flagsOf(hold)]).toEqual([before, after]);
  });

  it('An attempt may be in Redis after an error of a client that was closed while it was in flight', async () => {
    for (const isStamped of [true, false]) {
      const hold = holdOf();
      connection.isClientClosed = false;
      if (isStamped) hold.stamp(0);
      connection.isClientClosed = true;
      hold.attempts.failed(closed, Promise.reject(closed));
      expect(flagsOf(hold)).toBe(DOUBT);
    }
    await time.advance(0);
  });

  it.each([
    ['before it ran', unread],
    ['for now', loading],
  ])('An attempt that was refused %s may be in Redis where that was a copy of it', async (_, error) => {
    const hold = holdOf();
    hold.stamp(0);
    connection.disruptions++;
    const attempt = Promise.reject(error);
    attempt.catch(() => undefined);
    hold.attempts.failed(error, attempt);
    await time.advance(0);
    expect(flagsOf(hold)).toBe(LOST);
  });

  it.each<[string, (hold: Hold) => void]>([
    ['in time', (hold) => hold.attempts.skipped()],
    ['after its caller left', (hold) => hold.attempts.doubt(Promise.reject(NOT_ASKED))],
  ])('An attempt that the server skipped may be in Redis where that was a copy of it: %s', async (_, answer) => {
    for (const [disruptions, flags] of [
      [0, CLEAN.replace(' wrote nothing', '')],
      [1, LOST],
    ] as const) {
      const hold = holdOf();
      hold.stamp(0);
      connection.disruptions += disruptions;
      answer(hold);
      await time.advance(0);
      expect(flagsOf(hold).replace(' wrote nothing', '')).toBe(flags);
    }
  });

  it('An attempt may be executed later, where its answer came over another connection, as that to a copy', async () => {
    const [inTime, notSent, refusedLate, inDoubt, again] = [holdOf(), holdOf(), holdOf(), holdOf(), holdOf()];
    const all = [inTime, notSent, refusedLate, inDoubt, again];
    for (const hold of all) hold.stamp(0);
    notSent.attempts.doubt(Promise.reject(new NotSentError(300)));
    refusedLate.attempts.doubt(Promise.reject(refused));
    for (const attempt of [new Promise(() => {}), Promise.resolve(1)]) inDoubt.attempts.doubt(attempt);
    void inDoubt.attempts.settled?.then(note('settled'));
    again.attempts.doubt(Promise.resolve(1));
    inTime.attempts.answered();
    expect(all.map((hold) => hold.attempts.lostTrack)).toEqual([false, false, false, false, false]);
    connection.disruptions++;
    inTime.attempts.answered();
    again.stamp(0); // for its next attempt, over the next connection
    await time.advance(0);
    expect(all.map((hold) => hold.attempts.lostTrack)).toEqual([true, false, true, true, true]);
    expect(log).toEqual([]);
  });

  it('An attempt is in order as long as the connection is that of before, and is known', () => {
    const known = holdOf();
    expect(known.attempts.isInOrder).toBe(true);
    connection.connectionEpoch = 2;
    expect(known.attempts.isInOrder).toBe(false);
    connection.connectionEpoch = undefined;
    expect(holdOf().attempts.isInOrder).toBe(false);
  });

  it.each([
    [true, true, 'me:1'],
    [true, false, 'me:2'],
    [false, true, 'me:2'],
  ])('An attempt (waits: %s, queue: %s) keeps its ticket where it may have a position', (waits, hasQueue, ticket) => {
    const hold = holdOf({ waits, hasQueue });
    hold.stamp(0);
    hold.renameTo('me:2');
    hold.attempts.answered();
    const isEnqueued = ticket === 'me:1';
    expect([hold.isEnqueued, hold.mayBeInRedis, hold.ticket]).toEqual([isEnqueued, isEnqueued, ticket]);
  });

  it.each([
    ['me:1', ['me:1']],
    ['me:1@5', ['me:1']],
    ['me:15', ['me:1', 'me:15']],
    ['kept@me:1@', ['me:1', 'kept@me:1@']],
  ])('An attempt as %s is found under %j', (owner, expected) => {
    expect(Object.assign(holdOf(), { owner }).owners).toEqual(expected);
  });

  it('An attempt says for how many µs its caller has waited, at least 0', () => {
    const hold = holdOf();
    const now = clock.now();
    const waited = [now - 2.5, now + 1].map((since) => {
      hold.stamp(since);
      return hold.waited;
    });
    expect(waited).toEqual(['2500', '0']);
  });
});

describe('A hold', () => {
  it('A hold that is passed on is put before the watchdog where that does not know when to renew it', () => {
    const row = (isWatched: boolean, other: Partial<Hold>, lease: Partial<LeaseOfHold> = {}) => {
      const hold = grant();
      if (!isWatched) hold.unlocked();
      Object.assign(hold, other).passedOn(leaseOf(lease), time.now);
      return [hold.ttl, hold.longestTtl, log.join()].join(' ');
    };
    const renewAt = 2_000;
    expect(row(true, { renewAt }, { endsAt: renewAt })).toBe('3000 3000 ');
    expect(row(true, {})).toBe('3000 3000 add');
    expect(row(true, { renewAt }, { endsAt: renewAt - 1 })).toBe('3000 3000 add');
    expect(row(true, { renewAt, unread: 1 })).toBe('3000 3000 add');
    expect(row(false, { renewAt })).toBe('3000 3000 remove,add');
    expect(row(true, { renewAt }, { ttl: 9_000 })).toBe('9000 9000 add');
  });

  it.each<[what: string, other: Partial<LockRequest>, passed: number, isFresh: boolean]>([
    ['confirmed 50 ms ago', {}, 50, true],
    ['confirmed 51 ms ago', {}, 51, false],
    ['with as much left as is asked for', { minHold: 2_990 }, 10, true],
    ['with less left', { minHold: 2_990 }, 11, false],
    ['with other permits', { permits: 2 }, 0, false],
  ])('A hold %s may be passed on without a command: by what it says', (_, other, passed, isFresh) => {
    const hold = grant();
    const request = { ttl: 3_000, renew: true, minHold: 0, permits: 1, ...other } as LockRequest;
    expect(hold.isFreshFor(request, time.now + passed)).toBe(isFresh);
    hold.receive({ fencingToken: 7, moreTokens: 1 });
    expect(hold.isFreshFor(request, time.now + passed)).toBe(isFresh);
    expect([hold.takeToken(), hold.takeToken()]).toEqual([7, 8]);
    expect(hold.isFreshFor(request, time.now + passed)).toBe(false);
    expect(() => hold.takeToken()).toThrow('me:1 has no token left');
  });

  it('A hold that Redis said was lost while it was confirmed for its next lease is not passed on', () => {
    const request = { ttl: 3_000, renew: true, minHold: 0, permits: 1 } as LockRequest;
    const isFreshAfter = (ownership: Ownership) => {
      const hold = grant();
      hold.renewInBackground(1_000, time.now, 0);
      hold.unlocked();
      answer(ownership);
      return hold.isFreshFor(request, time.now);
    };
    expect(isFreshAfter({ state: 'stolen' })).toBe(false);
    expect(isFreshAfter({ state: 'expired' })).toBe(false);
    expect(isFreshAfter({ state: 'unknown', cause: new Error('silence') })).toBe(true);
    expect(isFreshAfter({ state: 'held', until: 60_000 })).toBe(true);
  });

  it('A hold that is not held is neither renewed nor lost, whatever comes, and is given up once', async () => {
    const hold = grant();
    hold.renewInBackground(1_000, time.now, 0);
    for (const _ of [1, 2]) hold.unlocked();
    // The watchdog keeps it no longer.
    expect(log.splice(0)).toEqual(['remove']);
    await time.advance(5_000);
    hold.loseIfDue();
    hold.lose('stolen');
    expect([hold.reading, hold.mayRenewAt(time.now), hold.until]).toEqual([undefined, false, 4_000]);
    answer({ state: 'held', until: 60_000 });
    expect([hold.until, log]).toEqual([4_000, ['answered']]);
    expect([hold.giveUp(), hold.state, hold.giveUp()]).toEqual([true, 'given up', false]);
  });

  it('A hold may be renewed before the time at which its lease has no use for it, and once in any case', async () => {
    const hold = grant({ renewUntil: 2_000 });
    expect([hold.mayRenewAt(1_999), hold.mayRenewAt(2_000)]).toEqual([true, false]);
    hold.renewAt = 1_500;
    hold.endRenewal();
    expect(hold.renewAt).toBeUndefined();
    const claimed = grant({ renewUntil: 0 }, new Promise(() => {}));
    claimed.renewAt = 1_500;
    claimed.endRenewal();
    expect([claimed.mayRenewAt(2_000), claimed.renewAt]).toEqual([true, 1_500]);
  });

  it('A hold whose protocol can only release it is not confirmed, and remembers what was asked for', () => {
    const hold = grant();
    expect([hold.confirmOrRelease({ ttl: 9_000, timeout: 300, now: time.now, callers: 1 }), hold.longestTtl]).toEqual([
      undefined,
      9_000,
    ]);
  });

  it('A hold is as fresh, and as sure, as it was when its renewal was sent', async () => {
    const hold = grant();
    const renewing = hold.renew(3_000, 300);
    await time.advance(200);
    answer({ state: 'held', until: 9_000 });
    await renewing;
    expect([hold.sentAt, hold.isSuspectAt(drift())]).toEqual([1_000, false]);
    const claim = lateReply();
    const claimed = grant({}, claim.promise as Promise<Ownership>);
    time.wallNow += 60_000;
    claim.resolve({ state: 'held', until: 9_000 });
    await time.advance(0);
    expect([claimed.keyUntil, claimed.isSuspectAt(drift())]).toEqual([9_000, true]);
  });

  it('A hold is lost at its deadline only after two turns of the event loop, in which the answer to a renewal is read', async () => {
    const hold = grant();
    hold.renewInBackground(1_000, time.now, hold.drift);
    const { immediate } = clock;
    let turns = 0;
    clock.immediate = async () => {
      await immediate();
      if (++turns === 2) answer({ state: 'held', until: 9_000 });
    };
    time.now += 3_000;
    hold.loseIfDue();
    await hold.reading;
    expect([hold.isHeld, hold.keyUntil, hold.reading]).toEqual([true, 9_000, undefined]);
    // The answer to the next one has not arrived at the next deadline.
    hold.renewInBackground(1_000, time.now, hold.drift);
    time.now = 9_000;
    hold.loseIfDue();
    await hold.reading;
    expect([hold.isHeld, hold.reading, log.at(-1)]).toEqual([false, undefined, 'lost: unconfirmed']);
  });

  it('A hold tells its lease of a renewal when it counts', () => {
    const until: number[] = [];
    const hold: Hold = grant({ renewed: () => until.push(hold.keyUntil) });
    hold.renewInBackground(1_000, time.now, hold.drift);
    answer({ state: 'held', until: 9_000 });
    expect(until).toEqual([9_000]);
  });

  it('A hold has the latest of its confirmations, in whatever order they come', () => {
    const hold = grant();
    hold.confirmed(9_000.9, 1_500.9, hold.drift);
    hold.confirmed(5_000, 1_200, hold.drift);
    expect([hold.keyUntil, hold.sentAt]).toEqual([9_000, 1_500]);
  });

  it.each([
    [false, 2_000, 'some,moved'],
    [true, 2_000, 'all,remove,lost: expired'],
    [false, 3_000, 'remove,lost: expired'],
    [undefined, 2_000, 'remove,lost: expired'],
  ])('A hold of several leases (all over: %s) ends those whose ttl is over after %s ms', async (isOver, ms, told) => {
    const endSome = () => {
      log.push(isOver ? 'all' : 'some');
      return !isOver;
    };
    const lease = { endsAt: time.now + 1_000, renewUntil: 0 };
    const hold = grant(isOver === undefined ? lease : { ...lease, endSome });
    await time.advance(ms);
    hold.loseIfDue();
    expect([log.join(), hold.isHeld]).toEqual([told, told.endsWith('moved')]);
  });
});
