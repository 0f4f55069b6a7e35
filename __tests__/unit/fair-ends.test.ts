import { describe, expect, it, jest } from '@jest/globals';
import type { Hold } from '../../lib/core/hold';
import type { Grant, Refusal } from '../../lib/core/protocol';
import { Wait } from '../../lib/core/wait';
import { clock } from '../../lib/internal/clock';
import { POLL } from '../../lib/kinds/fair/scripts';
import { Ticket } from '../../lib/kinds/fair/ticket';
import { NotSentError } from '../../lib/redis/failure';
import { FakeClock } from '../support/fake-clock';
import { polls, startFair as start, table } from '../support/fake-fair';
import { holdOf } from '../support/fake-redis';

const TTL = 60_000;
/** What is kept back of a ttl of 60,000 ms, and of the window of 1,000 ms. */
const MARGIN = 61;
const time = FakeClock.install();

describe('A lease that ends', () => {
  it.each<[string, reply: unknown, found: string, warnings: number]>([
    ['nobody waits', 1, 'released', 0],
    ['it was gone', 0, 'expired', 0],
    ['another has it', table({ found: -1 }), 'stolen', 0],
    ['nobody could be told', table({ refused: 1 }), 'released', 1],
  ])('A release says that %s', async (_, reply, found, count) => {
    const { attempt, lock, release, warnings } = start();
    await attempt(1, holdOf(lock, 'me:0'));
    expect([await release(reply), warnings()]).toEqual([found, count]);
  });

  it('A release that grants the lock to a caller that has left releases it for that one too', async () => {
    const { lock, redis } = start();
    const released = lock.release('me:1', 300);
    redis.last.reply(table({ owner: 'me:4@9', found: 0 }));
    await time.advance(0);
    expect(redis.last).toMatchObject({ args: ['me:4@9', 'UNLINK', 'PUBLISH', 'r-channel'], timeout: 300 });
    redis.last.fail(new Error('lost'));
    expect(await released).toBe('expired');
    // A grant that is no grant from the queue is not released.
    redis.sent.length = 0;
    lock.onMessage('grant me:5 1000 ');
    lock.onMessage('grant me:5@1 1000 ');
    await time.advance(0);
    expect(redis.news).toEqual(['release (fair) | me:5@1 | UNLINK | PUBLISH | r-channel']);
    lock.retire();
    lock.onMessage('grant me:5@2 1000 ');
    expect(redis.sent).toEqual([]);
  });

  it.each<[string, reply: unknown, exchanged: object]>([
    ['has the lock', 1, { found: 'released', answer: { granted: true, owner: 'me:2', until: 1_000 + TTL - MARGIN } }],
    [
      'has it, though the lease was over',
      table({ owner: 'me:2', found: 0, life: 400 }),
      { found: 'expired', answer: { granted: true, owner: 'me:2' } },
    ],
    ['queues', table({ life: 700 }), { found: 'released', answer: { granted: false, remaining: 700, roundTrip: 0 } }],
    ['has none', table({ score: '', found: -1 }), { found: 'stolen', answer: undefined }],
  ])('The next caller of an exchange %s', async (_, reply, exchanged) => {
    const all = start();
    expect(await all.exchange(reply)).toMatchObject(exchanged);
    const { answer } = exchanged as { answer?: { granted: boolean } };
    const isQueued = answer?.granted === false;
    expect([all.lock.ticket?.id, all.lock.ticket?.score]).toEqual(isQueued ? ['me:2', '7'] : [undefined, undefined]);
    all.redis.sent.length = 0;
    await time.advance(100);
    expect(polls(all)).toHaveLength(isQueued ? 1 : 0);
  });

  it('The next caller of an exchange has a position that is exact, though callers follow within a millisecond', () => {
    const { lock, redis } = start();
    const now = jest.spyOn(clock, 'now').mockReturnValue(1_000.7);
    const hold = holdOf(lock, 'me:2');
    hold.stamp(1_000.3);
    void lock.exchange('me:1', hold, 300);
    now.mockRestore();
    expect(redis.last.args[2]).toMatch(/ 400 60000 1 me:2$/);
  });

  it('An exchange that grants the lock to a caller that has left waits for its release', async () => {
    const all = start();
    const exchanged = all.exchange(table({ owner: 'me:4@9', life: 700 }));
    let isOver = false;
    void exchanged.then(() => (isOver = true));
    await time.advance(30);
    expect([isOver, all.redis.last.args[0]]).toEqual([false, 'me:4@9']);
    all.redis.last.reply(1);
    expect(await exchanged).toMatchObject({ answer: { granted: false, roundTrip: 30 } });
  });

  it('A hold is passed on without a command while nobody else waits, and a message would say so', async () => {
    const all = start({ fencing: true });
    const { lock, subscriber, redis } = all;
    expect(lock.mayPassOn()).toBe(false);
    await all.exchange('5');
    expect([lock.mayPassOn(), redis.last.args[2]]).toEqual([false, expect.stringContaining(' 1 me:2')]);
    await all.open();
    const [first] = [all.exchange('6 9', 'me:2', holdOf(lock, 'me:3'))];
    expect(redis.last.args[2]).toMatch(/^PUBLISH message 13000 \d+ 60000 1000 me:3$/);
    await first;
    expect(lock.mayPassOn()).toBe(true);
    subscriber.last.onMessage('r:other');
    expect(lock.mayPassOn()).toBe(true);
    subscriber.last.onMessage('wanted');
    expect(lock.mayPassOn()).toBe(false);
    await all.exchange('16 9', 'me:3', holdOf(lock, 'me:4'));
    expect(lock.mayPassOn()).toBe(true);
    // Others wait, as far as this answer says.
    await all.exchange('26', 'me:4', holdOf(lock, 'me:5'));
    expect(lock.mayPassOn()).toBe(false);
    // A message comes before the answer.
    const to = lock.exchange('me:5', holdOf(lock, 'me:6'), 300);
    subscriber.last.onMessage('wanted');
    redis.last.reply('27 9');
    await to;
    expect(lock.mayPassOn()).toBe(false);
    await all.exchange('37 9', 'me:6', holdOf(lock, 'me:7'));
    subscriber.last.wake();
    expect(lock.mayPassOn()).toBe(false);
  });

  it('A hold that was granted by a message begins then, and is not passed on without a command, as others may wait', async () => {
    const all = start({ fencing: true });
    const { lock, subscriber } = all;
    await all.exchange('5');
    await all.open();
    await all.exchange('6 9', 'me:2', holdOf(lock, 'me:3'));
    expect(lock.mayPassOn()).toBe(true);
    await all.release(1, 'me:3');
    const { hold, outcome } = await all.queue(holdOf(lock, 'me:4'));
    await time.advance(300);
    subscriber.last.onMessage('grant me:4@9 1000 7');
    expect(await outcome).toMatchObject({ granted: true, owner: 'me:4@9' });
    expect([hold.sentAt, lock.mayPassOn()]).toEqual([time.now, false]);
  });

  it('A hold is not passed on without a command where pollers take the lock too', async () => {
    const all = start({ sharedWithPollers: true, fencing: true });
    await all.exchange('5');
    await all.open();
    await all.exchange('6 9', 'me:2', holdOf(all.lock, 'me:3'));
    expect([all.lock.mayPassOn(), all.redis.last.args[2]]).toEqual([false, expect.stringContaining(' 1 me:3')]);
  });

  it('A lease that was lost, or is kept, has a waiter of this process look, and so does a message about the lock', async () => {
    const all = start();
    const { lock, redis, release, subscriber } = all;
    lock.leaseLost();
    await all.queue();
    await all.open();
    const look = async (act: () => unknown): Promise<number> => {
      redis.sent.length = 0;
      await act();
      const poll = redis.sent.find(({ script }) => script === POLL);
      poll?.reply(table());
      await time.advance(0);
      return polls(all).length;
    };
    let asked = 0;
    lock.holder = { confirmSoon: () => asked++ } as unknown as Hold;
    expect(await look(() => lock.leaseLost())).toBe(1);
    expect(await look(() => release(1, 'me:9', { left: 5, minHold: 10, ttl: 20 }))).toBe(1);
    expect(await look(() => release(1, 'me:9'))).toBe(0);
    expect(await look(() => subscriber.last.onMessage('r:k'))).toBe(1);
    expect(await look(() => subscriber.last.onMessage('r:other'))).toBe(0);
    expect(asked).toBe(1);
  });

  it('A release takes the ticket of its caller with it, and of no other', async () => {
    const all = start();
    await all.queue();
    await all.release(1, 'me:12');
    expect(all.lock.ticket?.id).toBe('me:1');
    await all.release(1, 'me:1@77');
    expect(all.lock.ticket).toBeUndefined();
    await all.queue();
    all.lock.retire();
    expect(all.lock.ticket).toBeUndefined();
  });

  it('It travels as a lock of Spring, and is renewed so', async () => {
    const { lock, redis } = start();
    const settled: unknown[] = [];
    lock.renew('me:1', TTL, 250, (ownership) => settled.push(ownership));
    redis.last.reply([90_000]);
    void lock.travel.detach('me:1', 'you', 5, 200);
    expect([redis.last.keys, redis.last.timeout]).toEqual([['r:k'], 200]);
    expect(settled).toEqual([{ state: 'held', until: 1_000 + 90_000 - 91 }]);
  });
});

describe('What may be missed', () => {
  it('A single attempt that is refused takes no grant of another caller, and asks nothing of what it does not know', async () => {
    const { attempt, lock, redis } = start();
    const single = () => holdOf(lock, 'me:1', { waits: false });
    await attempt(table({ life: 0, owner: 'me:8@3' }), single());
    expect([lock.availability.isRefused(time.now), redis.sent.length]).toEqual([false, 1]);
    expect(await attempt(table({ owner: 'outsider', holder: 'they' }))).toMatchObject({ owner: 'they' });
    await expect(Promise.all([attempt(table({ pauseIn: 5 }), single())])).resolves.toHaveLength(1);
    const released = lock.release('me:1', 300);
    redis.last.reply(table({ pauseIn: 5 }));
    expect(await released).toBe('released');
  });

  // Whether the lock was free for less than a pause before the last acquisition: it has been busy since the first one.
  it.each<[string, (all: ReturnType<typeof start>) => unknown, boolean]>([
    ['was released', ({ release }) => release(1), true],
    ['was gone', ({ release }) => release(0), false],
    ['is kept', ({ release }) => release(1, 'me:1', { left: 5, minHold: 10, ttl: 20 }), false],
    ['was refused to a waiter', ({ attempt, lock }) => attempt(table(), holdOf(lock, 'me:5')), true],
    [
      'was refused to a single attempt',
      ({ attempt, lock }) => attempt(table(), holdOf(lock, 'me:5', { waits: false })),
      false,
    ],
    [
      'was granted by a message, and lost',
      async ({ lock, queue, subscriber }) => {
        const { outcome } = await queue(holdOf(lock, 'me:5'));
        subscriber.last.onMessage('grant me:5@9 1000 ');
        await outcome;
      },
      false,
    ],
    ['was granted to another', ({ attempt, lock }) => attempt(table({ owner: 'me:7' }), holdOf(lock, 'me:5')), false],
  ])('A lock that pollers take too and that %s is busy or not', async (_, act, isBusy) => {
    const all = start({ sharedWithPollers: true });
    const take = () => all.attempt(1, holdOf(all.lock, 'me:6'));
    await take();
    time.now = 1_100;
    await all.release(1);
    time.now = 1_110;
    await take();
    time.now = 1_300;
    await act(all);
    time.now = 1_310;
    await take();
    time.now = 1_725;
    all.redis.sent.length = 0;
    await all.release(1);
    expect(all.redis.news[0]?.includes('145')).toBe(isBusy);
  });

  it('A message about a grant that was entered with is ignored until its release is answered, and as long as it is kept', async () => {
    const all = start();
    const { lock, redis, subscriber } = all;
    const { outcome } = await all.queue();
    await all.open();
    const granted = async () => {
      redis.sent.length = 0;
      lock.onMessage('grant me:1@5 1000 ');
      await time.advance(0);
      return redis.sent.length;
    };
    await granted();
    await outcome;
    await all.release(1, 'me:9');
    expect(await granted()).toBe(0);
    await all.release(1, 'me:1@5', { left: 5, minHold: 10, ttl: 20 });
    expect(await granted()).toBe(0);
    const released = lock.release('me:1@5', 300);
    const { reply } = redis.last;
    expect(await granted()).toBe(0);
    reply(1);
    await released;
    expect(await granted()).toBe(1);
    expect(subscriber.all).toHaveLength(1);
  });

  it('Of two grants of one ticket the later one counts, and one is not lost that its caller does not wait for', async () => {
    const all = start({}, { replicated: true });
    const { lock, redis } = all;
    const { outcome } = await all.queue();
    await all.open();
    for (const owner of ['me:1@5', 'me:1@6']) lock.onMessage(`grant ${owner} 1000 `);
    const [first, second] = redis.sent;
    first?.reply(1);
    expect(await time.settled(outcome, 10)).toBeUndefined();
    second?.reply(1);
    expect(await time.settled(outcome, 10)).toMatchObject({ value: { granted: true, owner: 'me:1@6' } });
    const hold = holdOf(lock, 'me:2');
    const refusal = (await all.attempt(table(), hold)) as Refusal;
    const short = lock.wait(hold, refusal, new Wait('k', 10, undefined));
    lock.onMessage('grant me:2@7 1000 ');
    await time.advance(20);
    expect(await short).toEqual({ granted: false });
    redis.sent.find(({ args }) => args[0] === 'me:2@7')?.reply(1);
    await time.advance(0);
    expect(await lock.wait(hold, refusal, new Wait('k', 10, undefined))).toMatchObject({ owner: 'me:2@7' });
  });

  it('A grant by the reply to a release counts from when that was sent, unless the machine was suspended since', async () => {
    for (const suspended of [0, 1_000]) {
      const all = start();
      const { outcome } = await all.queue(holdOf(all.lock, 'me:2'));
      await all.open();
      void all.lock.release('me:1', 300);
      time.wallNow += suspended;
      all.redis.last.reply(table({ owner: 'me:2@5', life: 1_000 }));
      expect((await time.settled(outcome, 10)) !== undefined).toBe(suspended === 0);
    }
  });

  it('A release that was not sent is rejected, and an exchange that was refused leaves no ticket', async () => {
    const all = start();
    const { lock, redis } = all;
    const released = lock.release('me:1', 300);
    redis.last.fail(new NotSentError(5));
    await expect(released).rejects.toThrow();
    const refused = async (keep?: { left: number; minHold: number; ttl: number }) => {
      const exchanged = lock.exchange('me:1', holdOf(lock, 'me:2'), 300, keep);
      redis.last.fail(new Error('NOPERM no rights'));
      await expect(exchanged).rejects.toThrow('NOPERM');
      return lock.ticket?.id;
    };
    expect([await refused(), await refused({ left: 5, minHold: 10, ttl: 20 })]).toEqual([undefined, 'me:2']);
  });

  it('A hold is not passed on without a command where messages did not arrive when nobody waited', async () => {
    const all = start({ fencing: true });
    await all.queue();
    await all.open();
    all.subscriber.last.onMessage('r:k');
    all.redis.last.reply(table({ unreachable: 1 }));
    await time.advance(0);
    await all.exchange('5 9');
    all.format.pollTimer.close();
    time.now += 10_000;
    expect(all.lock.mayPassOn()).toBe(false);
  });

  it('A ticket keeps a grant that came during an attempt, and forgets that it was to make one', () => {
    const { lock } = start();
    const ticket = new Ticket(holdOf(lock));
    const seen: unknown[] = [];
    const attach = () => ticket.attach((grant) => seen.push(grant));
    ticket.deliver(undefined);
    ticket.asking(undefined);
    attach()();
    expect(seen).toEqual([]);
    const grant = { granted: true } as Grant;
    ticket.deliver(grant);
    ticket.asking(undefined);
    for (const _ of ['once', 'and not again']) attach()();
    expect(seen).toEqual([grant]);
    ticket.deliver(undefined);
    attach();
    ticket.deliver(grant);
    expect(seen).toEqual([grant, undefined, grant]);
  });
});
