import { describe, expect, it } from '@jest/globals';
import type { Hold } from '../../lib/core/hold';
import { Wait } from '../../lib/core/wait';
import { contended } from '../../lib/kinds/common/contended';
import { REDISSON, RedissonFormat } from '../../lib/kinds/redisson/kind';
import { SPRING, SpringFormat } from '../../lib/kinds/spring/kind';
import { LockNames } from '../../lib/redis/names';
import { FakeClock } from '../support/fake-clock';
import { fakeParts, holdOf } from '../support/fake-redis';

const TTL = 60_000;
const time = FakeClock.install();

interface Setting {
  readonly polls?: boolean;
  readonly redisson?: boolean;
  readonly cluster?: boolean;
  /** Whether this process can listen. */
  readonly heard?: boolean;
  readonly more?: object;
}

function start({ polls, redisson, cluster = false, heard = true, more }: Setting = {}) {
  const fake = fakeParts({ lockType: redisson ? 'redisson' : polls ? 'spin' : 'pub-sub', ...more });
  const { parts, redis, subscriber } = fake;
  redis.isCluster = cluster;
  subscriber.mayListen = heard;
  const format = new (redisson ? RedissonFormat : SpringFormat)(parts.redis, parts.settings);
  const protocols = contended(parts, format);
  const names = new LockNames('r', 'k');
  const lock = protocols.open(names);
  const wait = new Wait('k', 10_000, undefined);
  const attempt = (reply: unknown, hold = holdOf(lock)) => {
    const answer = lock.attempt(hold, 300);
    redis.last.reply(reply);
    return answer;
  };
  const release = (reply: unknown, now?: number, atSliceEnd?: boolean) => {
    const { release: call } = lock as unknown as { release(...args: unknown[]): Promise<unknown> };
    const found = call.call(lock, 'me:1', 300, undefined, now, atSliceEnd);
    redis.last.reply(reply);
    return found;
  };
  const confirm = (reply: unknown, now = time.now, callers = 2) => {
    const confirmed = lock.confirmOrRelease?.({ owner: 'me:1', ttl: TTL, timeout: 300, now, callers });
    redis.last.reply(reply);
    return confirmed;
  };
  /** A caller that was refused waits, and the subscription is open. */
  const listen = async (owner = 'other:1') => {
    const refusal = await attempt([50_000, owner]);
    void lock.wait(holdOf(lock), refusal as never, wait);
    if (subscriber.all.length > 0 && !subscriber.last.isOpen) subscriber.last.opened();
    await time.advance(0);
  };
  /** ms for which it stands back. */
  const standsBack = () => {
    time.delays = [];
    void lock.standBack(wait);
    return time.delays[0] ?? 0;
  };
  return { ...fake, protocols, names, lock, wait, attempt, release, confirm, listen, standsBack };
}

describe('What is sent', () => {
  it.each<[string, Setting, string[]]>([
    ['spring', {}, ['r:k']],
    ['spring', { more: { fencing: true } }, ['r:k', '{r:k}:fence']],
    ['redisson', { redisson: true }, ['r:k']],
    ['redisson', { redisson: true, more: { fencing: true } }, ['r:k', 'redisson_lock_token:{r:k}']],
  ])('%s %j: the keys of an attempt, and of a confirmation', (_, setting, keys) => {
    const { lock, redis } = start(setting);
    const hold = holdOf(lock);
    time.now += 5;
    void lock.attempt(hold, 250);
    expect(redis.last).toMatchObject({ keys, args: ['me:1', '60000'], timeout: 250, sentAt: 1_000 });
    // The mark of others that wait is read at the end of a slice.
    void lock.confirmOrRelease?.({ owner: 'me:1', ttl: TTL, timeout: 200, now: 1_010, callers: 2 });
    expect(redis.last).toMatchObject({ keys: [...keys, '{r:k}:wanted'], timeout: 200, sentAt: 1_010 });
  });

  const PLAIN = ['PUBLISH', 'redisson_lock__channel:{r:k}'];
  const SHARDED = ['SPUBLISH', 'redisson_lock__channel:{r:k}'];
  const on = { shardedSubscriptionMode: 'on' };

  it.each<[Setting, string[]]>([
    [{}, ['r-channel']],
    [{ more: { legacyChannel: true } }, ['r-channel', 'too']],
    [{ redisson: true }, PLAIN],
    [{ redisson: true, cluster: true }, SHARDED],
    [{ redisson: true, more: on }, SHARDED],
    [{ redisson: true, cluster: true, more: { shardedSubscriptionMode: 'off' } }, PLAIN],
  ])('%j: how a release is published', async (setting, notification) => {
    const { lock, redis, release } = start(setting);
    await release(2);
    expect(redis.last.args).toEqual(['me:1', 'UNLINK', ...notification]);
    void lock.release('me:1', 250, { left: 5, minHold: 10, ttl: 20 });
    expect(redis.last).toMatchObject({ keys: ['r:k'], timeout: 250, sentAt: time.now });
    expect(redis.last.args).toEqual(['me:1', '5', '10', '20', ...notification]);
    // The server refused UNLINK: so DEL is sent from then on.
    void lock.release('me:1', 250, undefined, 1_234);
    expect(redis.last).toMatchObject({ keys: ['r:k'], timeout: 250, sentAt: 1_234 });
    expect(redis.last.args).toEqual(['me:1', 'DEL', ...notification]);
  });

  // The token count where tokens are of use, own listeners and what releases where others may listen.
  it.each<[string, Setting, number, string]>([
    ['in its slice', {}, 49, 'confirm or release (spring) | me:1 | 60000'],
    ['in its slice, fencing', { more: { fencing: true } }, 49, 'confirm or release (spring) | me:1 | 60000 | 1000'],
    ['after it', {}, 50, 'confirm or release (spring) | me:1 | 60000 |  | 0 | us | UNLINK | r-channel'],
    [
      'after it, redisson',
      { redisson: true },
      50,
      'confirm or release (redisson) | me:1 | 60000 |  | 0 | us | UNLINK | PUBLISH | redisson_lock__channel:{r:k}',
    ],
    ['after it, nobody can listen', { heard: false }, 400, 'release (spring) | me:1 | UNLINK | r-channel'],
    ['in it, nobody can listen', { heard: false }, 399, 'confirm or release (spring) | me:1 | 60000'],
    ['after it, waiters poll', { polls: true }, 400, 'release (spring) | me:1 | UNLINK | r-channel'],
    ['after it, listeners cannot be counted', { cluster: true }, 50, 'release (spring) | me:1 | UNLINK | r-channel'],
    ['never passed on', { more: { handOver: 0 } }, 0.8, 'release (spring) | me:1 | UNLINK | r-channel'],
    ['a slice of 80 ms', { more: { handOver: 80 } }, 79, 'confirm or release (spring) | me:1 | 60000'],
    ['a polled slice', { polls: true, more: { handOver: 80 } }, 79, 'confirm or release (spring) | me:1 | 60000'],
  ])('%s %j: a hold goes to the next caller here', async (_, setting, passed, sent) => {
    const { lock, redis, attempt, settings } = start(setting);
    time.now += 0.7;
    await attempt(settings.fencing ? '7' : 1);
    redis.sent.length = 0;
    const now = 1_000 + passed;
    expect(lock.mayPassOn(now, {} as Hold)).toBe(!sent.includes('UNLINK'));
    void lock.confirmOrRelease?.({ owner: 'me:1', ttl: TTL, timeout: 300, now, callers: 2 });
    expect(redis.last.sentAt).toBe(now);
    expect(redis.news).toEqual([sent]);
  });

  it('A slice counts from the last acquisition, also where a confirmation at its end kept the lock', async () => {
    const { lock, attempt, confirm } = start();
    await attempt(1);
    expect(lock.mayPassOn(1_050, {} as Hold)).toBe(false);
    expect(await confirm(1, 1_049)).toMatchObject({ until: 1_049 + TTL - 61 });
    expect(lock.mayPassOn(1_050, {} as Hold)).toBe(false);
    await confirm(1, 1_060);
    expect([1_109, 1_110].map((now) => lock.mayPassOn(now, {} as Hold))).toEqual([true, false]);
    time.now = 1_200.9;
    await attempt(1);
    expect([1_249, 1_250].map((now) => lock.mayPassOn(now, {} as Hold))).toEqual([true, false]);
  });

  it('It is renewed, detached and adopted as its format says, and nothing of it is left after its longest ttl', async () => {
    const { lock, redis, protocols, names } = start({ more: { fencing: true } });
    const settled: unknown[] = [];
    lock.renew('me:1', TTL, 300, (ownership) => settled.push(ownership));
    expect(redis.last).toMatchObject({ keys: ['r:k'], args: ['me:1', '60000'], timeout: 300 });
    redis.last.reply(1);
    expect(settled).toEqual([{ state: 'held', until: 1_000 + TTL - 61 }]);
    const { travel } = lock;
    const detached = [1, 0, -1].map((reply) => {
      const found = travel?.detach('me:1', 'you', 5_000, 300);
      redis.last.reply(reply);
      return found;
    });
    expect(await Promise.all(detached)).toEqual(['released', 'expired', 'stolen']);
    expect(redis.last).toMatchObject({ keys: ['r:k'], args: ['me:1', 'you', '5000'], timeout: 300 });
    const adopted = ['9', 0, -1].map((reply) => {
      const grant = travel?.adopt('you', holdOf(lock), 200);
      redis.last.reply(reply);
      return grant;
    });
    expect(await Promise.all(adopted)).toMatchObject([{ granted: true, fencingToken: 9 }, 'expired', 'stolen']);
    expect(redis.last).toMatchObject({ keys: ['r:k', '{r:k}:fence'], args: ['you', 'me:1', '60000'], timeout: 200 });
    expect(lock.orphanLife(holdOf(lock))).toBe(TTL);
    expect(() => protocols.open(new LockNames('r', 'a{b'))).toThrow(RangeError);
    expect(names.lock).toBe('r:k');
  });

  it.each<[string, Setting, string[]]>([
    ['plain', {}, ['NUMSUB', 'r-channel:r:k']],
    ['sharded', { redisson: true, cluster: true }, ['SHARDNUMSUB', 'redisson_lock__channel:{r:k}']],
    ['that cannot be counted', { cluster: true }, ['', '']],
    ['none: they poll', { polls: true }, ['', '']],
  ])('An inspection counts the listeners: %s', (_, setting, args) => {
    const { protocols, names, redis } = start(setting);
    void protocols.inspector.inspect(names, 200);
    expect(redis.last).toMatchObject({ args, timeout: 200 });
    expect(protocols.held()).toContain(setting.redisson ? 'HEXISTS' : 'GET');
  });

  it('The waiters of a spin lock poll, those of the others listen', async () => {
    for (const [definition, lockType] of [
      [SPRING, 'spin'],
      [SPRING, 'pub-sub'],
      [REDISSON, 'redisson'],
    ] as const) {
      const { parts, subscriber, wait } = start({ more: { lockType } });
      const lock = definition(parts).open(new LockNames('r', 'k'));
      void lock.wait(holdOf(lock), { granted: false, remaining: 9_000, roundTrip: 1 }, wait);
      expect(subscriber.all).toHaveLength(lockType === 'spin' ? 0 : 1);
    }
  });
});

describe('What is answered', () => {
  it('A grant, and a refusal, say what is known', async () => {
    const { attempt, listen, lock, redis, subscriber } = start();
    expect(await attempt(1)).toMatchObject({ granted: true, owner: 'me:1', until: 1_000 + TTL - 61 });
    const hold = holdOf(lock);
    time.now += 7;
    expect(await attempt([500, 'other:1'], hold)).toEqual({
      granted: false,
      remaining: 500,
      owner: 'other:1',
      roundTrip: 7,
      hintsBefore: undefined,
    });
    await listen();
    expect(await attempt([-1])).toMatchObject({ remaining: Infinity, owner: undefined, hintsBefore: 1 });
    // The release may come after the attempt was refused, and before the answer is read.
    const refusal = lock.attempt(holdOf(lock), 300);
    for (const message of ['r:k', 'r:other']) subscriber.last.onMessage(message);
    redis.last.reply([-1]);
    expect(await refusal).toMatchObject({ hintsBefore: 1 });
    expect(await attempt([-1])).toMatchObject({ hintsBefore: 2 });
  });

  it('A message about a release has the holder ask whether it still has the lock', async () => {
    const { lock, listen, subscriber } = start();
    await listen();
    let asked = 0;
    subscriber.last.onMessage('r:k');
    lock.holder = { confirmSoon: () => asked++ } as unknown as Hold;
    for (const message of ['r:k', 'left to pollers', 'r:k:2']) subscriber.last.onMessage(message);
    expect(asked).toBe(1);
  });

  it.each<[string, unknown, string, number]>([
    ['what it found', 1, 'released', 0],
    ['that nobody has it', 0, 'expired', 0],
    ['that another has it', -1, 'stolen', 0],
    ['that nobody could be told', [1, -1], 'released', 1],
  ])('A release says %s', async (_, reply, found, count) => {
    const { release, warnings } = start();
    expect([await release(reply), warnings()]).toEqual([found, count]);
  });

  // ms for which this process then leaves the lock to others.
  it.each<[string, Setting, unknown, atSliceEnd: boolean, isListening: boolean, ms: number]>([
    ['nobody else', {}, 1, false, false, 0],
    ['one listener, itself', {}, [1, 1], false, true, 0],
    ['nobody: its own connection was lost', {}, 1, false, true, 0],
    ['two listeners', {}, [1, 2], false, true, 4],
    ['two listeners, of which none is its own', {}, [1, 2], false, false, 6],
    ['nobody, at the end of a slice', {}, 1, true, false, 4],
    ['five, at the end of a slice', {}, [1, 5], true, false, 12],
    ['not known how many, and it listens', {}, [1, -2], false, true, 4],
    ['not known how many, and it does not listen', {}, [1, -2], false, false, 0],
    ['it cannot be known, and it listens', { cluster: true }, [1, 5], false, true, 4],
    ['it cannot be known, and it does not', { cluster: true }, [1, 5], false, false, 0],
    ['of a lock that was gone', {}, [0, 5], true, false, 0],
    ['they poll', { polls: true }, 1, true, false, 110],
    ['they poll, in a slice', { polls: true }, 1, false, false, 0],
  ])('After a release to %s %j', async (_, setting, reply, atSliceEnd, isListening, ms) => {
    const { attempt, release, listen, standsBack } = start(setting);
    await attempt(1);
    if (isListening) await listen();
    await release(reply, undefined, atSliceEnd);
    expect(standsBack()).toBeCloseTo(ms);
  });

  it('After a release it stands back also where the one connection that heard it may be that of another registry', async () => {
    for (const [isCounted, ms] of [
      [true, 0],
      [false, 4],
    ] as const) {
      const { attempt, subscriber, release, listen, standsBack } = start();
      subscriber.isCounted = isCounted;
      await attempt(1);
      await listen();
      await release([1, 1]);
      expect(standsBack()).toBeCloseTo(ms);
    }
  });

  it('The message of its own release takes a step off, though it comes before the reply', async () => {
    const { lock, redis, subscriber, attempt, listen, standsBack } = start();
    await attempt(1);
    await listen();
    const released = lock.release('me:1', 300);
    subscriber.last.onMessage('r:k');
    redis.last.reply([1, 2]);
    await released;
    expect(standsBack()).toBeCloseTo(2);
  });

  it('A lock that is kept is not left to others by this process, and a later release is forgotten', async () => {
    const { lock, redis, attempt, release, standsBack } = start();
    await attempt(1);
    const kept = lock.release('me:1', 300, { left: 5, minHold: 10, ttl: 20 }, undefined);
    redis.last.reply([1, 7]);
    expect([await kept, standsBack()]).toEqual(['released', 0]);
    await release([1, 3]);
    expect(standsBack()).toBe(8);
    await release(1);
    expect(standsBack()).toBe(0);
  });

  it('A confirmation at the end of a slice may find that others have it, and that the lock is gone', async () => {
    const { redis, attempt, confirm, listen, standsBack } = start({ more: { fencing: true } });
    await attempt('7');
    expect(await confirm('8 5', 1_010)).toMatchObject({ fencingToken: 8, moreTokens: 4 });
    expect(await confirm([0, 0], 1_050)).toBe('expired');
    expect(standsBack()).toBe(0);
    time.now = 1_060;
    expect(await confirm([1, 3], 1_050)).toBe('released');
    // Four steps of the ten ms that the answer took; two, where it is not known how many others there are.
    expect(standsBack()).toBe(40);
    expect(await confirm([1, -2], 1_060)).toBe('released');
    expect(standsBack()).toBe(4);
    await listen();
    await confirm([1, 3], 1_060);
    expect(redis.last.args[3]).toBe('1'); // it is no other listener itself
  });

  it('A process that polls has learnt nothing where it found no other one, and its next attempt was granted', async () => {
    const { lock, attempt, release } = start({ polls: true });
    await attempt(1);
    lock.mayPassOn(time.now, holdOf(lock));
    await release(1, time.now, false);
    expect(lock.hasLearnt).toBe(false);
    await release(1, time.now, true);
    expect(lock.hasLearnt).toBe(true);
    await attempt(1);
    expect(lock.hasLearnt).toBe(false);
    for (const owner of ['one:1', 'other:1', 'third:1']) await attempt([50_000, owner]);
    await attempt(1);
    expect(lock.hasLearnt).toBe(true);
    expect(start({ more: { sharedWithPollers: true } }).lock.hasLearnt).toBe(true);
  });

  it('A process that listens has learnt something where others do, and once it has waited', async () => {
    const { lock, attempt, release, listen } = start();
    await attempt(1);
    lock.mayPassOn(time.now, holdOf(lock));
    await release(1);
    expect(lock.hasLearnt).toBe(false);
    await release([1, 3]);
    expect(lock.hasLearnt).toBe(true);
    await release(1);
    await listen();
    expect(lock.hasLearnt).toBe(true);
  });

  it('A release at the end of a slice in place of a confirmation is followed by a pause', async () => {
    const { attempt, confirm, standsBack, subscriber } = start({ polls: true });
    await attempt(1);
    time.now += 400;
    expect(await confirm(1)).toBe('released');
    expect(standsBack()).toBeCloseTo(110);
    expect(start().subscriber.kinds).toEqual(['false,true']);
    expect(subscriber.kinds).toEqual([]);
  });

  it('A refusal counts for how often a waiter polls, where it cannot listen', async () => {
    const delay = async (setting: Setting) => {
      const { lock, attempt, wait } = start(setting);
      for (const owner of ['a', 'b', 'c']) await attempt([50_000, owner]);
      const refusal = await attempt([50_000, 'd']);
      time.delays = [];
      void lock.wait(holdOf(lock), refusal as never, wait);
      return time.delays.at(-1);
    };
    expect([await delay({ polls: true }), await delay({ heard: false }), await delay({})]).toEqual([12.5, 12.5, 100]);
  });

  it('A refusal does not count for that beside pollers, unless the waiter holds other locks', async () => {
    const { lock, attempt, wait } = start({ polls: true, more: { sharedWithPollers: true } });
    for (const owner of ['a', 'b', 'c']) await attempt([50_000, owner]);
    const refusal = await attempt([50_000, 'd']);
    time.delays = [];
    for (const value of [false, true]) {
      Object.defineProperty(wait, 'holdsOthers', { value, configurable: true });
      void lock.wait(holdOf(lock), refusal as never, wait);
    }
    expect(time.delays).toEqual([100, 12.5]);
  });

  it('A lock that is kept, or detached, is no turn that a waiter missed: it polls as before', async () => {
    const { lock, attempt, wait } = start({ polls: true });
    for (const owner of ['a:1', 'detached@a:1', 'a:1']) await attempt([50_000, owner]);
    const refusal = await attempt([50_000, 'kept@a:1']);
    time.delays = [];
    void lock.wait(holdOf(lock), refusal as never, wait);
    expect(time.delays).toEqual([100]);
  });

  it.each([
    ['another owner', 'b:1', 100],
    ['nobody: it was detached', 'detached@b:1', 1_000],
    ['nobody: it is kept', 'kept@b:1', 1_000],
  ])('A waiter that is told nothing polls as one without messages, once the lock went to %s', async (_, owner, ms) => {
    const { lock, attempt, listen, wait } = start();
    await listen('a:1');
    for (const one of ['a:1', owner]) {
      const refusal = await attempt([50_000, one]);
      time.delays = [];
      void lock.wait(holdOf(lock), refusal as never, wait);
    }
    expect(time.delays.at(-1)).toBe(ms);
  });
});

describe('A lock that pollers take too', () => {
  const shared = (more: Setting = {}) => start({ ...more, more: { sharedWithPollers: true } });

  it('It is left to them after five pauses, and announced if nobody took it back', async () => {
    const { lock, redis, attempt, release, standsBack } = shared();
    await attempt(1);
    redis.sent.length = 0;
    time.now = 1_000 + 724;
    expect(lock.mayPassOn(1_724, {} as Hold)).toBe(false);
    await release(1);
    await attempt(1);
    expect(redis.news[0]).toMatch(/^release /);
    time.now = 1_725;
    void lock.confirmOrRelease?.({ owner: 'me:1', ttl: TTL, timeout: 300, now: 1_725, callers: 1 });
    void lock.release('me:1', 300, { left: 5, minHold: 10, ttl: 20 });
    expect(redis.news.map((sent) => sent.slice(0, 5))).toEqual(['leave', 'keep ']);
    await release([1, 3]);
    expect(redis.news).toEqual(['leave to pollers (spring) | me:1 | UNLINK | r-channel']);
    expect(standsBack()).toBe(145);
    await time.advance(145);
    expect(standsBack()).toBe(0);
    expect(redis.news).toEqual([]);
    await time.advance(100);
    expect(redis.last).toMatchObject({ keys: ['r:k'], timeout: 1_000 });
    redis.last.fail(new Error('closed'));
    expect(redis.news).toEqual(['notify (spring) | r-channel']);
  });

  it('It is not passed on within its slice when the next pause is due', async () => {
    const { lock, attempt, release } = shared({ polls: true });
    await attempt(1);
    expect(lock.mayPassOn(1_399, {} as Hold)).toBe(true);
    time.now = 1_500;
    await release(1);
    await attempt(1);
    expect([1_724, 1_725].map((now) => lock.mayPassOn(now, {} as Hold))).toEqual([true, false]);
  });

  it('It is announced by nobody when the registry is closed, and a lock that was gone is not left', async () => {
    const { redis, attempt, release, standsBack } = shared();
    await attempt(1);
    time.now = 1_800;
    await release(0);
    expect(standsBack()).toBe(0);
    await release(1);
    redis.isClosed = true;
    redis.sent.length = 0;
    await time.advance(500);
    expect(redis.sent).toEqual([]);
  });

  it('A pause for them may begin while this process gives precedence to others', async () => {
    const { lock, attempt, release, listen, subscriber, wait, standsBack } = shared();
    await listen();
    subscriber.last.onMessage('r:other');
    expect(standsBack()).toBe(0);
    subscriber.last.onMessage('left to pollers');
    expect(standsBack()).toBe(245);
    await attempt(1);
    await release([1, 5]);
    expect(standsBack()).toBe(10);
    let isOver = false;
    void lock.standBack(wait)?.then(() => (isOver = true));
    subscriber.last.onMessage('left to pollers');
    await time.advance(100);
    expect(isOver).toBe(false);
    await time.advance(200);
    expect(isOver).toBe(true);
    // A message about a release ends such a pause.
    subscriber.last.onMessage('left to pollers');
    expect(standsBack()).toBe(245);
    subscriber.last.onMessage('r:k');
    time.now += 50;
    expect(standsBack()).toBe(0);
  });

  it.each([
    ['listens', false, 300],
    ['polls', true, 1_000],
  ])('A waiter that %s polls faster when holders change without a message', async (_, polls, usually) => {
    const { lock, attempt, wait } = shared({ polls });
    const delay = async (remaining: number) => {
      const hold = holdOf(lock);
      time.now += 10;
      const refusal = await attempt([remaining, 'other'], hold);
      time.delays = [];
      void lock.wait(holdOf(lock), refusal as never, wait);
      return time.delays.at(-1);
    };
    expect(await delay(TTL - 50)).toBe(100);
    time.now += usually + 240;
    expect(await delay(TTL)).toBe(50);
  });
});
