import { expect, it, jest } from '@jest/globals';
import type { SharedKind } from '../../lib/api/lock-types';
import type { Hold } from '../../lib/core/hold';
import type { LeaseOfHold } from '../../lib/core/of-hold';
import type { LockProtocol, Refusal } from '../../lib/core/protocol';
import type { LockRequest } from '../../lib/core/request';
import { Wait } from '../../lib/core/wait';
import { sharedBackend } from '../../lib/kinds/shared/kind';
import { Permits } from '../../lib/kinds/shared/permits';
import { ENTER, memberHeld } from '../../lib/kinds/shared/scripts';
import { LockNames } from '../../lib/redis/names';
import { FakeClock } from '../support/fake-clock';
import { holdOf as fakeHold, fakeParts } from '../support/fake-redis';
import { lateReply } from '../support/mock-redis';

const time = FakeClock.install();

const LOCK = 'r:key';
const WAITERS = '{r:key}:waiters';
const FENCE = '{r:key}:fence';
const CHANNEL = 'r-channel:r:key';
const ARRIVAL = '1700000000000000';

let fake: ReturnType<typeof fakeParts>;

interface Options {
  readonly idleBetweenTries?: number;
  readonly fencing?: boolean;
  readonly isReplicated?: boolean;
}

/** The backend on a Redis that the test answers for. */
function backendOf({ isReplicated = false, ...settings }: Options = {}) {
  fake = fakeParts(settings);
  fake.redis.isReplicated = isReplicated;
  return sharedBackend(fake.parts);
}

/** What was sent. */
const sent = () =>
  fake.redis.sent.map(({ script, keys, args, timeout }) => ({ script: script.name, keys, args, timeout }));
const message = (text: string) => fake.subscriber.last.onMessage(text);
/** Answers what was sent last. */
const reply = (value: unknown) => {
  const { reply: answer, fail } = fake.redis.last;
  Promise.resolve(value).then(answer, fail);
};

type Protocol = LockProtocol & { permits?: Permits };
const protocolOf = (kind: SharedKind, options?: Options): Protocol =>
  backendOf(options).open(kind, new LockNames('r', 'key'));

/** A hold whose attempt is sent now. */
const holdOf = (protocol: Protocol, owner = 'me:1', asked: Parameters<typeof fakeHold>[2] = {}): Hold =>
  fakeHold(protocol, owner, { ttl: 20_000, since: time.now, ...asked });

const refusal = (leaseEnd: unknown = '777', arrival: unknown = ARRIVAL) => {
  return [0, 0, 0, 500, 'you:1', arrival, 2, leaseEnd];
};

const ask = async (protocol: Protocol, hold: Hold, answer: unknown) => {
  const asked = protocol.attempt(hold, 300);
  reply(answer);
  return asked;
};

/** The grant of a hold on which a lease relies. */
async function enter(protocol: Protocol, answer: unknown, hold = holdOf(protocol)): Promise<Hold> {
  const grant = await ask(protocol, hold, answer);
  if (!grant.granted) throw new Error('It was refused');
  hold.granted(grant, {} as LeaseOfHold, time.now);
  return hold;
}

/** A caller that has been refused, and waits; `answer` is what its wait ended with. */
async function waitFor(protocol: Protocol, hold: Hold, leaseEnd = '777') {
  const wait = new Wait('key', 10_000, undefined);
  // It subscribes by its first wait, and asks again then.
  const opening = protocol.wait(hold, (await ask(protocol, hold, refusal(leaseEnd))) as Refusal, wait);
  fake.subscriber.last.opened();
  await opening;
  hold.stamp(hold.since);
  const refused = (await ask(protocol, hold, refusal(leaseEnd))) as Refusal;
  const waiting: { answer?: unknown } = {};
  void protocol.wait(hold, refused, wait).then((answer) => (waiting.answer = answer));
  await time.advance(0);
  expect(waiting.answer).toBeUndefined();
  return waiting;
}

it.each<[string, SharedKind, Options, object, keys: string[], keptFor: number, letInFor: number]>([
  ['a reader', 'read', {}, {}, [LOCK, WAITERS], 3_000, 100],
  ['a reader with tokens for writers', 'read', { fencing: true }, {}, [LOCK, WAITERS], 3_000, 100],
  ['a writer', 'write', {}, {}, [LOCK, WAITERS], 3_000, 100],
  ['a writer with a token', 'write', { fencing: true }, {}, [LOCK, WAITERS, FENCE], 3_000, 0],
  ['a short lease', 'write', {}, { ttl: 151 }, [LOCK, WAITERS], 3_000, 75],
  ['minReplicas', 'read', { isReplicated: true }, {}, [LOCK, WAITERS], 3_000, 0],
  ['a minHold', 'read', {}, { minHold: 1 }, [LOCK, WAITERS], 3_000, 0],
  ['seldom polls', 'read', { idleBetweenTries: 150.01 }, {}, [LOCK, WAITERS], 4_501, 100],
  ['often polls', 'read', { idleBetweenTries: 10 }, {}, [LOCK, WAITERS], 3_000, 100],
  ['a semaphore', 'semaphore', {}, {}, [LOCK, WAITERS], 3_000, 0],
])('An attempt says who asks, and for how long its ticket is kept: %s', async (...row) => {
  const [, kind, options, asked, keys, keptFor, letInFor] = row;
  const protocol = protocolOf(kind, options);
  if (kind === 'semaphore') protocol.permits = new Permits();
  const hold = holdOf(protocol, 'me:1', asked);
  hold.stamp(time.now - 2);
  await ask(protocol, hold, [0, 0, 1]);
  const given = kind === 'semaphore' ? ['0', '1000', '0'] : ['0', '0', ''];
  const queueing = ['1', '', '2000', String(keptFor), String(letInFor), 'me:1', ''];
  const args = [kind, 'me:1', CHANNEL, String(hold.ttl), ...given, ...queueing];
  expect(sent()).toEqual([{ script: 'enter (shared)', keys, args, timeout: 300 }]);
});

it.each([
  ['just now', 10, 3, -1, ['3', '10', '0']],
  ['some time ago', 10.7, 3, -1, ['3', '10', '0']],
  ['and told', 10, 3, 0, ['3', '10', '1000']],
  ['by another process', 10, 5, 0, ['3', '10', '']],
  ['after the attempt was made', -5, 3, -1, ['3', '0', '0']],
])('An attempt says how many permits there are: given %s', async (_, ago, own, told, said) => {
  const protocol = protocolOf('semaphore');
  const permits = new Permits();
  permits.give(own);
  permits.givenAt = time.now - ago;
  // What was asked before the number was given says nothing of it.
  permits.reported(permits.givenAt - 1, 7);
  permits.reported(permits.givenAt + told, 3);
  protocol.permits = permits;
  await ask(protocol, holdOf(protocol), [0, 0, 2]);
  expect(sent()[0]?.args.slice(4, 7)).toEqual(said);
  expect(permits).toMatchObject({ known: 2, count: 2, isOthers: true });
  await ask(protocol, holdOf(protocol), [0, 0, 0, 500, '', ARRIVAL, 7, '777']);
  expect(permits).toMatchObject({ known: 7, changedAt: time.now });
});

it('A number of permits is as old as it is by the time of a suspended machine too', async () => {
  const protocol = protocolOf('semaphore');
  const permits = new Permits();
  protocol.permits = permits;
  permits.give(3);
  for (const step of [60_000, -90_000]) {
    time.now += 10;
    time.wallNow += 10 + step;
    const hold = holdOf(protocol);
    hold.stamp(hold.since);
    await ask(protocol, hold, [0, 0, 3]);
  }
  expect(sent().map(({ args }) => args[5])).toEqual(['60010', '20']);
});

it.each<[SharedKind, Options, waits: boolean, reply: unknown, answer: object | 'refused']>([
  ['read', {}, true, [0, 0, 1], { granted: true, owner: 'me:1', fencingToken: undefined, drift: 0 }],
  ['write', { fencing: true }, true, [0, 0, '1795428581000000'], { granted: true, fencingToken: 1795428581000000 }],
  ['read', { fencing: true }, true, [0, 0, 2], { granted: true, fencingToken: undefined }],
  ['read', {}, true, refusal(), { granted: false, remaining: 500, owner: 'you:1', roundTrip: 7 }],
  ['read', {}, false, refusal(null, null), { granted: false, hintsBefore: undefined }],
  ['read', {}, true, refusal(null), 'refused'],
  ['read', {}, true, refusal('777', null), 'refused'],
  ['read', {}, true, [0, 0, 0], 'refused'],
  ['read', {}, true, [0, 0], 'refused'],
  ['read', {}, true, [...refusal(), 0], 'refused'],
  ['read', {}, true, [3, 0, 1], 'refused'],
])('The answer to an attempt is read: %s, %j, waits %j, %j', async (kind, options, waits, said, expected) => {
  const protocol = protocolOf(kind, options);
  const late = lateReply();
  const answer = ask(protocol, holdOf(protocol, 'me:1', { waits }), late.promise);
  answer.catch(() => undefined);
  await time.advance(7);
  late.resolve(said);
  if (expected === 'refused') await expect(answer).rejects.toThrow(/the script "enter \(shared\)"/);
  else expect(await answer).toMatchObject(expected);
});

it('The end of a grant is counted from when its attempt was sent', async () => {
  const protocol = protocolOf('read');
  const grant = await ask(protocol, holdOf(protocol), [0, 0, 1]);
  expect(grant).toMatchObject({ until: 1_000 + 20_000 - 21 });
});

it('A caller that asks again says when it came: as Redis said, for this call of this caller, with any ticket of its own', async () => {
  const protocol = protocolOf('write');
  const hold = holdOf(protocol);
  const arrival = async (one: Hold, answer: unknown = refusal()) => {
    await ask(protocol, one, answer).catch(() => undefined);
    return fake.redis.last.args[8];
  };
  expect([await arrival(hold), await arrival(hold)]).toEqual(['', ARRIVAL]);
  hold.renameTo('me:2');
  // No answer says that the ticket has the new name.
  expect(await arrival(hold, Promise.reject(new Error('cut')))).toBe(ARRIVAL);
  expect([hold.ticket, await arrival(hold), hold.ticket]).toEqual(['me:1', ARRIVAL, 'me:2']);
  expect(fake.redis.last.args[12]).toBe('me:1');
  // One that does not wait has no ticket, and leaves those of others alone.
  expect([await arrival(holdOf(protocol, 'me:3', { waits: false })), await arrival(hold)]).toEqual(['', ARRIVAL]);
  expect(sent().map(({ args }) => args[7])).toEqual(['1', '1', '1', '1', '0', '1']);
  hold.stamp(hold.since + 1);
  expect(await arrival(hold)).toBe('');
  const others = ['me:4', 'me:5'].map((owner) => holdOf(protocol, owner));
  for (const one of [...others, hold]) expect(await arrival(one)).toBe('');
});

it('A late answer to the caller before says nothing of when the next one came', async () => {
  const protocol = protocolOf('write');
  for (const since of [1, 0]) {
    const late = lateReply();
    const before = ask(protocol, holdOf(protocol), late.promise);
    const next = holdOf(protocol, since === 1 ? 'me:1' : 'me:2');
    next.stamp(next.since + since);
    await ask(protocol, next, refusal('777', '5'));
    late.resolve(refusal());
    await before;
    await ask(protocol, next, refusal('777', '5'));
    expect(fake.redis.last.args[8]).toBe('5');
  }
});

it.each<[SharedKind, text: string, after: number, granted: boolean | undefined]>([
  ['read', 'read:me:1=777', 50, true],
  ['read', 'write:you:1 read:me:1=777 wanted', 0, true],
  ['read', 'read:me:1=777', 51, false],
  ['write', 'write:me:1=777', 100, true],
  ['write', 'write:me:1=777', 101, false],
  ['write', 'write:me:1', 0, false],
  ['write', 'write:me:1=778', 0, false],
  ['write', 'write:me:11=777', 0, undefined],
  ['write', 'read:me:1=777', 0, undefined],
  ['write', 'xwrite:me:1=777', 0, undefined],
  ['write', 'wanted', 0, undefined],
])('A caller that waits for %s is told "%s" after %d ms: it has the lock, %j', async (kind, text, after, granted) => {
  const protocol = protocolOf(kind);
  const hold = holdOf(protocol);
  const waiting = await waitFor(protocol, hold);
  await time.advance(after);
  message(text);
  await time.advance(0);
  const { sentAt: at } = hold;
  const grant = { granted: true, owner: 'me:1', until: at + 20_000 - 21, fencingToken: undefined, drift: 0 };
  expect(waiting.answer).toEqual(granted === undefined ? undefined : granted ? grant : { granted: false });
  expect([fake.subscriber.kinds, fake.subscriber.last.channels]).toEqual([['false,true'], [CHANNEL]]);
});

it('A caller that waits is not let in by a message that came before the answer to its last attempt', async () => {
  const protocol = protocolOf('write');
  const hold = holdOf(protocol);
  await waitFor(protocol, hold);
  const late = lateReply();
  const asked = ask(protocol, hold, late.promise);
  message('write:me:1=777');
  const waiting = protocol.wait(hold, { granted: false, remaining: 9, roundTrip: 0 }, new Wait('key', 99, undefined));
  expect(await waiting).toEqual({ granted: false });
  late.resolve(refusal());
  await asked;
});

it('A caller that waits is let in though another one has asked that does not wait', async () => {
  const protocol = protocolOf('write');
  const waiting = await waitFor(protocol, holdOf(protocol));
  await ask(protocol, holdOf(protocol, 'me:2', { waits: false }), refusal('888'));
  message('write:me:1=777');
  await time.advance(0);
  expect(waiting.answer).toMatchObject({ granted: true });
});

it('A message that comes before the answer to an attempt is news to who reads the answer', async () => {
  const protocol = protocolOf('write');
  const hold = holdOf(protocol);
  await waitFor(protocol, hold);
  const late = lateReply();
  const answer = ask(protocol, hold, late.promise);
  message('write:me:1');
  late.resolve(refusal());
  const { hintsBefore = 0 } = (await answer) as Refusal;
  expect(await ask(protocol, hold, refusal())).toMatchObject({ hintsBefore: hintsBefore + 1 });
});

it('A message for the ticket of the caller before lets nobody in', async () => {
  const protocol = protocolOf('write');
  await waitFor(protocol, holdOf(protocol, 'me:1'));
  message('write:me:1=777');
  const next = holdOf(protocol, 'me:2');
  const refused = (await ask(protocol, next, refusal())) as Refusal;
  const waiting = protocol.wait(next, { ...refused, hintsBefore: 0 }, new Wait('key', 99, undefined));
  expect(await waiting).toEqual({ granted: false });
});

it.each([
  ['no message says it', [], '0'],
  ['a message says it a moment later', ['write:me:1'], '100'],
])(
  'A process that had its turn, and heard nothing of it, is let in by nobody until a message comes: %s',
  async (_, messages, letInFor) => {
    const protocol = protocolOf('write');
    const hold = holdOf(protocol);
    await waitFor(protocol, hold);
    await enter(protocol, [0, 0, 1], hold);
    for (const text of messages) message(text);
    await ask(protocol, holdOf(protocol, 'me:2'), refusal());
    expect([sent().at(-1)?.args[11], fake.subscriber.proof.doubts]).toEqual([letInFor, 1]);
  },
);

it('A process that gets a lock which others have left free still counts on messages', async () => {
  const protocol = protocolOf('write');
  const waiting = holdOf(protocol);
  await waitFor(protocol, waiting);
  message('write:me:1');
  await enter(protocol, [0, 0, 1], waiting);
  await enter(protocol, [0, 0, 1], holdOf(protocol, 'me:2'));
  await ask(protocol, holdOf(protocol, 'me:3'), refusal());
  expect(sent().at(-1)?.args[11]).toBe('100');
});

it('A caller that waits for a permit asks at once when there are more', async () => {
  const protocol = protocolOf('semaphore');
  protocol.permits = new Permits();
  const waiting = await waitFor(protocol, holdOf(protocol));
  time.now++;
  protocol.permits.give(9);
  await time.advance(0);
  expect(waiting.answer).toEqual({ granted: false });
});

it.each<[string, SharedKind, reply: number, how: { text?: string; during?: string; after?: number }, boolean]>([
  ['to the next reader', 'read', 1, {}, true],
  ['to a reader after a moment', 'read', 1, { after: 50 }, true],
  ['not later', 'read', 1, { after: 51 }, false],
  ['not while a writer waits', 'read', 2, {}, false],
  ['not once a writer waits', 'read', 1, { text: 'wanted' }, false],
  ['not when a writer came meanwhile', 'read', 1, { during: 'write:you:1 wanted' }, false],
  ['to a reader whatever others are told', 'read', 1, { text: 'read:you:1=5' }, true],
  ['never to a writer', 'write', 1, {}, false],
  ['to the next caller of a semaphore', 'semaphore', 2, { after: 50 }, true],
  ['not later for a semaphore', 'semaphore', 2, { after: 51 }, false],
])('A hold goes to the next caller without a command: %s', async (_, kind, known, how, may) => {
  const protocol = protocolOf(kind);
  const permits = Object.assign(new Permits(), { count: 2, known: 2 });
  if (kind === 'semaphore') protocol.permits = permits;
  await waitFor(protocol, holdOf(protocol));
  const [late, hold] = [lateReply(), holdOf(protocol, 'me:2')];
  const entered = enter(protocol, late.promise, hold);
  if (how.during !== undefined) message(how.during);
  late.resolve([0, 0, known]);
  await entered;
  if (how.text !== undefined) message(how.text);
  const now = time.now + (how.after ?? 0);
  expect(protocol.mayPassOn(now, hold)).toBe(may);
  const other = Object.assign(holdOf(protocol, 'me:3'), { acquiredAt: now });
  if (kind !== 'semaphore') expect(protocol.mayPassOn(now, other)).toBe(false);
});

it.each<[string, at: number, change: (hold: Hold) => unknown, asked: { permits?: number }, ending: string, ms: number]>(
  [
    ['its slice, and a section', 0, () => undefined, {}, '', 100],
    ['what is left of that', 49.5, () => undefined, {}, '', 51],
    ['none after the slice', 50.5, () => undefined, {}, '', 0],
    ['none of one that has ended', 0, (hold) => hold.unlocked(), {}, '', 0],
    ['none of one that ends by this', 0, () => undefined, {}, 'me:1', 0],
    ['none before its minHold ends', 0, (hold) => hold.holdAtLeast(5_000, true), {}, '', 0],
    ['none for one that takes more', 0, () => undefined, { permits: 2 }, '', 0],
  ],
)('An attempt says for how long its process passes a permit on: %s', async (_, at, change, asked, ending, ms) => {
  const protocol = protocolOf('semaphore');
  protocol.permits = Object.assign(new Permits(), { count: 2, known: 2 });
  change(await enter(protocol, [0, 0, 2]));
  time.now += at;
  const next = holdOf(protocol, 'me:2', asked);
  void (ending === '' ? protocol.attempt(next, 300) : protocol.exchange?.(ending, next, 300, undefined));
  expect(sent()[1]?.args.slice(-3)).toEqual([String(ms), 'me:2', ending]);
});

it.each<[string, SharedKind, reply: number, text: string, isHeld: boolean, pauses: boolean]>([
  ['a reader beside readers that a writer waits for', 'read', 2, '', true, true],
  ['a reader once a writer waits', 'read', 1, 'wanted', true, true],
  ['no reader beside others', 'read', 1, '', true, false],
  ['no reader when the others have left', 'read', 2, '', false, false],
  ['no writer', 'write', 2, '', true, false],
])('What stands back for a moment: %s', async (_, kind, known, text, isHeld, pauses) => {
  const protocol = protocolOf(kind);
  const wait = new Wait('key', 10_000, undefined);
  expect(protocol.standBack(wait)).toBeUndefined();
  expect(protocol.mayPassOn(time.now, holdOf(protocol))).toBe(false);
  await waitFor(protocol, holdOf(protocol));
  const hold = await enter(protocol, [0, 0, known]);
  message(text);
  if (!isHeld) hold.unlocked();
  time.delays = [];
  void protocol.standBack(wait);
  expect(time.delays).toEqual(pauses ? [50] : []);
});

it('A reader that was let in lets others in, unless the message said that a writer waits', async () => {
  for (const [i, text] of ['', ' wanted'].entries()) {
    const protocol = protocolOf('read');
    const hold = holdOf(protocol, `me:${i}`);
    const waiting = await waitFor(protocol, hold);
    message('wanted');
    message(`read:me:${i}=777${text}`);
    await time.advance(0);
    expect(waiting.answer).toMatchObject({ granted: true });
    hold.acquiredAt = time.now;
    expect(protocol.mayPassOn(time.now, hold)).toBe(text === '');
  }
});

it('A permit goes to the next caller unless the number of permits is another one since', async () => {
  const protocol = protocolOf('semaphore');
  const permits = Object.assign(new Permits(), { count: 2 });
  protocol.permits = permits;
  const hold = await enter(protocol, [0, 0, 2]);
  const may = () => protocol.mayPassOn(time.now, hold);
  expect(may()).toBe(true);
  permits.changedAt = hold.acquiredAt;
  expect(may()).toBe(true);
  permits.changedAt++;
  expect(may()).toBe(false);
  permits.changedAt = 0;
  time.now++;
  permits.give(3);
  expect(may()).toBe(false);
});

it.each([
  [{ ttl: 500, renew: true }, 500],
  [{ ttl: 500, renew: false }, 600],
])('A lease that may begin later than its attempt asks for that much more: %j, %d', (request, ttl) => {
  expect(protocolOf('read').ttlFor?.(request as LockRequest)).toBe(ttl);
});

it.each([
  [{ ttl: 500 }, 3_000],
  [{ ttl: 5_000 }, 5_000],
  [{ ttl: 500, waits: false }, 500],
])('What a caller left behind that gave up is over after its key and its ticket: %j, %d', (asked, life) => {
  const protocol = protocolOf('read');
  expect(protocol.orphanLife(holdOf(protocol, 'me:1', asked))).toBe(life);
});

const KEEP = { left: 1, minHold: 2, ttl: 3 };

it.each([
  [[1, 0], undefined, 'released', 0],
  [[0, 0], undefined, 'expired', 0],
  [[-1, -1], undefined, 'stolen', 1],
  [[1, -1], KEEP, 'released', 1],
])('A release is answered with %j, and kept %j: %s', async (said, keep, found, warnings) => {
  const protocol = protocolOf('write', { fencing: true });
  const kept = keep === undefined ? [] : ['1', '2', '3'];
  const one = { script: 'release (shared)', keys: [LOCK, WAITERS], args: ['write', 'me:1', CHANNEL, ...kept] };
  const released = protocol.release('me:1', 70, keep);
  reply(said);
  expect([await released, fake.warnings()]).toEqual([found, warnings]);
  expect(sent()).toEqual([{ ...one, timeout: 70 }]);
});

it.each([[[]], [[1]], [[1, 0, 1, 1, 1, 1, 1, 1, 1]], [1], [['x', 0]], [[1, 'x']]])(
  'A release is not answered with %j',
  async (said) => {
    const released = protocolOf('read').release('me:1', 70);
    reply(said);
    await expect(released).rejects.toThrow(/the script "release \(shared\)"/);
  },
);

it('A lease that ends, and the next caller, need one script', async () => {
  const protocol = protocolOf('semaphore');
  const exchanged = protocol.exchange?.('me:1', holdOf(protocol, 'me:2'), 90, undefined);
  reply([1, -1, 0, 500, '', ARRIVAL, 2, '777']);
  expect(await exchanged).toMatchObject({ found: 'released', answer: { granted: false, owner: undefined } });
  expect(fake.warnings()).toBe(1);
  expect(sent()).toMatchObject([{ script: 'enter (shared)', timeout: 90 }]);
  expect(fake.redis.last.args.slice(-2)).toEqual(['me:2', 'me:1']);
});

it('A renewal names the kind, the owner and its ttl', () => {
  const states: unknown[] = [];
  protocolOf('read').renew('me:1', 900, 70, (ownership) => states.push(ownership));
  fake.redis.last.reply(1);
  expect(sent()).toEqual([{ script: 'renew (shared)', keys: [LOCK], args: ['read', 'me:1', '900'], timeout: 70 }]);
  expect(states).toEqual([{ state: 'held', until: 1_000 + 900 - 1.9 }]);
});

it.each([
  [{}, [LOCK, WAITERS]],
  [{ fencing: true }, [LOCK, WAITERS, FENCE]],
])('What is inspected, and released by force: %j', async (options, keys) => {
  const held = ['me:1', 9, '', 0, 1, 'read:me:1'];
  const { inspector } = backendOf(options);
  const names = new LockNames('r', 'key');
  const inspected = inspector.inspect(names, 50);
  reply(held);
  expect(await inspected).toMatchObject({ owner: 'me:1', holders: 1 });
  const forced = inspector.forceUnlock(names, 50, 'by:0');
  reply(held);
  await time.advance(0);
  reply([1, 0]);
  await forced;
  const mark = expect.stringMatching(/^\{r:key\}:evals:forced:/);
  expect(sent().map((one) => one.keys)).toEqual([keys, keys, [...keys, mark]]);
  expect(fake.redis.last.args).toEqual(['read:me:1', '60000', '0', CHANNEL]);
});

it('A lock whose queue would be in another hash slot is not opened', () => {
  expect(() => backendOf().open('read', new LockNames('r', '{}x'))).toThrow(RangeError);
});

it('The scripts say of a reply whether the lock was granted', () => {
  expect([[0, 0, 1], refusal(), 1, 'abc'].map((reply) => ENTER.grants?.(reply))).toEqual([true, false, false, false]);
  expect(memberHeld('read')()).toContain("'ZREM', lock, member");
});

it('The number of permits that was given last is news until the lock has it, and a late answer changes neither', async () => {
  const wake = jest.fn();
  const permits = Object.assign(new Permits(), { waiting: { wake } });
  const give = async (count: number) => {
    await time.advance(10);
    permits.give(count);
    return permits.givenAt;
  };
  const first = await give(2);
  permits.reported(first, 2);
  expect([permits.isNews, permits.changedAt]).toEqual([false, Number.NEGATIVE_INFINITY]);
  await give(2);
  expect([permits.isNews, wake.mock.calls.length]).toEqual([false, 1]);
  const last = await give(3);
  permits.reported(first, 4);
  expect([permits.isNews, permits.count, permits.changedAt, wake.mock.calls.length]).toEqual([true, 3, last, 2]);
  permits.reported(last, 3);
  permits.reported(first, 4);
  expect([permits.isNews, permits.count]).toEqual([false, 3]);
  permits.reported(last, 5);
  expect(permits.count).toBe(5);
});
