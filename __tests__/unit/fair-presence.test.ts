import { expect, it, jest } from '@jest/globals';
import { POLL } from '../../lib/kinds/fair/scripts';
import { FakeClock } from '../support/fake-clock';
import { startFair as start, table } from '../support/fake-fair';
import { holdOf } from '../support/fake-redis';

const time = FakeClock.install();

it.each<[string, cluster: boolean, more: object, channels: string[]]>([
  ['plain', false, {}, ['{r:k}:grants:me', 'r-channel:r:k']],
  ['with the old channel', false, { legacyChannel: true }, ['{r:k}:grants:me', 'r-channel:r:k', 'r-channel']],
  ['on a cluster', true, {}, ['{r:k}:grants:me']],
])('It listens: %s', async (_, cluster, more, channels) => {
  const all = start(more, { cluster });
  await all.queue();
  expect(all.subscriber.last.channels).toEqual(channels);
});

it('It listens from the first wait until a second after the last one, and again when the subscription has ended', async () => {
  const all = start();
  const { subscriber, lock } = all;
  await all.queue();
  await all.open();
  await all.queue(holdOf(lock, 'me:2'));
  expect(subscriber.all).toHaveLength(1);
  await all.release(1, 'me:2');
  await time.advance(999);
  expect(subscriber.last.isOver).toBe(false);
  await all.queue(holdOf(lock, 'me:3'));
  await time.advance(500);
  expect(subscriber.last.isOver).toBe(false);
  const { keepingAlive } = time;
  lock.retire();
  expect(time.keepingAlive).toBe(keepingAlive - 1); // the next poll
  await time.advance(1_000);
  expect(subscriber.last.isOver).toBe(true);
  await all.queue(holdOf(lock, 'me:4'));
  expect(subscriber.all).toHaveLength(2);
});

it('It listens while this process passes the lock on, though none of its callers waits', async () => {
  const all = start();
  await all.exchange(1);
  await all.open();
  await time.advance(5_000);
  expect(all.subscriber.last.isOpen).toBe(true);
  await all.release(1, 'me:2');
  await time.advance(1_000);
  expect(all.subscriber.last.isOver).toBe(true);
});

// ms until the next poll.
it.each<[string, isOpen: boolean, life: number, ms: number]>([
  ['while messages come', true, 60_000, 1_000],
  ['when the key ends', true, 400, 401],
  ['without messages', false, 60_000, 100],
  ['when the key ends soon', false, 3, 10],
])('It polls %s', async (_, isOpen, life, ms) => {
  const all = start();
  const { hold } = await all.queue();
  if (isOpen) await all.open();
  all.format.pollTimer.close();
  hold.stamp(0);
  time.delays = [];
  void all.lock.attempt(hold, 300);
  all.redis.last.reply(table({ life }));
  expect(time.delays[0]).toBe(ms);
  all.redis.sent.length = 0;
  await time.advance(ms);
  const presence = isOpen ? 'message' : 'poll';
  expect(all.redis.news).toEqual([`poll (fair) | me:1 | PUBLISH ${presence} 13000`]);
});

it('It polls as often as a third of the window at least', async () => {
  const all = start({ idleBetweenTries: 500 });
  await all.queue(undefined, { life: 60_000 });
  expect(time.delays.includes(Math.ceil(1_000 / 3))).toBe(true);
});

it('A poll has the time that a command has, but no longer than the interval', async () => {
  const timeoutOf = async (more: object) => {
    const all = start(more);
    await all.queue();
    all.subscriber.last.opened();
    const { timeout, sentAt } = all.redis.last;
    expect(sentAt).toBe(time.now);
    return timeout;
  };
  expect([
    await timeoutOf({}),
    await timeoutOf({ commandTimeout: 5_000 }),
    await timeoutOf({ commandTimeout: 5_000, idleBetweenTries: 10 }),
  ]).toEqual([300, 1_000, 500]);
});

it('A poll that is in flight is followed by one more where something has happened, and an attempt too', async () => {
  const all = start();
  const { redis, lock, subscriber } = all;
  const { hold } = await all.queue();
  await all.open();
  subscriber.last.onMessage('r:k');
  subscriber.last.onMessage('r:k');
  expect(redis.sent).toHaveLength(1);
  redis.last.reply(table());
  await time.advance(0);
  expect(redis.sent).toHaveLength(2);
  redis.last.reply(table());
  await time.advance(0);
  expect(redis.sent).toHaveLength(2);
  hold.stamp(0);
  void lock.attempt(hold, 300);
  subscriber.last.onMessage('r:k');
  expect(redis.sent).toHaveLength(3);
  redis.last.reply(table());
  await time.advance(0);
  expect(redis.last.script).toBe(POLL);
  expect(redis.sent).toHaveLength(4);
});

it('A poll is silence until it is answered', async () => {
  const all = start();
  const { redis, subscriber, lock } = all;
  await all.queue();
  await all.open();
  subscriber.last.onMessage('r:k');
  time.now += 300;
  expect(lock.availability.silence(0, time.now)).toBe(300);
  redis.last.reply(table());
  await time.advance(0);
  expect(lock.availability.silence(0, time.now)).toBe(0);
});

it('A poll that finds the grant of its caller gives it to it, and one that finds no ticket has it make an attempt', async () => {
  const all = start();
  const { redis, subscriber, lock } = all;
  const one = await all.queue();
  await all.open();
  subscriber.last.onMessage('r:k');
  const isAsked = lock.availability.inFlight !== undefined;
  redis.last.reply(table({ owner: 'me:1@5', life: 1_000, score: '' }));
  expect(await time.settled(one.outcome, 10)).toMatchObject({ value: { granted: true, owner: 'me:1@5' } });
  expect([isAsked, lock.availability.inFlight, subscriber.renewals]).toEqual([true, undefined, 0]);
  const other = await all.queue(holdOf(lock, 'me:2'));
  subscriber.last.onMessage('r:k');
  redis.last.reply(table({ score: '' }));
  expect(await time.settled(other.outcome, 10)).toMatchObject({ value: { granted: false } });
  expect(subscriber.renewals).toBe(1);
});

it('Where messages do not arrive, the connection is made anew, and the waiter polls for ten seconds', async () => {
  const all = start();
  const { redis, subscriber } = all;
  await all.queue();
  await all.open();
  const presence = async (): Promise<string> => {
    subscriber.last.onMessage('r:k');
    const said = redis.last.args[1];
    redis.last.reply(table({ unreachable: redis.sent.length === 1 ? 1 : 0 }));
    await time.advance(0);
    return said as string;
  };
  expect(await presence()).toContain('message');
  expect(subscriber.renewals).toBe(1);
  const before = time.now;
  expect(await presence()).toContain('poll');
  all.format.pollTimer.close();
  time.now = before + 9_999;
  expect(await presence()).toContain('poll');
  all.format.pollTimer.close();
  time.now = before + 10_000;
  expect(await presence()).toContain('message');
  expect(subscriber.renewals).toBe(1);
});

it('A message that came while a poll was in flight shows that messages arrive, whatever the poll says', async () => {
  const all = start();
  const { redis, subscriber } = all;
  const renewals: number[] = [];
  for (const ticket of ['me:1', 'me:2']) {
    await all.queue(holdOf(all.lock, ticket));
    if (!subscriber.last.isOpen) await all.open();
    subscriber.last.onMessage('r:k');
    const poll = redis.last;
    if (ticket === 'me:1') subscriber.last.onMessage(`grant ${ticket}@5 1000 `);
    poll.reply(table({ owner: `${ticket}@5`, score: '', unreachable: 1 }));
    await time.advance(0);
    renewals.push(subscriber.renewals);
  }
  expect(renewals).toEqual([0, 1]);
});

it.each<[string, error: unknown, unavailableAfter: number, isOver: boolean]>([
  ['for now', new Error('LOADING Redis is loading'), 2_000, false],
  ['for good', new Error('NOPERM no rights'), 2_000, true],
  ['after a long silence', new Error('lost'), 0, true],
])('A poll that fails %s', async (_, error, unavailableAfter, isOver) => {
  const all = start({ unavailableAfter });
  const { outcome } = await all.queue();
  await all.open();
  all.subscriber.last.onMessage('r:k');
  all.format.pollTimer.close();
  time.delays = [];
  all.redis.last.fail(error);
  await time.advance(0);
  expect(time.delays).toEqual([101]);
  const { failure, inFlight } = all.lock.availability;
  expect([(await time.settled(outcome, 10)) !== undefined, failure, inFlight]).toEqual([isOver, error, undefined]);
});

it.each(['NOAUTH Authentication required.', "NOPERM this user has no permissions to run the 'evalsha' command"])(
  'Nobody polls for a caller that the server turned away before it knew the ticket: %s',
  async (text) => {
    const all = start();
    const { lock, redis, subscriber } = all;
    await all.queue();
    await all.open();
    await all.release(1);
    const turnedAway = lock.attempt(holdOf(lock, 'me:2'), 300);
    redis.last.fail(new Error(text));
    await expect(turnedAway).rejects.toThrow(text);
    redis.sent.length = 0;
    subscriber.last.onMessage('r:k');
    await time.advance(60_000);
    expect(redis.news).toEqual([]);
    // A caller that had a position keeps it: what gives that back is sent later.
    const { hold } = await all.queue(holdOf(lock, 'me:3'));
    const refused = lock.attempt(hold, 300);
    redis.last.fail(new Error(text));
    await expect(refused).rejects.toThrow(text);
    expect(lock.ticket?.id).toBe('me:3');
    await all.release(1, 'me:3');
  },
);

it('It looks more often where the holder may be a poller, whose holders change', async () => {
  const all = start({ sharedWithPollers: true });
  const { hold } = await all.queue(undefined, { life: 59_000, owner: 'outsider', holder: 'a' });
  await all.open();
  const delay = async (life: number, owner: string) => {
    all.format.pollTimer.close();
    hold.stamp(0);
    time.delays = [];
    void all.lock.attempt(hold, 300);
    all.redis.last.reply(table({ life, owner, holder: 'b' }));
    await time.advance(0);
    return time.delays[0];
  };
  expect(await delay(59_000, 'outsider')).toBe(1_000);
  time.now += 550;
  expect(await delay(60_000, 'outsider')).toBe(51);
  expect(await delay(60_000, '')).toBe(1_000);
});

it('Where there is no connection for messages, a waiter polls', async () => {
  const all = start();
  all.subscriber.isThere = false;
  await all.queue();
  all.redis.sent.length = 0;
  await time.advance(100);
  expect(all.redis.news).toEqual(['poll (fair) | me:1 | PUBLISH poll 13000']);
  expect(all.subscriber.kinds).toEqual(['false,false']);
  await all.release(1);
});

it('A poll says nothing about messages where none were to come', async () => {
  const all = start();
  await all.queue();
  await time.advance(100);
  all.redis.last.reply(table({ unreachable: 1 }));
  await time.advance(0);
  expect(all.subscriber.renewals).toBe(0);
});

it('It leaves its subscription once, and stays while another caller waits', async () => {
  const all = start();
  await all.queue();
  await all.open();
  await all.release(1, 'me:9');
  all.redis.sent.length = 0;
  await time.advance(501);
  // The ticket of another caller is polled for all the same.
  expect(all.redis.news).toEqual(['poll (fair) | me:1 | PUBLISH message 13000']);
  for (const _ of [1, 2]) await all.release(1);
  await all.queue(holdOf(all.lock, 'me:2'));
  await time.advance(1_500);
  expect(all.subscriber.last.isOpen).toBe(true);
});

it('It ends a second after its caller has the lock, or the lease was lost', async () => {
  const all = start();
  const { outcome } = await all.queue();
  await all.open();
  all.subscriber.last.onMessage('grant me:1@5 1000 ');
  await outcome;
  await time.advance(1_000);
  expect(all.subscriber.last.isOver).toBe(true);
  await all.exchange(1);
  all.subscriber.last.opened();
  all.lock.leaseLost();
  await time.advance(1_000);
  expect(all.subscriber.last.isOver).toBe(true);
  // The next caller of this process has no position, or does not wait.
  await all.exchange(table({ score: '' }));
  await time.advance(1_000);
  expect([all.subscriber.last.isOver, all.subscriber.all.length]).toEqual([true, 3]);
  await all.exchange(1, 'me:1', holdOf(all.lock, 'me:3', { waits: false }));
  expect(all.subscriber.all).toHaveLength(3);
});

it('A poll whose caller leaves meanwhile is followed by none, whatever happened', async () => {
  const all = start();
  const { redis, lock, subscriber } = all;
  const asked = async (end: () => void) => {
    await all.queue(holdOf(lock, 'me:1'));
    if (!subscriber.last.isOpen) await all.open();
    subscriber.last.onMessage('r:k');
    subscriber.last.onMessage('r:k');
    const { reply, fail } = redis.last;
    const left = lock.release('me:1', 300);
    redis.last.reply(1);
    await left;
    end();
    redis.sent.length = 0;
    return { reply, fail };
  };
  const alone = await asked(() => undefined);
  alone.reply(table({ score: '' }));
  await time.advance(0);
  expect([lock.availability.failure, redis.news]).toEqual([undefined, []]);
  const failed = await asked(() => undefined);
  const scheduled = jest.spyOn(all.format.pollTimer, 'schedule');
  failed.fail(new Error('LOADING'));
  await time.advance(0);
  expect([scheduled.mock.calls, redis.news]).toEqual([[], []]);
  lock.leaseLost();
  const next = holdOf(lock, 'me:2');
  await all.queue(next);
  expect(redis.news.filter((sent) => sent.startsWith('poll'))).toEqual([]);
  // A poll of the caller before is in flight when the next one comes.
  subscriber.last.onMessage('r:k');
  subscriber.last.onMessage('r:k');
  const { reply } = redis.last;
  const left = lock.release('me:2', 300);
  redis.last.reply(1);
  await left;
  await all.queue(holdOf(lock, 'me:3'));
  redis.sent.length = 0;
  reply(table());
  await time.advance(0);
  expect(redis.news).toEqual([]);
});
