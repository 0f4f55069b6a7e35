import { describe, expect, it } from '@jest/globals';
import type { Grant, Refusal } from '../../lib/core/protocol';
import { Wait } from '../../lib/core/wait';
import { drift } from '../../lib/internal/clock';
import { FAIR, FairProtocol } from '../../lib/kinds/fair/kind';
import { POLL } from '../../lib/kinds/fair/scripts';
import { Ticket } from '../../lib/kinds/fair/ticket';
import { ClientClosedError, CommandTimeoutError, NotSentError } from '../../lib/redis/failure';
import { LockNames } from '../../lib/redis/names';
import { FakeClock } from '../support/fake-clock';
import { polls, startFair as start, table } from '../support/fake-fair';
import { holdOf } from '../support/fake-redis';

const TTL = 60_000;
/** What is kept back of a ttl of 60,000 ms, and of the window of 1,000 ms. */
const MARGIN = 61;
const time = FakeClock.install();

describe('A reply', () => {
  const NOTHING = {
    owner: undefined,
    token: '',
    life: 500,
    score: '7',
    holder: undefined,
    isOutsiders: false,
    found: 'released',
    isNotificationRefused: false,
    isUnreachable: false,
    isAlone: false,
    moreTokens: 0,
    pauseIn: undefined,
    sentAt: 900,
    drift: 3,
  };

  it.each<[reply: unknown, said: object]>([
    [[500, '7'], NOTHING],
    [table(), NOTHING],
    [table({ owner: 'me:1@5', token: '9' }), { owner: 'me:1@5', token: '9' }],
    [table({ owner: 'outsider', holder: 'they' }), { isOutsiders: true, holder: 'they' }],
    [table({ score: '', life: -1 }), { score: '', life: Number.POSITIVE_INFINITY }],
    [table({ found: 0 }), { found: 'expired' }],
    [table({ found: -1 }), { found: 'stolen' }],
    [table({ refused: 1 }), { isNotificationRefused: true }],
    [table({ unreachable: 1 }), { isUnreachable: true }],
    [table({ pauseIn: 0 }), { pauseIn: 0 }],
  ])('%j', (reply, said) => {
    const { format } = start();
    expect(format.read(POLL, reply, undefined, 900, 3)).toMatchObject({ ...NOTHING, ...said });
  });

  it.each<[fencing: boolean, reply: unknown, said: object]>([
    [false, 1, { isAlone: true, token: '', moreTokens: 0 }],
    [false, 2, { isAlone: false }],
    [true, '8', { isAlone: false, token: '8', moreTokens: 0 }],
    [true, '8 3', { isAlone: true, token: '8', moreTokens: 2 }],
  ])('The ticket that a script was sent for has the lock (fencing: %s): %j', (fencing, reply, said) => {
    const { format, lock } = start({ fencing });
    const ticket = Object.assign(new Ticket(holdOf(lock)), { score: '4' });
    const read = format.read(POLL, reply, ticket, 900, 3);
    expect(read).toMatchObject({ ...NOTHING, life: TTL, owner: 'me:1', score: '4', ...said });
    expect(read.until).toBe(900 + TTL - MARGIN);
  });

  it.each<unknown>([[[500]], [Array.from({ length: 10 }, () => 0)], [[500, null]], [['x', '7']], ['x'], [null]])(
    'Nonsense is refused: %j',
    (reply) => {
      const { format } = start();
      expect(() => format.read(POLL, reply, undefined, 900, 3)).toThrow('poll (fair)');
    },
  );

  it('It may be that of a release, which found its lock or not, and by which command', () => {
    const { format } = start();
    const found = [1, 0, -1, 2].map((reply) => format.read(POLL, reply, undefined, 900, 3).found);
    expect([found.join(), format.deleteCommand]).toEqual(['released,expired,stolen,released', 'DEL']);
    const endless = format.read(POLL, [-1, ''], undefined, 900, 3);
    expect(endless.until).toBeGreaterThan(1e15);
    expect(Number.isFinite(endless.until)).toBe(true);
  });
});

describe('What is sent', () => {
  it.each<[string, object, { cluster?: boolean }, string[], string]>([
    ['plain', {}, {}, ['r:k', '{r:k}:queue', '{r:k}:tickets'], 'PUBLISH poll 13000 10000 '],
    [
      'on a cluster, with fencing',
      { fencing: true },
      { cluster: true },
      ['r:k', '{r:k}:queue', '{r:k}:tickets', '{r:k}:fence'],
      'SPUBLISH poll 13000 10000 ',
    ],
    [
      'with long intervals',
      { idleBetweenTries: 1_000.1 },
      {},
      ['r:k', '{r:k}:queue', '{r:k}:tickets'],
      'PUBLISH poll 40003 10000 ',
    ],
  ])('An attempt: %s', (_, more, how, keys, text) => {
    const { lock, redis, format } = start(more, how);
    const hold = holdOf(lock);
    hold.stamp(990);
    hold.owner = 'other';
    time.now += 3;
    void lock.attempt(hold, 250);
    expect(redis.last).toMatchObject({ keys, args: ['me:1', '60000', text], timeout: 250, sentAt: 1_000 });
    expect(hold.owner).toBe('me:1');
    expect(format.keysOf(new LockNames('r', 'other'))[0]).toBe('r:other');
    const single = holdOf(lock, 'me:2', { waits: false });
    void lock.attempt(single, 250);
    expect(redis.last.args[2]).toMatch(/^S?PUBLISH none /);
    expect(lock.ticket?.id).toBe('me:1');
    expect(lock.orphanLife(hold)).toBe(TTL);
    expect(lock.orphanLife(holdOf(lock, 'me:3', { ttl: 5 }))).toBe(format.processLife);
  });

  it('A later attempt of the same caller says its position, and how it hears of a grant', async () => {
    const all = start();
    const { lock, redis, queue, open } = all;
    const { hold } = await queue();
    await open();
    hold.stamp(0);
    void lock.attempt(hold, 300);
    expect(redis.last.args[2]).toBe('PUBLISH message 13000 1000000 7');
    redis.last.reply(table({ score: '8' }));
    await time.advance(0);
    void lock.attempt(holdOf(lock, 'me:2'), 300);
    expect(redis.last.args[2]).toBe('PUBLISH message 13000 1000000 ');
  });

  it('A release says what follows: nothing, the next caller, or that the lock is kept', async () => {
    const { lock, redis, release, exchange } = start();
    const keep = { left: 5, minHold: 10, ttl: 20 };
    await release(1);
    await release(2, 'me:1', keep);
    const next = holdOf(lock, 'me:2');
    next.stamp(990);
    expect(await exchange('PONG', 'me:1', next).catch((error: Error) => error.message)).toMatch(/PONG/);
    await exchange(1, 'me:2', next, keep);
    expect(redis.news).toEqual([
      'release (fair) | me:1 | UNLINK | PUBLISH | r-channel',
      'release (fair) | me:1 | UNLINK | PUBLISH poll 13000 0 0 0  0 0 5 10 20 | r-channel',
      'hand over (fair) | me:1 | DEL | PUBLISH poll 13000 10000 60000 1 me:2 | r-channel',
      // It may have been granted the lock.
      'poll (fair) | me:2 | PUBLISH poll 13000',
      'hand over (fair) | me:2 | DEL | PUBLISH poll 13000 10000 60000 1 me:2 0 0 5 10 20 | r-channel',
    ]);
  });

  it('A lock that pollers take too is left to them at intervals', async () => {
    const { lock, redis, attempt, release, exchange } = start({ sharedWithPollers: true });
    await attempt(1);
    redis.sent.length = 0;
    time.now += 724;
    await release(1);
    expect(redis.news).toEqual(['release (fair) | me:1 | UNLINK | PUBLISH | r-channel']);
    await attempt(1);
    time.now += 1;
    redis.sent.length = 0;
    void lock.release('me:1', 300, { left: 5, minHold: 10, ttl: 20 });
    expect(redis.news[0]).toContain(' 0 0 5 10 20');
    await exchange(table({ pauseIn: 0 }));
    expect(redis.news).toEqual([
      'hand over (fair) | me:1 | UNLINK | PUBLISH poll 13000 1725000 60000 1 me:2 145 725 0 0 0 | r-channel',
    ]);
    time.now += 145 + 724;
    void lock.release('me:1', 300);
    expect(redis.news[0]).not.toContain('145');
    time.now += 1;
    void lock.release('me:1', 300);
    expect(redis.news).toEqual([
      'release (fair) | me:1 | UNLINK | PUBLISH poll 13000 0 0 0  145 725 0 0 0 | r-channel',
    ]);
    expect(lock.standBack()).toBeUndefined();
  });

  it('It is made for a registry: with its inspection, and its names', async () => {
    const { parts, redis, names } = start();
    const protocols = FAIR(parts);
    const unlocking = protocols.inspector.forceUnlock(names, 200, 'by:0');
    expect(redis.last).toMatchObject({ keys: ['r:k', '{r:k}:queue', '{r:k}:tickets'] });
    redis.last.reply(['a', 5, '', 2]);
    await time.advance(0);
    expect(redis.last.args).toEqual(['a', '60000', '0', 'PUBLISH', '{r:k}:grants', 'r-channel']);
    redis.last.reply([1, 0]);
    expect(await unlocking).toMatchObject({ waiting: 2 });
    expect(() => protocols.open(new LockNames('r', 'a{b'))).toThrow(RangeError);
    const own = protocols.open(names);
    void own.attempt(holdOf(own), 300);
    redis.last.reply(table());
    expect(time.pending).toBe(1);
    expect([protocols.held().includes("'GET'"), protocols.open(names) instanceof FairProtocol]).toEqual([true, true]);
    protocols.close?.();
    expect(time.pending).toBe(0);
  });
});

describe('A caller on its way', () => {
  it('It has the lock at once, or is told who has it', async () => {
    const { attempt, lock } = start({ fencing: true });
    const hold = holdOf(lock);
    expect(await attempt('9 3', hold)).toEqual({
      granted: true,
      owner: 'me:1',
      until: 1_000 + TTL - MARGIN,
      fencingToken: 9,
      moreTokens: 2,
      drift: hold.drift,
    });
    expect(lock.ticket).toBeUndefined();
    const next = holdOf(lock, 'me:2');
    time.now += 6;
    const refusal = await attempt(table({ life: 900, holder: 'they' }), next);
    expect(refusal).toEqual({ granted: false, remaining: 900, owner: 'they', roundTrip: 6 });
    expect(lock.availability.holderSaid(time.now)).toEqual({ owner: 'they', remaining: 900 });
    expect([lock.availability.isRefused(time.now), lock.hasQueue]).toEqual([true, true]);
    const third = await attempt(table({ owner: 'me:3@8', token: '4', life: 1_000 }), holdOf(lock, 'me:3'));
    expect(third).toMatchObject({ granted: true, owner: 'me:3@8', fencingToken: 4, until: 1_006 + 1_000 - 2 });
  });

  it.each<[string, message: string, grant: object | undefined]>([
    ['a grant', 'grant me:1@5 1000 ', { owner: 'me:1@5', until: 1_000 + 1_000 - 2, fencingToken: undefined }],
    ['a grant that is its ticket', 'grant me:1 800 ', { owner: 'me:1' }],
    ['a grant of another caller', 'grant me:2@5 1000 ', undefined],
    ['a grant of no time', 'grant me:1@5 0 ', undefined],
    ['a grant of less', 'grant me:1@5 -5 ', undefined],
    ['nonsense', 'grand me:1@5 1000 ', undefined],
    ['nonsense of the same length', 'grant me:1@5 x ', undefined],
    ['nothing', '', undefined],
    ['that another waits', 'wanted', undefined],
  ])('A message says: %s', async (_, message, grant) => {
    const all = start();
    const { outcome, hold } = await all.queue();
    await all.open();
    all.subscriber.last.onMessage(message);
    await time.advance(0);
    expect(all.redis.news.filter((sent) => sent.startsWith('renew'))).toHaveLength(grant === undefined ? 0 : 1);
    if (grant === undefined) return expect((await time.settled(outcome, 100))?.value).toBeUndefined();
    expect(await outcome).toMatchObject({ granted: true, ...grant });
    expect([all.lock.ticket, hold.sentAt]).toEqual([undefined, time.now]);
    return undefined;
  });

  it('A grant that a poll finds is confirmed first where the machine was suspended while the poll was on its way', async () => {
    const { redis, subscriber, queue, open } = start();
    const { outcome } = await queue();
    await open();
    subscriber.last.onMessage('r:k');
    time.wallNow += 60_000;
    redis.last.reply(table({ owner: 'me:1@5', life: 1_000 }));
    let isIn = false;
    void outcome.then(() => (isIn = true));
    await time.advance(0);
    expect(isIn).toBe(false);
    redis.last.reply(1);
    await time.advance(0);
    expect(isIn).toBe(true);
  });

  // ms since the ticket was sent when the message comes: it proves less and less of the window.
  it.each<[string, how: object, after: number, life: number, minHold: number, atOnce: boolean]>([
    ['half of the window is certain', {}, 498, 1_000, 0, true],
    ['less is certain', {}, 499, 1_000, 0, false],
    ['half of a shorter one', {}, 248, 500, 0, true],
    ['less of a shorter one', {}, 249, 500, 0, false],
    ['no longer than its minHold', {}, 0, 1_000, 999, false],
    ['as long as its minHold', {}, 0, 1_000, 998, true],
    ['replicas have to have it', { replicated: true }, 0, 1_000, 0, false],
    ['the machine was suspended', {}, -1, 1_000, 0, false],
  ])('A grant by a message is entered with at once where %s', async (_, how, after, life, minHold, atOnce) => {
    const all = start({}, how);
    const { redis, lock, subscriber } = all;
    const { outcome } = await all.queue(holdOf(lock, 'me:1', { minHold }));
    await all.open();
    time.now += Math.max(0, after);
    time.wallNow += after < 0 ? 1_000 : after;
    subscriber.last.onMessage(`grant me:1@5 ${life} `);
    // It is repeated.
    subscriber.last.onMessage(`grant me:1@5 ${life} `);
    await time.advance(0);
    const sentAt = time.now;
    const [renewal, ...others] = redis.sent;
    const driftBefore = drift();
    expect(others).toEqual([]);
    const limit = life / 2 + ('replicated' in how ? 70 : 0);
    expect(renewal).toMatchObject({ keys: ['r:k'], args: ['me:1@5', '60000'], timeout: limit, asText: true });
    let grant: Grant | undefined;
    void outcome.then((value) => (grant = value as Grant));
    await time.advance(0);
    expect(grant !== undefined).toBe(atOnce);
    await time.advance(20);
    // The machine is suspended while the renewal is on its way.
    time.wallNow += 60_000;
    renewal?.reply(1);
    await time.advance(0);
    expect(grant?.drift).toBeLessThanOrEqual(driftBefore);
    const certain = atOnce ? 1_000 + life - (life * 0.001 + 1) : sentAt + TTL - MARGIN;
    expect(grant).toMatchObject({ granted: true, owner: 'me:1@5', until: certain });
    if (atOnce) expect(await grant?.renewal).toEqual({ state: 'held', until: sentAt + TTL - MARGIN });
    else expect(grant?.renewal).toBeUndefined();
    // A late repetition of what it entered with is ignored, also by its release.
    subscriber.last.onMessage('grant me:1@5 1000 ');
    await time.advance(0);
    expect(redis.sent).toHaveLength(1);
  });

  it.each<[string, unknown]>([
    ['gone', 0],
    ['of another owner', -1],
    ['not known', new Error('lost')],
  ])('A grant whose first renewal finds the lock %s is no grant', async (_, reply) => {
    const all = start({}, { replicated: true });
    const { outcome } = await all.queue();
    await all.open();
    all.subscriber.last.onMessage('grant me:1@5 1000 ');
    if (typeof reply === 'number') all.redis.last.reply(reply);
    else all.redis.last.fail(reply);
    expect(await time.settled(outcome, 100)).toMatchObject({ value: { granted: false } });
    // The same grant may come again.
    all.redis.sent.length = 0;
    all.subscriber.last.onMessage('grant me:1@5 1000 ');
    expect(all.redis.sent).toHaveLength(1);
  });

  it('The first renewal goes as text until the server is known to have it, on each connection', async () => {
    const { format, names, redis } = start();
    const renew = (reply: unknown = 1) => {
      const answer = format.renewGrant(names, 'me:1', TTL, 300);
      const { asText } = redis.last;
      if (reply instanceof Error) redis.last.fail(reply);
      else redis.last.reply(reply);
      return answer.then((ownership) => [asText, ownership.state].join());
    };
    const seen = [await renew(new Error('lost')), await renew(), await renew()];
    redis.connectionEpoch = 2;
    seen.push(await renew(), await renew([5]));
    redis.connectionEpoch = undefined;
    seen.push(await renew(), await renew());
    expect(seen.join(' ')).toBe('true,unknown true,held false,held true,held false,held true,held true,held');
  });

  it('With fencing, a grant without a token needs another attempt, and one with a token has it', async () => {
    const all = start({ fencing: true });
    const one = await all.queue();
    await all.open();
    all.subscriber.last.onMessage('grant me:1@5 1000');
    expect(await time.settled(one.outcome, 10)).toMatchObject({ value: { granted: false } });
    expect(all.redis.sent).toEqual([]);
    const other = await all.queue();
    all.subscriber.last.onMessage('grant me:1@6 1000 77');
    expect(await time.settled(other.outcome, 10)).toMatchObject({ value: { fencingToken: 77 } });
    const third = await all.queue(holdOf(all.lock, 'me:3'));
    all.redis.isReplicated = true;
    all.subscriber.last.onMessage('grant me:3@6 1000 78');
    all.redis.last.reply(1);
    expect(await time.settled(third.outcome, 10)).toMatchObject({ value: { fencingToken: 78 } });
  });

  it('A grant that came before its caller waits is there, unless its time is over', async () => {
    const all = start();
    for (const [i, later] of [0, 997, 998].entries()) {
      const [ticket, isGranted] = [`me:${i}`, later < 998];
      const hold = holdOf(all.lock, ticket);
      const refusal = (await all.attempt(table(), hold)) as Refusal;
      all.lock.onMessage(`grant ${ticket}@5 1000 `);
      await time.advance(0);
      time.now += later;
      const outcome = await all.lock.wait(hold, refusal, new Wait('k', 10_000, undefined));
      expect(outcome.granted).toBe(isGranted);
      all.redis.sent.length = 0;
      // What is over may be offered anew.
      all.lock.onMessage(`grant ${ticket}@5 1000 `);
      expect(all.redis.sent).toHaveLength(isGranted ? 0 : 1);
    }
  });

  it('A caller whose ticket was forgotten makes another attempt', async () => {
    const all = start();
    const hold = holdOf(all.lock);
    const refusal = (await all.attempt(table(), hold)) as Refusal;
    all.lock.ticket = undefined;
    expect(await all.lock.wait(hold, refusal, new Wait('k', 10, undefined))).toEqual({ granted: false });
    expect(all.subscriber.all).toEqual([]);
  });

  it.each<[string, error: unknown, score: boolean, isForgotten: boolean, polls: number]>([
    ['was not sent', new NotSentError(5), false, true, 0],
    ['was not sent, with a position', new NotSentError(5), true, false, 1],
    ['came to a closed client', new ClientClosedError('closed'), false, true, 0],
    ['was refused', new Error('NOPERM no rights'), true, false, 0],
    ['was refused, without a position', new Error('NOPERM no rights'), false, false, 0],
    ['was not answered', new CommandTimeoutError(5, Promise.resolve()), true, false, 1],
  ])('An attempt that %s: its ticket', async (_, error, score, isForgotten, count) => {
    const all = start();
    const { lock, redis } = all;
    const hold = holdOf(lock);
    if (score) {
      await all.queue(hold);
      await all.open();
      hold.stamp(0);
    }
    const attempt = lock.attempt(hold, 300);
    const { fail } = redis.last;
    redis.sent.length = 0;
    fail(error);
    await expect(attempt).rejects.toBe(error);
    expect([lock.ticket === undefined, polls(all).length]).toEqual([isForgotten, count]);
    expect(lock.ticket?.isAsked ?? false).toBe(false);
  });
});

it('A fair lock has learnt something once a caller of this process has waited, and while one may have the lock', async () => {
  const { lock, attempt, queue, release } = start();
  const known = [lock.hasLearnt];
  await attempt(1);
  known.push(lock.hasLearnt);
  await release(table());
  known.push(lock.hasLearnt);
  await queue(holdOf(lock, 'me:2'));
  await release(table(), 'me:2');
  known.push(lock.hasLearnt);
  expect(known).toEqual([false, true, false, true]);
});
