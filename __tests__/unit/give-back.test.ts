import { beforeEach, expect, it, jest } from '@jest/globals';
import { GivingBack, repeated } from '../../lib/core/give-back';
import { Hold } from '../../lib/core/hold';
import type { LockProtocol, Released } from '../../lib/core/protocol';
import { clock } from '../../lib/internal/clock';
import { States } from '../../lib/internal/states';
import type { Connection } from '../../lib/redis/connection';
import { ClientClosedError, CommandTimeoutError, NotSentError } from '../../lib/redis/failure';
import { FakeClock } from '../support/fake-clock';
import { IDLE_WATCHDOG } from '../support/fake-redis';
import { type LateReply, lateReply } from '../support/mock-redis';

const time = FakeClock.install();
const CUT = new Error('Socket closed unexpectedly');
const REFUSED = new Error('NOPERM no rights');
const LOADING = new Error('LOADING Redis is loading');
const CLOSED = new ClientClosedError('The client is closed');
const MOVES = new Error('ERR Attempted to access a non local key in a cluster node script: on @user_script:1.');
const UNSENT = new NotSentError(1);
const LIFE = 3_000;

let connection: {
  disruptions: number;
  connectionEpoch: number;
  isClientClosed: boolean;
  isClosed: boolean;
  lastError?: Error;
};
let giving: GivingBack;
let startedAt: number;
/** When a release was sent, in ms from the start, for which owner, and with which timeout. */
let sent: { at: number; owner: string; timeout: number }[];
const release = jest.fn<() => Promise<Released>>();

beforeEach(() => {
  connection = { disruptions: 0, connectionEpoch: 1, isClientClosed: false, isClosed: false };
  giving = new GivingBack(connection as unknown as Connection, 5_000);
  startedAt = time.now;
  sent = [];
  release.mockReset();
  release.mockResolvedValue('released');
});

const timesOf = () => sent.map(({ at }) => Math.round(at)).join(' ');

/** One whose attempt was answered. */
function holdOf({ hasQueue = false } = {}): Hold {
  const send = (owner: string, timeout: number) => {
    sent.push({ at: time.now - startedAt, owner, timeout });
    return release();
  };
  const protocol = { release: send, hasQueue, orphanLife: () => LIFE } as unknown as LockProtocol;
  const asked = { ttl: LIFE, waits: true, minHold: 0, permits: 1 };
  const hold = new Hold(
    'me:1',
    asked,
    { connection: connection as unknown as Connection, watchdog: IDLE_WATCHDOG },
    protocol,
  );
  hold.stamp(0);
  hold.attempts.answered();
  return hold;
}

it('A hold whose first release has failed with its connection is released by the next try', async () => {
  const first = Promise.reject(CUT);
  const given = await time.settled(giving.within(5_000, holdOf(), time.now, first));
  expect(given).toMatchObject({ after: 10, value: { outcome: 'released', isRepeated: true } });
  expect(timesOf()).toBe('10');
});

it.each<[what: string, errors: Error[], endsAt: number, times: string, isDone: boolean]>([
  ['with pauses that are doubled', [CUT, CUT, LOADING, CUT, CUT, CUT, CUT], 9_000, '0 10 30 70 150 310 560 810', true],
  ['not where it is final', [REFUSED], 9_000, '0', false],
  ['not after its end', [CUT, CUT, CUT], 31, '0 10 30', false],
  ['not at its end', [CUT, CUT, CUT], 30, '0 10', false],
])('What fails is repeated: %s', async (_, errors, endsAt, times, isDone) => {
  const asked: number[] = [];
  const ask = async () => {
    asked.push(time.now - startedAt);
    const error = errors.shift();
    if (error !== undefined) throw error;
    return 'done';
  };
  const outcome = repeated(ask, () => startedAt + endsAt).catch(() => 'failed');
  await time.advance(2_000);
  expect([asked.join(' '), await outcome]).toEqual([times, isDone ? 'done' : 'failed']);
});

it('What takes until its end to fail is not repeated', async () => {
  let asked = 0;
  const ask = async () => {
    asked++;
    await new Promise<void>((resolve) => clock.setTimeout(resolve, 300));
    throw CUT;
  };
  expect(await time.settled(repeated(ask, () => startedAt + 300))).toMatchObject({ after: 300, error: CUT });
  expect(asked).toBe(1);
});

const LOST = { outcome: 'expired', isRepeated: false };
const CONFIRMED = { outcome: 'released', isRepeated: false };

it.each<[what: string, answers: (Released | Error)[], result: object, timeouts: number[], isFollowed: boolean]>([
  ['that is confirmed', ['released'], CONFIRMED, [300], false],
  ['of a lease that was lost', ['stolen'], { outcome: 'stolen', isRepeated: false }, [300], false],
  ['that is repeated after silence', [CUT, 'expired'], { outcome: 'expired', isRepeated: true }, [300, 290], false],
  ['that is repeated after an answer', [LOADING, 'released'], CONFIRMED, [300, 290], false],
  ['of a lease that was lost before an answer', [LOADING, 'expired'], LOST, [300, 290], false],
  ['that stopped half-way, as its slot moves', [MOVES, 'expired'], { ...LOST, isRepeated: true }, [300, 290], false],
  ['that was not sent in time, of a lease that was lost', [UNSENT, 'expired'], LOST, [300, 290], false],
  [
    'that is refused',
    [REFUSED],
    { outcome: 'failed', cause: REFUSED, reason: 'Redis refused it: NOPERM no rights' },
    [300],
    true,
  ],
  [
    'over a client that is closed',
    [CLOSED],
    { outcome: 'failed', cause: CLOSED, reason: 'the client failed: The client is closed' },
    [300],
    true,
  ],
  [
    'that is not answered in time',
    [CUT, CUT, CUT, CUT, CUT],
    { outcome: 'failed', cause: CUT, reason: 'tried for 150 ms: the client failed: Socket closed unexpectedly' },
    [300, 290, 270, 230, 150],
    true,
  ],
])('A release %s has its result; what may be left is followed', async (_, answers, result, timeouts, isFollowed) => {
  for (const answer of answers) {
    if (typeof answer === 'string') release.mockResolvedValueOnce(answer);
    else release.mockRejectedValueOnce(answer);
  }
  const hold = holdOf();
  hold.giveUp = jest.fn(() => false);
  const given = giving.within(300, hold);
  await time.advance(300);
  expect([await given, sent.map(({ timeout }) => timeout)]).toEqual([result, timeouts]);
  expect(hold.giveUp).toHaveBeenCalledTimes(isFollowed ? 1 : 0);
});

it('A release whose first try was sent before needs no other one, and is uncertain where its connection was lost', async () => {
  const hold = holdOf();
  const before = connection.disruptions;
  expect(await giving.within(300, hold, startedAt, Promise.resolve('released'), before)).toEqual(CONFIRMED);
  connection.disruptions++;
  expect(await giving.within(300, hold, startedAt, Promise.resolve('stolen'), before)).toEqual({
    outcome: 'stolen',
    isRepeated: true,
  });
  expect([sent, hold.state]).toEqual([[], 'requested']);
  hold.attempts.lostTrack = true;
  await giving.within(300, hold, startedAt, Promise.resolve('released'));
  expect(hold.state).toBe('given up');
  connection.lastError = CUT;
  const silent = new CommandTimeoutError(300, Promise.resolve());
  const late = giving.within(300, holdOf(), startedAt - 250, Promise.reject(silent));
  release.mockRejectedValue(silent);
  await time.advance(100);
  expect(await late).toMatchObject({
    cause: CUT,
    reason: expect.stringMatching(/^tried for 280 ms: the client failed: Socket/),
  });
});

interface Scene {
  readonly hold: Hold;
  /** An attempt without an answer. */
  readonly attempt: LateReply;
}
/** What is done, by the ms after which. */
type Steps = Record<number, (scene: Scene) => void>;

const inDoubt = ({ hold, attempt }: Scene) => hold.attempts.doubt(attempt.promise);
const reconnect = () => void connection.connectionEpoch++;
const notReached = ({ hold }: Scene) => {
  hold.attempts.reachedRedis = false;
};
const answer = ({ attempt }: Scene) => attempt.resolve(1);
const cut = ({ attempt }: Scene) => attempt.reject(CUT);
const enqueue = ({ hold }: Scene) => {
  hold.protocol = { ...hold.protocol, hasQueue: true };
};
const loseTrack = ({ hold }: Scene) => {
  hold.attempts.lostTrack = true;
  connection.connectionEpoch++;
};
/** The next release is answered when the test says so. */
let releasing: LateReply;
const slow = () => {
  releasing = lateReply();
  release.mockReturnValueOnce(releasing.promise as Promise<Released>);
};
const answerRelease = () => releasing.resolve('released');
const fails = (error: Error) => () => void release.mockRejectedValue(error);
const succeeds = () => void release.mockResolvedValue('released');
const closeClient = () => {
  connection.isClientClosed = true;
  release.mockRejectedValue(CLOSED);
};
const openClient = () => {
  connection.isClientClosed = false;
  succeeds();
};

const IN_DOUBT = '50 1050 4050 20000';
const ENQUEUED = '0 50 150 350 750 1550 2550 3550 4550';

it.each<[what: string, before: ((scene: Scene) => void)[], steps: Steps, times: string]>([
  ['is removed once, where every attempt was answered', [], {}, '0'],
  ['is not removed where nothing came to Redis', [notReached], {}, ''],
  ['is removed once when the attempt has ended soon', [inDoubt], { 20: answer }, '20'],
  ['is removed some times while an attempt is in doubt, and once then', [inDoubt], { 20000: answer }, IN_DOUBT],
  [
    'is removed some times, where nothing will tell',
    [({ hold }) => (hold.attempts.lostTrack = true)],
    { 1: reconnect },
    '0',
  ],
  ['is removed some times over another connection, where nothing will tell', [loseTrack], {}, '0 1000 4000'],
  ['is removed some times after its connection was lost', [inDoubt, reconnect], { 200: cut }, '50 200 1200 4200'],
  ['is removed until its key has ended, where that fails', [fails(CUT)], {}, '0 50 150 350 750 1550 2550 3550'],
  ['is removed until that succeeds', [fails(REFUSED)], { 100: succeeds }, '0 50 150'],
  [
    'is removed until its key has ended that an attempt may have written long after, where that fails',
    [inDoubt, slow],
    { 20000: answer, 20005: fails(CUT), 20010: () => releasing.reject(CUT), 20200: succeeds },
    '50 20010 20060 20160 20360',
  ],
  ['is not removed once more when its key has ended during a removal', [loseTrack, slow], { 3000: answerRelease }, '0'],
  ['is removed for as long as it may have a position', [fails(CUT), enqueue], { 4000: succeeds }, ENQUEUED],
  ['is removed for that long too where Redis refuses it', [fails(REFUSED), enqueue], { 4000: succeeds }, ENQUEUED],
  [
    'is removed some times after that, where its attempt may be executed later',
    [loseTrack, fails(CUT), enqueue],
    { 4000: succeeds },
    `${ENQUEUED} 5550 8550`,
  ],
  [
    'is removed after that too when the client was closed just then, and is connected again',
    [fails(CUT), enqueue],
    { 4000: closeClient, 5000: openClient },
    `${ENQUEUED} 5550`,
  ],
  [
    'is not removed when the client is closed after that for as long as it may have a position',
    [fails(CUT), enqueue],
    { 4000: closeClient, 8000: openClient },
    ENQUEUED,
  ],
  ['is removed too where it is not known if anything came to Redis', [inDoubt, notReached], { 200: answer }, '50 200'],
  ['is removed again when its attempt ended during one', [inDoubt, slow], { 60: answer, 70: answerRelease }, '50 70'],
  [
    'is removed as often as ever after its connection was lost, however long it was in doubt before',
    [inDoubt],
    { 9000: reconnect, 9001: cut },
    '50 1050 4050 9001 10001 13001',
  ],
  [
    'is removed again when its attempt ended during the last removal',
    [inDoubt],
    { 4000: slow, 4060: answer, 4070: answerRelease },
    '50 1050 4050 4070',
  ],
  ['is not removed over a client that is connected too late', [closeClient, enqueue], { 4000: openClient }, '0'],
  ['is removed when a closed client is connected again', [closeClient], { 1000: openClient }, '0 1550'],
  ['is not removed when a closed client is connected too late', [closeClient], { 4000: openClient }, '0'],
  ['is not removed when the registry is closed', [fails(CUT)], { 100: () => (connection.isClosed = true) }, '0 50'],
])('What is left %s', async (_, before, steps, times) => {
  const scene = { hold: holdOf(), attempt: lateReply() };
  for (const act of before) act(scene);
  giving.follow(scene.hold);
  giving.follow(scene.hold);
  for (const [at, act] of Object.entries(steps)) {
    await time.advance(startedAt + Number(at) - time.now);
    act(scene);
  }
  expect(time.keepingAlive).toBe(0);
  await time.advance(60_000);
  expect([timesOf(), time.pending, scene.hold.state]).toEqual([times, 0, 'given up']);
  expect(sent.every(({ timeout }) => timeout === 5_000)).toBe(true);
});

it('What is left has a state, whose changes are told', async () => {
  const changes: string[] = [];
  States.onChange = (kind, _, to) => kind === 'follow-up' && changes.push(to);
  const hold = holdOf();
  hold.attempts.doubt(Promise.resolve(1));
  giving.follow(hold);
  await time.advance(0);
  States.onChange = undefined;
  expect(changes).toEqual(['pausing', 'removing', 'over']);
});

it('What is left of two owner values is removed one after the other, each when the one before was answered', async () => {
  const first = lateReply();
  release.mockReturnValueOnce(Promise.reject(new CommandTimeoutError(300, first.promise)));
  const hold = Object.assign(holdOf(), { owner: 'me:2' });
  giving.follow(hold);
  await time.advance(5_000);
  expect(sent.map(({ owner }) => owner)).toEqual(['me:1']);
  first.resolve(1);
  await time.advance(0);
  expect(sent.map(({ owner }) => owner)).toEqual(['me:1', 'me:2']);
});

it.each<[what: string, before: ((scene: Scene) => void)[], steps: Steps, endsAt: number, times: string]>([
  ['at once where nothing is followed', [({ hold }) => hold.giveUp()], {}, 0, ''],
  ['when that is removed', [], {}, 0, '0'],
  ['after a removal that was sent when every attempt had ended', [inDoubt], { 30: answer }, 30, '0 30'],
  ['at its timeout, while an attempt is in doubt', [inDoubt], {}, 500, '0 1000 4000'],
  ['at its timeout, where that fails', [fails(CUT)], {}, 500, '0 50 150 350 750 1550 2550 3550'],
  ['when that is removed for now', [loseTrack], {}, 0, '0 0 1000 4000'],
  ['when the attempt ended during a removal', [inDoubt, slow], { 50: answer, 100: answerRelease }, 100, '0 100'],
  ['when the client is closed', [closeClient], {}, 0, '0'],
  ['when Redis refuses it', [fails(REFUSED)], {}, 0, '0 50 150 350 750 1550 2550 3550'],
  [
    'when Redis refuses a removal that was in flight',
    [slow, ({ hold }) => giving.follow(hold), fails(REFUSED)],
    { 40: () => releasing.reject(REFUSED) },
    40,
    '0 90 190 390 790 1590 2590 3590',
  ],
])('removeNow() resolves %s', async (_, before, steps, endsAt, times) => {
  for (const isOfOne of [true, false]) {
    startedAt = time.now;
    [sent, connection.isClientClosed] = [[], false];
    succeeds();
    const scene = { hold: holdOf(), attempt: lateReply() };
    for (const act of before) act(scene);
    giving.follow(scene.hold);
    let endedAt: number | undefined;
    void Promise.resolve(giving.removeNow(500, isOfOne ? scene.hold : undefined)).then(
      () => (endedAt = time.now - startedAt),
    );
    for (const [at, act] of Object.entries(steps)) {
      await time.advance(startedAt + Number(at) - time.now);
      act(scene);
    }
    await time.advance(10_000);
    expect([endedAt, timesOf()]).toEqual([endsAt, times]);
    answer(scene);
    await time.advance(60_000);
  }
});

it('removeNow() asks for no more than it is to, leaves no timer where that is nothing, and keeps no process alive', async () => {
  const [one, other] = [holdOf(), Object.assign(holdOf(), { ticket: 'me:2', owner: 'me:2' })];
  expect([giving.removeNow(500), giving.removeNow(500, one)]).toEqual([undefined, undefined]);
  expect(time.pending).toBe(0);
  for (const hold of [one, other]) {
    hold.attempts.doubt(new Promise(() => {}));
    giving.follow(hold);
  }
  void giving.removeNow(500, one);
  await time.advance(40);
  expect([sent.map(({ owner }) => owner), time.keepingAlive]).toEqual([['me:1'], 0]);
});
