import { describe, expect, it } from '@jest/globals';
import type { EvalResult } from '../../lib/core/backend';
import { inspectorOf } from '../../lib/kinds/common/inspector';
import { leaseScripts } from '../../lib/kinds/common/lease-scripts';
import { resultsIn } from '../../lib/kinds/common/results';
import { SPRING_SCRIPTS, SpringFormat } from '../../lib/kinds/spring/kind';
import { LockNames } from '../../lib/redis/names';
import type { Redis } from '../../lib/redis/redis';
import type { Subscriber } from '../../lib/redis/subscriber';
import { FakeClock } from '../support/fake-clock';
import { FakeRedis, FakeSubscriber, fakeParts } from '../support/fake-redis';

const time = FakeClock.install();
const names = new LockNames('r', 'k');

describe('A script of the application', () => {
  const start = () => {
    const redis = new FakeRedis();
    const runner = leaseScripts(redis as unknown as Redis, () => 'local HELD');
    const run = (script = 'return 1', owner = 'me', keys: string[] = [], args: string[] = []) =>
      runner.run(names, owner, { script, keys, args }, 200);
    return { redis, runner, run };
  };

  it('A script gets its keys and arguments, then what the check before it takes off their ends', () => {
    const { redis, run } = start();
    void run('return 1', 'me', ['a', 'b'], ['c']);
    expect(redis.last).toMatchObject({
      keys: ['a', 'b', '{r:k}:evals:me', 'r:k'],
      args: ['c', '1', '1', 'me'],
      timeout: 200,
    });
    expect(redis.last.script.name).toBe("the application's");
  });

  it('A script is sent with the number of the oldest call of its owner that still waits', async () => {
    const { redis, run } = start();
    const numbers = () => redis.last.args.slice(0, 2).join();
    const first = run();
    const [{ reply }] = redis.sent as [FakeRedis['last']];
    void run().catch(() => undefined);
    const seen = [numbers()];
    void run('return 1', 'you');
    seen.push(numbers());
    reply(7);
    await first;
    const third = run();
    seen.push(numbers());
    redis.sent[1]?.fail(new Error('lost'));
    redis.last.reply(1);
    await third;
    void run();
    seen.push(numbers());
    expect(seen).toEqual(['1,2', '3,3', '2,4', '5,5']);
  });

  it.each<[string, first: string, isChecked: boolean, marks: boolean]>([
    ['one line', 'return 1', true, true],
    ['two lines', 'local a\nreturn a', true, true],
    ['flags', '#!lua flags=allow-stale\nreturn 1', false, true],
    ['flags alone', '#!lua', false, true],
    ['flags that forbid writing', '#!lua flags=no-writes\nreturn 1', false, false],
    ['flags that are none', 'return "#!lua flags=no-writes"', true, true],
    ['flags in another line', 'return\n#!lua flags=no-writes\n', true, true],
  ])('A script of %s is checked in its first line, behind its flags', (_, source, isFirst, marks) => {
    const { redis, run } = start();
    void run(source);
    const [shebang = ''] = isFirst ? [] : (/^#!.*\n?/.exec(source) ?? []);
    const { source: sent } = redis.last.script;
    const rest = source.slice(shebang.length);
    expect([sent.startsWith(`${shebang}do local lock, mark = `), sent.endsWith(` end ${rest}`)]).toEqual([true, true]);
    const check = sent.slice(shebang.length, sent.length - rest.length);
    expect(check).not.toMatch(/\n| {3}/);
    expect(check).toMatch(/local state .*local HELD if state then return { owner, state } end /);
    const bare = 'local state  local HELD if state then return { owner, state } end  end ';
    expect(check.includes(bare)).toBe(!marks);
    expect([check.includes("'GET', mark"), check.includes("'SET', mark")]).toEqual([marks, marks]);
  });

  it('A script is kept with its digest, the last hundred of them', () => {
    const { redis, run } = start();
    const sent = (i: number) => {
      void run(`return ${i}`);
      return redis.last.script;
    };
    const all = Array.from({ length: 100 }, (_, i) => sent(i));
    expect(all.map((_, i) => sent(i))).toEqual(all);
    expect(all.every((script, i) => sent(i) === script)).toBe(true);
    sent(100);
    expect([sent(1) === all[1], sent(0) === all[0]]).toEqual([true, false]);
  });

  it.each<[reply: unknown, EvalResult]>([
    [1, { held: true, reply: 1 }],
    [['me', 'expired'], { held: false, state: 'expired' }],
    [['me', 'stolen'], { held: false, state: 'stolen' }],
    [['me', 'other'], { held: true, reply: ['me', 'other'] }],
    [['you', 'stolen'], { held: true, reply: ['you', 'stolen'] }],
    [['me', 'stolen', 1], { held: true, reply: ['me', 'stolen', 1] }],
    ['me', { held: true, reply: 'me' }],
    [
      { 0: 'me', 1: 'stolen', length: 2 },
      { held: true, reply: { 0: 'me', 1: 'stolen', length: 2 } },
    ],
  ])('A script whose reply is %j', async (reply, expected) => {
    const { redis, run } = start();
    const result = run();
    redis.last.reply(reply);
    expect(await result).toEqual(expected);
  });

  it('A script that has run, and whose reply was lost, is an error', async () => {
    const { redis, run } = start();
    const result = run();
    redis.last.reply(['me', 'ran']);
    await expect(result).rejects.toThrow('it has run, but its reply was lost, and the client sent it again');
  });

  it('A script takes keys of the slot of its lock only', () => {
    const { redis, runner } = start();
    const place =
      (keys: string[], key = 'k') =>
      () =>
        runner.assertPlaced(new LockNames('r', key), { script: '', keys, args: [] });
    place(['far', 'away'])();
    expect(place([], 'a{b')).toThrow(RangeError);
    redis.isCluster = true; // where the slot is the length of the key here
    place(['abc', 'xyz'])();
    expect(place(['abc', 'away'])).toThrow(
      new RangeError(
        'Expected `keys[1]` to be in slot 3 of the cluster, as the lock "r:k" is, ' +
          'got "away" in slot 4: a common hash tag, "{...}", puts them together',
      ),
    );
  });
});

describe('An inspection', () => {
  const start = () => {
    const { parts, redis } = fakeParts({ fencing: true });
    const format = new SpringFormat(parts.redis, parts.settings);
    return { redis, inspector: inspectorOf(parts.redis, SPRING_SCRIPTS.inspection, format) };
  };
  const FREE = { owner: undefined, remaining: 0, fencingToken: undefined, waiting: undefined };
  const HELD = { owner: 'a', remaining: 5, fencingToken: 7, waiting: 3 };

  it.each<[reply: unknown, expected: object | undefined]>([
    [['', 0, '', -1], FREE],
    // Another program has written an empty text, without an expiry.
    [['', -1, '', -1], { ...FREE, owner: '', remaining: Number.POSITIVE_INFINITY }],
    [['', -2, '7', 0], { ...FREE, fencingToken: 7, waiting: 0 }],
    [['a', 5, '7', 3], HELD],
    [['a', -1, '', 1], { ...HELD, remaining: Number.POSITIVE_INFINITY, fencingToken: undefined, waiting: 1 }],
    [['a', 5, '7', 3, 2], { ...HELD, holders: 2 }],
    [['a', 5, '7', 3, 2, ''], { ...HELD, holders: 2 }],
    [['a', 5, '7', 3, 2, 'a b'], { ...HELD, holders: 2, owners: 'a b' }],
    [['a', 5, '7'], undefined],
    [['a', 5, '7', 3, 2, 'a b', 1], undefined],
    [['a', 5, '7', -2], undefined],
    [['a', 5, '7', 0.5], undefined],
    [['a', 5, 'x', 0], undefined],
    [[null, 5, '', 0], undefined],
    ['a', undefined],
  ])('An inspection whose reply is %j', async (reply, expected) => {
    const { redis, inspector } = start();
    const found = inspector.inspect(names, 200);
    expect(redis.last).toMatchObject({ keys: ['r:k', '{r:k}:fence'], args: ['', ''], timeout: 200 });
    redis.last.reply(reply);
    if (expected === undefined) await expect(found).rejects.toThrow('inspect (spring)');
    else expect(await found).toStrictEqual(expected);
  });

  it.each<[reply: unknown[], owners: string | undefined]>([
    [['', 0, '', -1], undefined],
    [['a', 5, '', -1], 'a'],
    [['a', 5, '', -1, 2, 'a b'], 'a b'],
  ])('An unlock by force that finds %j', async (reply, owners) => {
    const { redis, inspector } = start();
    const unlocking = inspector.forceUnlock(names, 200, 'by:0');
    time.now += 30;
    redis.last.reply(reply);
    await time.advance(0);
    const [, second] = redis.sent;
    expect(redis.sent).toHaveLength(owners === undefined ? 1 : 2);
    if (second !== undefined) {
      const mark = expect.stringMatching(/^\{r:k\}:evals:forced:/);
      const args = [owners, '60000', '0', 'r-channel'];
      expect(second).toMatchObject({ keys: ['r:k', '{r:k}:fence', mark], args, timeout: 170 });
      second.reply([1, 0]);
    }
    expect(await unlocking).toMatchObject({ owner: reply[0] || undefined });
  });

  it('An unlock by force that is answered with nonsense is an error', async () => {
    const { redis, inspector } = start();
    const unlocking = inspector.forceUnlock(names, 200, 'by:0');
    redis.last.reply(['a', 5, '', -1]);
    await time.advance(0);
    redis.last.reply('PONG');
    await expect(unlocking).rejects.toThrow('unlock by force (spring)');
  });
});

describe('A result', () => {
  const start = (subscriber?: FakeSubscriber) => {
    const redis = new FakeRedis();
    return { redis, results: resultsIn(redis as unknown as Redis, subscriber as unknown as Subscriber, 100) };
  };

  it('A result is read, and forgotten', async () => {
    const { redis, results } = start();
    const answer = async <T>(asked: Promise<T>, reply: unknown): Promise<T> => {
      expect(redis.last).toMatchObject({ keys: ['n'], args: [], timeout: 200 });
      redis.last.reply(reply);
      return asked;
    };
    expect(await answer(results.read('n', 200), null)).toBeUndefined();
    expect(await answer(results.read('n', 200), 7)).toBe('7');
    const keys = { result: 'n', forgotten: 'm', lock: 'l' };
    const forget = async (reply: number) => {
      const forgetting = results.forget(keys, 'mark', 200);
      expect(redis.last).toMatchObject({ keys: ['n', 'm', 'l'], args: ['mark', '86400000'], timeout: 200 });
      redis.last.reply(reply);
      return forgetting;
    };
    expect(await forget(1)).toBe(true);
    expect(await forget(0)).toBe(false);
    const begin = async (reply: unknown) => {
      const beginning = results.begin(keys, 200);
      expect(redis.last).toMatchObject({ keys: ['n', 'm'], args: [], timeout: 200 });
      redis.last.reply(reply);
      return beginning;
    };
    expect(await begin([null, null])).toEqual({ text: undefined, mark: '' });
    expect(await begin(['text', 'mark'])).toEqual({ text: 'text', mark: 'mark' });
    const forgot = 'forget a result | mark | 86400000';
    const begun = 'begin a result';
    expect(redis.news).toEqual(['read a result', 'read a result', forgot, forgot, begun, begun]);
  });

  it('A result is read again after a pause, which is longer while messages come', () => {
    const subscriber = new FakeSubscriber();
    const watch = start(subscriber).results.watch('n');
    let woken = 0;
    expect(watch.pause).toBe(100);
    const stop = watch.on(() => woken++);
    expect([watch.pause, subscriber.last.channels]).toEqual([100, ['n']]);
    subscriber.last.opened();
    const stopOther = watch.on(() => (woken += 10));
    expect([watch.pause, woken, subscriber.all.length]).toEqual([1_000, 1, 1]);
    subscriber.last.onMessage('n');
    expect(woken).toBe(12);
    stop();
    subscriber.last.onMessage('n');
    expect(woken).toBe(22);
    stopOther();
  });

  it('A subscription for results ends a second after the last waiter, and is made anew for the next one', async () => {
    const subscriber = new FakeSubscriber();
    const watch = start(subscriber).results.watch('n');
    const stops = [watch.on(() => undefined), watch.on(() => undefined)];
    subscriber.last.opened();
    stops[0]?.();
    await time.advance(1_500);
    expect(subscriber.last.isOpen).toBe(true);
    stops[1]?.();
    await time.advance(999);
    expect(subscriber.last.isOpen).toBe(true);
    await time.advance(1);
    expect([subscriber.last.isOver, watch.pause]).toEqual([true, 100]);
    watch.on(() => undefined);
    expect(subscriber.all).toHaveLength(2);
  });

  it('A result is polled for where there are no messages', () => {
    const away = new FakeSubscriber();
    away.isThere = false;
    for (const subscriber of [undefined, away]) {
      const watch = start(subscriber).results.watch('n');
      watch.on(() => undefined)();
      expect(watch.pause).toBe(100);
    }
  });
});
