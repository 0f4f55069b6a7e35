import { describe, expect, it } from '@jest/globals';
import type { Refusal } from '../../lib/core/protocol';
import { Wait } from '../../lib/core/wait';
import { redissonKey } from '../../lib/kinds/redisson/keys';
import { lockOfRedissonQueue } from '../../lib/kinds/redisson-fair/keys';
import {
  PastPositions,
  REDISSON_FAIR,
  RedissonFairFormat,
  RedissonFairProtocol,
} from '../../lib/kinds/redisson-fair/kind';
import { CommandTimeoutError } from '../../lib/redis/failure';
import { LockNames } from '../../lib/redis/names';
import { FakeClock } from '../support/fake-clock';
import { fakeParts, holdOf } from '../support/fake-redis';

const TTL = 60_000;
const time = FakeClock.install();
const names = new LockNames('r', 'k');
const KEYS = ['r:k', 'redisson_lock_queue:{r:k}', 'redisson_lock_timeout:{r:k}'];
const PUBLISH = ['PUBLISH', 'redisson_lock__channel:{r:k}'];

function start(more: object = {}) {
  const fake = fakeParts(more);
  const { parts, redis } = fake;
  const format = new RedissonFairFormat(parts.redis, parts.settings);
  const pastPositions = new PastPositions();
  const lock = new RedissonFairProtocol(names, { parts, format, pastPositions });
  const attempt = (reply: unknown, hold = holdOf(lock)) => {
    const answer = lock.attempt(hold, 300);
    redis.last.reply(reply);
    return answer;
  };
  const release = (reply: unknown, owner = 'me:1') => {
    const found = lock.release(owner, 300);
    redis.last.reply(reply);
    return found;
  };
  const wait = new Wait('k', 10_000, undefined);
  const standsBack = () => {
    time.delays = [];
    void lock.standBack(wait);
    return time.delays[0] ?? 0;
  };
  return { ...fake, lock, pastPositions, wait, attempt, release, standsBack };
}

describe('A redisson-fair lock', () => {
  it.each([
    ['whose caller waits', true, '1'],
    ['whose caller does not', false, '0'],
  ])('An attempt %s', (_, waits, says) => {
    const { lock, redis } = start({ fencing: true, fairLockWaitTimeout: 1_000.5 });
    const hold = holdOf(lock, 'me:1', { waits });
    hold.owner = 'me:2';
    void lock.attempt(hold, 250);
    expect(redis.last).toMatchObject({
      keys: [...KEYS, 'redisson_lock_token:{r:k}'],
      args: ['me:1', '60000', '1001', ...PUBLISH, says, 'me:2'],
      timeout: 250,
    });
  });

  it('It has learnt something once it had a position in the queue', async () => {
    const { lock, attempt } = start();
    await attempt(1);
    expect(lock.hasLearnt).toBe(false);
    await attempt([500, 'they', 0]);
    expect(lock.hasLearnt).toBe(true);
  });

  it('Its releases, its renewal, and what may be left of it', async () => {
    const { lock, redis, release, standsBack } = start();
    expect(await release(2)).toBe('released');
    expect(redis.last).toMatchObject({ keys: KEYS, args: ['me:1', '0', '300000', ...PUBLISH, 'UNLINK'], timeout: 300 });
    expect([redis.last.script.name, standsBack()]).toEqual(['release (redisson-fair)', 0]);
    void lock.release('me:1', 200);
    expect(redis.last.args.at(-1)).toBe('DEL');
    const kept = lock.release('me:1', 200, { left: 5, minHold: 10, ttl: 20 });
    expect(redis.last).toMatchObject({ args: ['me:1', '0', '300000', ...PUBLISH, '5', '10', '20'], timeout: 200 });
    redis.last.reply(1);
    expect(await kept).toBe('released');
    const settled: unknown[] = [];
    lock.renew('me:1', TTL, 300, (ownership) => settled.push(ownership));
    redis.last.reply(1);
    expect(settled).toEqual([{ state: 'held', until: 1_000 + TTL - 61 }]);
    const orphans = [false, true].map((waits) => lock.orphanLife(holdOf(lock, 'me:1', { waits })));
    expect([lock.mayPassOn(), ...orphans]).toEqual([false, TTL, TTL + 300_000 + 10_000]);
  });

  it.each<[reply: unknown, found: string, warnings: number]>([
    [1, 'released', 0],
    [[1, 3], 'released', 0],
    [[1, -1], 'released', 1],
    [0, 'expired', 0],
    [-1, 'stolen', 0],
  ])('A release that is answered with %j', async (reply, found, count) => {
    const { release, warnings } = start();
    expect([await release(reply), warnings()]).toEqual([found, count]);
  });

  it('Its attempts say who has it, and note which of their names is in the queue', async () => {
    const { lock, attempt, subscriber, wait, redis, pastPositions, release } = start();
    const grant = await attempt(1, holdOf(lock, 'me:0'));
    expect(grant).toMatchObject({ granted: true, owner: 'me:0', until: 1_000 + TTL - 61 });
    // It had no position that would have to be removed again.
    await release(1, 'me:0');
    redis.sent.length = 0;
    pastPositions.removeAgain();
    expect(redis.sent).toHaveLength(0);
    const hold = holdOf(lock);
    hold.owner = 'me:2';
    time.now += 5;
    const refusal = await attempt([800, 'they:1', 1], hold);
    expect(refusal).toEqual({ granted: false, remaining: 800, owner: 'they:1', roundTrip: 5, hintsBefore: undefined });
    // Its position is under its ticket, since nothing was written before.
    expect(hold.owner).toBe('me:1');
    void lock.wait(hold, refusal as Refusal, wait);
    expect(subscriber.last.channels).toEqual(['redisson_lock__channel:{r:k}:me:1']);
    subscriber.last.opened();
    // The release may come after the attempt was refused, and before the answer is read.
    const asked = lock.attempt(hold, 300);
    for (const message of ['0', '1']) subscriber.last.onMessage(message);
    redis.last.reply([800, 'they:1', 1]);
    expect(await asked).toMatchObject({ hintsBefore: 1 });
    expect(await attempt([800, 'they:1', 1], hold)).toMatchObject({ hintsBefore: 2 });
    expect(await attempt([800, 'they:1', 1], holdOf(lock, 'me:7', { waits: false }))).toMatchObject({
      hintsBefore: undefined,
    });
    expect(await attempt([800, 'they:1', 1], hold)).toMatchObject({ hintsBefore: 2 });
    expect(subscriber.kinds).toEqual(['false,true']);
    // Another caller of this process has a position, and a channel, of its own.
    const next = holdOf(lock, 'me:3');
    const refused = await attempt([800, 'they:1', 2], next);
    void lock.wait(next, refused as Refusal, wait);
    expect(subscriber.last.channels).toEqual(['redisson_lock__channel:{r:k}:me:3']);
    expect(() => attempt([800, 'they:1'])).rejects.toThrow('acquire (redisson-fair)');
    // What was written last may have to be removed again.
    redis.sent.length = 0;
    await release(1, 'me:1');
    pastPositions.removeAgain();
    expect(redis.sent).toHaveLength(1);
    await release(1, 'me:3');
    redis.sent.length = 0;
    pastPositions.removeAgain();
    expect(redis.last).toMatchObject({ keys: KEYS, args: ['me:3', '0', '300000', ...PUBLISH, 'UNLINK'], timeout: 300 });
    pastPositions.close();
  });

  it('A position that an attempt renamed is removed under its new name', async () => {
    const { lock, attempt, release, redis, pastPositions } = start();
    const hold = holdOf(lock);
    await attempt([800, 'they:1', 1], hold);
    hold.owner = 'me:9';
    // An attempt may have written that.
    hold.attempts.doubt(new Promise(() => {}));
    await attempt([800, 'they:1', 1], hold);
    expect(hold.owner).toBe('me:9');
    await attempt(1, hold);
    await release(1, 'me:1');
    redis.sent.length = 0;
    pastPositions.removeAgain();
    expect(redis.sent).toHaveLength(0);
    await release(1, 'me:9');
    redis.isClosed = true;
    pastPositions.removeAgain();
    redis.isClosed = false;
    await time.advance(0);
    expect(redis.news.filter((sent) => sent.includes('me:9'))).toHaveLength(1);
    pastPositions.removeAgain();
    await time.advance(0);
    expect(redis.news).toHaveLength(1);
    pastPositions.close();
  });

  it('Its pauses for pollers, of which the first in the queue notices them', async () => {
    const { lock, redis, subscriber, attempt, release, standsBack } = start({ sharedWithPollers: true });
    const script = () => redis.last.script.name;
    await attempt(1);
    time.now += 724;
    await release(1);
    expect(script()).toBe('release (redisson-fair)');
    await attempt(1);
    time.now += 1;
    await release(-1);
    expect([script(), standsBack()]).toEqual(['leave to pollers (redisson-fair)', 0]);
    await release(1);
    expect(standsBack()).toBe(145);
    // An earlier owner is released late: the pause goes on.
    for (const reply of [0, -1]) {
      await release(reply, 'me:0');
      expect(standsBack()).toBe(145);
    }
    redis.sent.length = 0;
    time.delays = [];
    await time.advance(244);
    expect(redis.sent).toEqual([]);
    await time.advance(1);
    expect(redis.last).toMatchObject({ args: ['me:1', '0', '300000', ...PUBLISH, 'UNLINK'], timeout: 300 });
    redis.last.fail(new Error('lost'));
    await time.advance(0);
    // A waiter that is not the first sees other holders, and does not take them for pollers.
    const delay = async (remaining: number, place: number, ticket = 'me:2') => {
      const hold = holdOf(lock, ticket);
      time.now += 10;
      const refusal = await attempt([remaining, 'they:1', place], hold);
      time.delays = [];
      void lock.wait(hold, refusal as Refusal, new Wait('k', 10_000, undefined));
      return time.delays[0];
    };
    await delay(59_000, 2);
    time.now += 540;
    expect(await delay(TTL, 2)).toBe(100);
    await delay(59_000, 1);
    time.now += 480;
    expect(await delay(TTL, 1)).toBe(12.5);
    await release(1, 'me:2');
    await attempt(1);
    // A message has said that there was a change.
    time.now += 60_000;
    await delay(59_000, 1, 'me:8');
    subscriber.last.opened();
    await delay(59_000, 1, 'me:8');
    subscriber.last.onMessage('0');
    time.now += 540;
    expect(await delay(TTL, 1, 'me:8')).toBe(1_000);
  });

  it('It is made for a registry, whose connection says when it was made again', async () => {
    const { parts, redis } = start();
    let reconnect = (): void => undefined;
    let stops = 0;
    const onReconnect = (listener: () => void) => {
      reconnect = listener;
      return () => void stops++;
    };
    Object.assign(redis, { monitor: { onReconnect } });
    const protocols = REDISSON_FAIR(parts);
    const lock = protocols.open(names);
    const attempt = lock.attempt(holdOf(lock), 300);
    redis.last.reply([800, 'they:1', 1]);
    await attempt;
    const released = lock.release('me:1', 300);
    redis.last.reply(1);
    await released;
    redis.sent.length = 0;
    reconnect();
    expect(redis.sent).toHaveLength(1);
    expect([time.pending, stops]).toEqual([1, 0]);
    protocols.close?.();
    expect([time.pending, stops]).toEqual([0, 1]);
    void protocols.inspector.inspect(names, 200);
    expect(redis.last).toMatchObject({ keys: KEYS, timeout: 200 });
    expect(protocols.held()).toContain('HEXISTS');
    redis.isCluster = true;
    for (const key of ['a{b', '{}a']) expect(() => protocols.open(new LockNames('r', key))).toThrow(RangeError);
    protocols.open(new LockNames('r', '{a}b'));
  });
});

describe('Positions that were given up', () => {
  const start = () => {
    const positions = new PastPositions();
    const log: string[] = [];
    const settles: { resolve(): void; reject(error: unknown): void }[] = [];
    const add = (lock: object, name: string) =>
      positions.add(lock, () => {
        log.push(name);
        return new Promise((resolve, reject) => settles.push({ resolve: () => resolve(undefined), reject }));
      });
    const seen = async (ms = 0) => {
      await time.advance(ms);
      return log.splice(0).join();
    };
    return { positions, add, seen, settles };
  };

  it('The last one of each lock is removed again after each reconnect, for half a minute', async () => {
    const { positions, add, seen, settles } = start();
    const [one, other] = [{}, {}];
    add(one, 'a');
    await seen(20_000);
    add(one, 'b');
    add(other, 'c');
    expect([time.pending, time.keepingAlive]).toEqual([2, 0]);
    await seen(29_999);
    positions.removeAgain();
    expect(await seen()).toBe('b,c');
    for (const { resolve } of settles) resolve();
    expect(await seen(1)).toBe('');
    positions.removeAgain();
    expect(await seen()).toBe('');
  });

  it('A removal that fails is repeated for ten seconds, and does not keep the process alive', async () => {
    const { positions, add, seen, settles } = start();
    add({}, 'a');
    positions.removeAgain();
    expect(await seen()).toBe('a');
    settles.pop()?.reject(new Error('lost'));
    expect([await seen(9), time.keepingAlive]).toEqual(['', 0]);
    expect(await seen(1)).toBe('a');
    time.now += 9_985;
    settles.pop()?.reject(new Error('lost'));
    expect(await seen(1_000)).toBe('');
  });

  it('A removal in flight is followed by one more when the connection was made again meanwhile, and not doubled', async () => {
    const { positions, add, seen, settles } = start();
    add({}, 'a');
    positions.removeAgain();
    positions.removeAgain();
    expect(await seen(5_000)).toBe('a');
    settles.pop()?.resolve();
    expect(await seen()).toBe('a');
    // A late answer counts, and is waited for.
    let answer = (): void => undefined;
    settles.pop()?.reject(new CommandTimeoutError(5, new Promise<void>((resolve) => (answer = resolve))));
    expect(await seen(3_000)).toBe('');
    answer();
    expect(await seen()).toBe('');
    positions.removeAgain();
    expect(await seen()).toBe('a');
    settles.pop()?.resolve();
    await seen();
    // Its time is over.
    positions.removeAgain();
    await seen();
    positions.removeAgain();
    await time.advance(10_000);
    settles.pop()?.resolve();
    expect(await seen()).toBe('');
  });

  it('Nothing follows when the registry is closed', async () => {
    const { positions, add, seen, settles } = start();
    add({}, 'a');
    positions.removeAgain();
    positions.removeAgain();
    positions.close();
    expect([await seen(), time.pending]).toEqual(['a', 0]);
    settles.pop()?.resolve();
    expect(await seen()).toBe('');
    positions.removeAgain();
    expect(await seen()).toBe('');
  });
});

describe('The names of Redisson', () => {
  it.each([
    ['redisson_lock_queue:{a}', 'a'],
    ['redisson_lock_queue:{a:b}', 'a:b'],
    ['redisson_lock_queue:{a}b', '{a}b'],
    ['redisson_lock_queue:b{a}', 'b{a}'],
    ['redisson_lock_queue:{a}{b}', '{a}{b}'],
    ['redisson_lock_queue:a', 'a'],
    ['redisson_lock_queuea', undefined],
    ['a:redisson_lock_queue:', undefined],
    ['other:{a}', undefined],
  ])('The key %s is the queue of the lock %s', (name, lock) => {
    expect(lockOfRedissonQueue(name)).toBe(lock);
  });

  it.each<[key: string, isCluster: boolean, name: string | undefined]>([
    ['a', true, 'p:{r:a}'],
    ['{t}a', true, 'p:r:{t}a'],
    ['a{', false, 'p:r:a{'],
    ['a{', true, undefined],
    ['{}a', true, undefined],
  ])('A key beside the lock %s (on a cluster: %s) is %s', (key, isCluster, name) => {
    const named = () => redissonKey(new LockNames('r', key), 'p', isCluster);
    if (name === undefined) expect(named).toThrow(RangeError);
    else expect(named()).toBe(name);
  });
});
