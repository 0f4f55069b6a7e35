import { tracingChannel } from 'node:diagnostics_channel';
import { inspect } from 'node:util';
import { beforeEach, expect, it, jest } from '@jest/globals';
import { LeaseEvalError, LockReleaseError, type ReleaseMessage } from '../../lib';
import type { EvalResult } from '../../lib/core/backend';
import { Hold } from '../../lib/core/hold';
import { leaseText } from '../../lib/core/internal-lease';
import { type LockOfLease, RedisLease } from '../../lib/core/lease';
import type { LockProtocol, Released, Travel } from '../../lib/core/protocol';
import type { LockRequest } from '../../lib/core/request';
import type { Connection } from '../../lib/redis/connection';
import { FakeClock } from '../support/fake-clock';
import { IDLE_WATCHDOG } from '../support/fake-redis';

const time = FakeClock.install();
const CUT = new Error('Socket closed unexpectedly');
const REFUSED = new Error('NOPERM no rights');

/** The calls of the lease to its surroundings. */
let log: string[];
let warnings: unknown[];
const note = (what: string) => (): void => void log.push(what);
const detach = jest.fn<Travel['detach']>();
const release = jest.fn<LockProtocol['release']>();
const run = jest.fn<(...call: unknown[]) => Promise<EvalResult>>();
const passOn = jest.fn<LockOfLease['passOn']>();
const within = jest.fn(async (..._: unknown[]): Promise<unknown> => ({ outcome: 'released' }));

beforeEach(() => {
  log = [];
  warnings = [];
  for (const mock of [detach, release, run, passOn]) mock.mockReset();
  within.mockClear();
  release.mockResolvedValue('released');
  detach.mockResolvedValue('released');
});

interface Options extends Partial<Pick<LockRequest, 'ttl' | 'renew' | 'minHold'>> {
  readonly maxHold?: number;
  readonly isPassedOn?: boolean;
  readonly token?: number;
  /** ms that the key lives. */
  readonly life?: number;
  readonly protocol?: Partial<LockProtocol>;
}

/** A lease of a hold that was granted now, of a lock that only notes the calls to it. */
function leaseOf(options: Options = {}) {
  const { ttl = 3_000, renew = true, minHold = 0, maxHold = Infinity, isPassedOn = false, token, life = ttl } = options;
  const protocol = { travel: { detach }, release, leaseLost: note('lost'), ...options.protocol } as LockProtocol;
  const connection = { disruptions: 0, connectionEpoch: 1, lastError: undefined } as unknown as Connection;
  const asked = { ttl, waits: true, minHold, permits: 1 };
  const hold = new Hold('me:1', asked, { connection, watchdog: IDLE_WATCHDOG }, protocol);
  const settings = {
    maxHold,
    commandTimeout: 5_000,
    lockType: 'spin',
    registryKey: 'orders',
    onWarning: (one: unknown) => warnings.push(one),
  };
  const services = {
    settings,
    connection,
    longHolds: { add: note('watched'), remove: note('unwatched') },
    leaseScripts: { assertPlaced: () => undefined, run },
    inbox: { lost: () => undefined, ended: () => undefined, signalOf: () => new AbortController().signal },
    givingBack: { follow: ({ owner }: Hold) => log.push(`follow ${owner}`), within },
  };
  const names = { lock: 'orders:key' };
  const lock = {
    key: 'key',
    services,
    names,
    passOn,
    releasing: () => undefined,
    leaseOver: note('over'),
  } as unknown as LockOfLease;
  hold.stamp(0);
  if (token !== undefined) hold.receive({ fencingToken: token, moreTokens: 1 });
  const request = { ttl, renew, minHold, permits: 1 } as LockRequest;
  const lease = new RedisLease(lock, hold, request, time.now, isPassedOn);
  const until = time.now + life;
  const grant = { granted: true, owner: 'me:1', until, fencingToken: token, drift: hold.drift } as const;
  hold.granted(grant, lease, time.now);
  if (minHold > 0) hold.holdAtLeast(minHold, true);
  log = [];
  return { lease, hold, lock };
}

const evaluated = async (lease: RedisLease): Promise<unknown> => {
  const evaluating = lease.eval('return 1').catch((error: unknown) => error);
  await time.advance(0);
  return evaluating;
};

it('lease.eval says what its script replied, and counts while its script may run', async () => {
  const { lease, hold } = leaseOf();
  const end = { reply: (_: EvalResult) => {}, fail: (_: unknown) => {} };
  run.mockImplementation(() => new Promise((resolve, reject) => Object.assign(end, { reply: resolve, fail: reject })));
  const options = { keys: ['stock'], arguments: ['5'] };
  const running = lease.eval('return 7', options);
  await time.advance(0);
  expect(hold.evals).toBe(1);
  expect(run.mock.lastCall).toEqual([
    { lock: 'orders:key' },
    'me:1',
    { script: 'return 7', keys: ['stock'], args: ['5'] },
    5_000,
  ]);
  end.reply({ held: true, reply: 7 });
  expect([await running, hold.evals]).toEqual([7, 0]);
  run.mockRejectedValueOnce(REFUSED);
  expect([await evaluated(lease), hold.evals]).toEqual([REFUSED, 0]);
  expect(run.mock.lastCall?.[2]).toEqual({ script: 'return 1', keys: [], args: [] });
  run.mockRejectedValueOnce(CUT);
  const unanswered = await evaluated(lease);
  expect([unanswered, hold.evals]).toEqual([expect.any(LeaseEvalError), 1]);
  expect(unanswered).toMatchObject({
    message:
      'The script under lock "key" was not answered: it may have run, or may still run while the lease is held (Socket closed unexpectedly)',
    cause: CUT,
  });
  const unlocked = lease.eval('return 1').catch((error: unknown) => error);
  await time.advance(0);
  await lease.unlock();
  end.reply({ held: false, state: 'expired' });
  expect(await unlocked).toMatchObject({ name: 'NotLockOwnerError' });
  const { lease: other } = leaseOf();
  run.mockResolvedValueOnce({ held: false, state: 'stolen' });
  expect(await evaluated(other)).toMatchObject({ name: 'LockLostError', reason: 'stolen' });
  expect(other.signal.aborted).toBe(true);
});

it.each<[text: string, options: Options, passed: number, ttl: number]>([
  ['3000 renewed 0', {}, 0, 3_000],
  ['3000 fixed 0', { renew: false }, 0, 3_000],
  ['3000 renewed 0', { maxHold: 100 }, 99, 3_000],
  ['3000 fixed 0', { maxHold: 100 }, 100, 3_000],
  ['9000 renewed 8900', { ttl: 9_000, minHold: 9_000 }, 100, 9_000],
  ['3500 renewed 3500', { minHold: 3_600, life: 9_000 }, 100, 3_500],
])('detach() makes the text "%s" of a lease with %j after %d ms', async (text, options, passed, ttl) => {
  const { lease } = leaseOf(options);
  time.now += passed;
  time.wallNow += passed;
  const detaching = lease.detach();
  expect(lease.isUnlocked).toBe(true);
  expect(await detaching).toBe(`lease/1 spring detached@me:1 ${text} orders:key`);
  expect(detach.mock.lastCall).toEqual(['me:1', 'detached@me:1', ttl, expect.any(Number)]);
  expect(log).toEqual(['unwatched', 'over', 'lost']);
});

it.each<[what: string, answers: (Released | Error)[], name: string | undefined, told: string, timeouts: number[]]>([
  ['that succeeds', ['released'], undefined, 'over,lost', [3_000]],
  ['whose first try had no answer', [CUT, 'released'], undefined, 'over,lost', [3_000, 2_990]],
  ['that finds the lock lost', ['stolen'], 'LockLostError', 'over,lost', [3_000]],
  ['that is refused', [REFUSED], 'LockReleaseError', 'follow detached@me:1,over,lost', [3_000]],
])('A detach() %s ends its lease, and leaves nothing', async (_, answers, name, told, timeouts) => {
  for (const hasLeaseLost of [true, false]) {
    const { lease } = leaseOf(hasLeaseLost ? {} : { protocol: { leaseLost: undefined } as never });
    detach.mockClear();
    for (const answer of answers) {
      if (typeof answer === 'string') detach.mockResolvedValueOnce(answer);
      else detach.mockRejectedValueOnce(answer);
    }
    const detaching = lease.detach().catch((error: unknown) => error);
    await time.advance(20);
    const error = await detaching;
    expect(typeof error === 'string' ? undefined : (error as Error).name).toBe(name);
    if (error instanceof LockReleaseError) expect(error).toMatchObject({ key: 'key', cause: REFUSED });
    expect(log).toEqual(['unwatched', ...told.split(',').filter((what) => hasLeaseLost || what !== 'lost')]);
    expect(detach.mock.calls.map(([, , , timeout]) => timeout)).toEqual(timeouts);
    expect([lease.isUnlocked, lease.checkLost()]).toEqual([true, name === 'LockLostError']);
  }
});

it('A detach() that has no answer is tried for as long as the key lives', async () => {
  const { lease } = leaseOf();
  detach.mockRejectedValue(CUT);
  const error = { name: 'LockReleaseError', cause: CUT };
  expect(await time.settled(lease.detach())).toMatchObject({ error });
  const { length } = detach.mock.calls;
  expect([length > 5, log]).toEqual([true, ['unwatched', 'follow detached@me:1', 'over', 'lost']]);
});

it('detach() has an attempt followed that may be executed later, and waits until an answer was read', async () => {
  const { lease, hold } = leaseOf();
  hold.attempts.lostTrack = true;
  await lease.detach();
  expect(log).toEqual(['unwatched', 'follow me:1', 'over', 'lost']);
  const { lease: late, hold: read } = leaseOf();
  let resume = (): void => undefined;
  const reading = new Promise<void>((resolve) => (resume = resolve));
  Object.defineProperty(read, 'reading', { get: () => reading });
  const detaching = late.detach();
  await time.advance(0);
  expect(late.isUnlocked).toBe(false);
  resume();
  await detaching;
});

it('The end of a lease is published with its outcome, and whether its hold went to the next caller', async () => {
  const ended: Partial<ReleaseMessage>[] = [];
  const begun: Partial<ReleaseMessage>[] = [];
  const none = () => undefined;
  const subscribers = {
    start: (message: object) => void begun.push({ ...message }),
    asyncEnd: (message: object) => void ended.push({ ...message }),
    ...{ end: none, asyncStart: none, error: none },
  };
  const channel = tracingChannel('redis-lock-registry:release');
  channel.subscribe(subscribers);
  const [released, handedOver, detached, failed, lost] = [1, 2, 3, 4, 5].map((token) => leaseOf({ token }).lease);
  await released?.unlock();
  passOn.mockImplementationOnce((lease) => {
    lease.handedOver();
    return 'passed on';
  });
  await handedOver?.unlock();
  await detached?.detach();
  detach.mockRejectedValueOnce(REFUSED);
  await failed?.detach().catch(none);
  detach.mockResolvedValueOnce('expired');
  await lost?.detach().catch(none);
  channel.unsubscribe(subscribers);
  const about = { registryKey: 'orders', key: 'key', lockType: 'spin', owner: 'me:1' };
  const messageOf = (lease: RedisLease | undefined) => ({ ...about, lease, fencingToken: lease?.fencingToken });
  expect(begun[0]).toEqual({ ...messageOf(released), isHandedOver: false, outcome: undefined });
  expect(ended).toMatchObject([
    { ...messageOf(released), outcome: 'released', isHandedOver: false },
    { ...messageOf(handedOver), outcome: 'released', isHandedOver: true },
    { ...messageOf(detached), outcome: 'detached', isHandedOver: false },
    { ...messageOf(failed), outcome: 'failed' },
    { ...messageOf(lost), outcome: 'lost' },
  ]);
  await leaseOf().lease.unlock();
  expect(ended).toHaveLength(5);
});

it('A lease shows what it is, and nothing of its inside', () => {
  expect(inspect(leaseOf().lease)).toBe("Lease { key: 'key', remaining: 3000 }");
  expect(leaseText('MultiLease', leaseOf().lease)).toBe("MultiLease { key: 'key', remaining: 3000 }");
  expect(inspect(leaseOf({ token: 7 }).lease)).toBe("Lease { key: 'key', remaining: 3000, fencingToken: 7 }");
});

it('A lease knows whether it is renewed, counts for its hold, and how long its release takes', async () => {
  const kinds = [{}, { renew: false }, { maxHold: 500 }].map((options) => leaseOf(options));
  expect(kinds.map(({ lease }) => lease.renewUntil)).toEqual([undefined, 1_000, 1_500]);
  const { lease, hold } = leaseOf();
  expect([lease.isReentry, lease.releasingFor, hold.leases]).toEqual([false, 0, 1]);
  expect(lease.lossError().reason).toBe('unconfirmed');
  await expect(lease.renew(-1)).rejects.toThrow('`ttl`');
  await lease.unlock();
  await lease.unlock();
  await time.advance(200);
  expect([lease.releasingFor, hold.leases, release.mock.calls, within.mock.calls]).toEqual([
    200,
    0,
    [['me:1', 3_000, undefined, 1_000]],
    [],
  ]);
});

it.each([
  [{ life: 2_000 }, 2_000],
  [{ life: 100 }, 250],
  [{ life: 60_000 }, 5_000],
])('The release of a lease with %j has %d ms', async (options, timeout) => {
  await leaseOf(options).lease.unlock();
  expect(release.mock.lastCall?.[1]).toBe(timeout);
});

it.each([
  ['expired', { isPassedOn: true, renew: false, life: 9_000 }, 'follow me:1,over,lost', ''],
  ['expired', { isPassedOn: true, renew: false, life: 2_996 }, 'over,lost', 'follow me:1'],
  ['stolen', { isPassedOn: true, renew: false, life: 9_000 }, 'over,lost', 'follow me:1'],
] as const)(
  'A lease that is lost (%s) with %j sees to what is left: %s, and then %s',
  async (reason, options, told, then) => {
    const { lease, hold } = leaseOf(options);
    hold.lose(reason);
    expect(log.splice(0).join()).toBe(`unwatched,${told}`);
    // Another caller relied on the hold too.
    hold.leases++;
    await expect(lease.unlock()).rejects.toMatchObject({ reason });
    expect([lease.isUnlocked, hold.leases, log.splice(0)]).toEqual([true, 1, []]);
    const last = leaseOf(options);
    last.hold.lose(reason);
    log = [];
    if (then === '') last.hold.giveUp();
    await expect(last.lease.unlock()).rejects.toMatchObject({ reason });
    expect([last.hold.leases, log.join()]).toEqual([0, then]);
  },
);

it('A lease whose deadline has come is lost for whoever asks, before any timer', async () => {
  const { lease } = leaseOf({ renew: false });
  time.now += 3_000;
  expect(() => lease.assertHeld()).toThrow('lost (expired)');
  expect(leaseOf().lease.checkLost()).toBe(false);
  // Others rely on the hold still.
  const { lease: one } = leaseOf({ isPassedOn: true, renew: false, life: 9_000 });
  one.lost('expired');
  expect(log.join()).toBe('unwatched,over,lost');
});

it('A release that finds the lock gone when it is repeated is warned of, and one that is confirmed then is not', async () => {
  release.mockRejectedValue(CUT);
  await leaseOf().lease.unlock();
  expect(warnings).toEqual([]);
  const { lease } = leaseOf();
  within.mockResolvedValueOnce({ outcome: 'stolen', isRepeated: true });
  await lease.unlock();
  const message = 'Lock "key" was not ours any more when its release was repeated';
  expect(warnings).toEqual([{ code: 'RELEASE_UNCERTAIN', message, key: 'key', cause: undefined }]);
});

it('What is kept of a hold that a lease with another ttl has joined is counted by the local clock alone', () => {
  const { hold, lease } = leaseOf({ ttl: 400, minHold: 374 });
  expect(hold.keep).toEqual({ left: 374, minHold: 374, ttl: hold.ttl });
  hold.passedOn(Object.assign(Object.create(lease), { ttl: 1_200 }), time.now);
  expect(hold.keep).toEqual({ left: 374, minHold: Number.MAX_SAFE_INTEGER, ttl: 1_200 });
});
