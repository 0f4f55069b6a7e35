import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { CannotAcquireLockError, type Lease, type LeaseEvalOptions } from '../../lib';
import type { Results } from '../../lib/core/backend';
import type { RedisLock } from '../../lib/core/lock';
import { Scope } from '../../lib/core/scope';
import { Once } from '../../lib/once/once';
import { InMemoryLockRegistry, InMemoryLocks } from '../../lib/testing';
import { pairsInMemory } from '../kinds/shared/shared-fixture';
import { gated, KEPT, onceContract } from '../once/once-contract';
import { untilCollected } from '../support/collected';
import { FakeClock } from '../support/fake-clock';
import { until } from '../support/until';

/** Results that are read like this, also under the lock. */
function resultsOf(read: (name: string, timeout: number) => Promise<string | undefined>, more: object = {}): Results {
  const begin: Results['begin'] = async ({ result }, timeout) => ({ text: await read(result, timeout), mark: '' });
  return { read, begin, ...more } as never;
}

describe('Once whose results are slow', () => {
  const reads: ((text: string | undefined) => void)[] = [];
  const forget = jest.fn(() => Promise.resolve(true));
  let registry: InMemoryLockRegistry;
  let once: Once;
  beforeEach(() => {
    reads.length = 0;
    registry = new InMemoryLockRegistry({ locks: new InMemoryLocks() });
    const read = () => new Promise<string | undefined>((resolve) => reads.push(resolve));
    once = new Once(resultsOf(read, { forget }), 1_000);
  });

  const lock = () => registry.obtain('key') as RedisLock;
  const answered = async (text: string | undefined) => {
    await until(() => reads.length > 0);
    reads.shift()?.(text);
  };

  it('A task of once does not run when its callers have left while the result was looked for under the lock', async () => {
    const task = jest.fn(() => 1);
    const controller = new AbortController();
    const call = once.once(lock(), task, { ...KEPT, signal: controller.signal });
    await answered(undefined);
    await until(() => lock().isAcquiredInThisProcess);
    controller.abort(new Error('enough'));
    await expect(call).rejects.toThrow('enough');
    await answered(undefined);
    await until(() => !lock().isAcquiredInThisProcess);
    expect(task).not.toHaveBeenCalled();
  });

  it('A task of once does not run when its lock was lost while the result was looked for under it', async () => {
    const locks = new InMemoryLocks();
    registry = new InMemoryLockRegistry({ locks });
    const task = jest.fn(() => 1);
    const call = once.once(lock(), task, KEPT);
    await answered(undefined);
    await until(() => reads.length > 0);
    locks.expire('key');
    const lost = { name: 'LockLostError', reason: 'expired' };
    await expect(registry.renewLock('key')).rejects.toMatchObject(lost);
    await answered(undefined);
    await expect(call).rejects.toMatchObject(lost);
    expect(task).not.toHaveBeenCalled();
  });

  it('A task of once that would wait for its own result is refused, also where its lock was evicted meanwhile', async () => {
    registry = new InMemoryLockRegistry({ locks: new InMemoryLocks(), cacheCapacity: 1 });
    const evicted = lock();
    const nested = new Promise((resolve) => {
      const task = () => resolve(once.once(lock(), () => 'nested', KEPT));
      void once.once(evicted, task, KEPT);
    });
    registry.obtain('another');
    expect(lock()).not.toBe(evicted);
    await answered(undefined);
    await answered(undefined);
    await expect(nested).rejects.toThrow('The task of once("key") would wait for its own result: a deadlock');
  });

  it('A task of once does not run when the result is there as soon as its process has the lock', async () => {
    const task = jest.fn(() => 'mine');
    const call = once.once(lock(), task, KEPT);
    await answered(undefined);
    await answered('"kept"');
    expect(await call).toBe('kept');
    expect(task).not.toHaveBeenCalled();
  });

  it('A result of once that cannot be forgotten rejects with the reason', async () => {
    forget.mockRejectedValueOnce(new Error('no answer'));
    const forgetting = once.forget(lock());
    await expect(forgetting).rejects.toMatchObject({ name: 'CannotAcquireLockError', cause: { message: 'no answer' } });
    await expect(forgetting).rejects.toThrow('The result of "key" may not be forgotten: the client failed: no answer');
  });

  /** The task ends, and Redis first answers this when its result is to be kept. */
  const keptAfter = async (answer: string) => {
    const keep = jest.fn<Lease['eval']>().mockRejectedValueOnce(new Error(answer)).mockResolvedValue(1);
    const text = once.once(lock(), (lease: Lease) => Object.assign(lease, { eval: keep }) && 'mine', KEPT);
    await answered(undefined);
    await answered(undefined);
    return { text, keep };
  };

  it('A result of once is kept by a second try where Redis answers an error that passes', async () => {
    const { text, keep } = await keptAfter('LOADING Redis is loading the dataset in memory');
    expect(await text).toBe('mine');
    expect(keep).toHaveBeenCalledTimes(2);
  });

  it('A result of once that Redis refuses to keep rejects at once with its answer', async () => {
    const { text, keep } = await keptAfter('OOM command not allowed');
    await expect(text).rejects.toThrow(CannotAcquireLockError);
    await expect(text).rejects.toThrow('The result of "key" may not be kept: OOM command not allowed');
    expect(keep).toHaveBeenCalledTimes(1);
  });

  it('A caller of once does not have a result that its process has forgotten, though another one reads that', async () => {
    const early = once.once(lock(), () => 'early', KEPT);
    await once.forget(lock());
    const later = once.once(lock(), () => 'later', KEPT);
    await answered('"forgotten"');
    expect(await early).toBe('forgotten');
    await answered('"new"');
    expect(await later).toBe('new');
  });
});

const pairs = pairsInMemory();

describe('Once with locks in memory', () => {
  onceContract(async () => pairs());

  it('A caller of once has its own task run once the task of its process has unlocked its lease', async () => {
    const [one] = pairs();
    let later: string | undefined;
    const task = async (lease: Lease): Promise<void> => {
      await lease.unlock();
      later = await one.once('key', () => 'own', KEPT);
    };
    await expect(one.once('key', task, KEPT)).rejects.toMatchObject({ name: 'NotLockOwnerError' });
    expect(later).toBe('own');
  });

  it('A registry keeps nothing of a task of once that has ended (P8)', async () => {
    const [one] = pairs();
    const scopes: WeakRef<object>[] = [];
    const task = () => void scopes.push(new WeakRef(Scope.current() as Scope));
    for (const key of ['key', 'other']) await one.once(key, task, KEPT);
    await untilCollected(scopes[0] as WeakRef<object>);
    expect(scopes).toHaveLength(2);
  });

  it('A result of once that was kept before its lock was lost is that of its callers', async () => {
    const locks = new InMemoryLocks();
    const [one] = pairs(locks);
    const taskEnded = 'tracing:redis-lock-registry:hold:asyncEnd';
    const expire = (): void => locks.expire('key');
    subscribe(taskEnded, expire);
    const result = one.once('key', () => 'kept', KEPT).finally(() => unsubscribe(taskEnded, expire));
    expect(await result).toBe('kept');
  });
});

it('Callers of once that wait together are all told that Redis is silent, and not that somebody has the lock', async () => {
  const locks = new InMemoryLocks();
  const [one] = pairs(locks);
  locks.goSilent();
  const keys = ['a', 'b', 'c', 'd', 'e', 'f'].flatMap((key) => [key, key, key]);
  const calls = keys.map((key) =>
    one.once(key, () => 1, { ...KEPT, waitTime: 50 }).catch((error: Error) => error.name),
  );
  expect(new Set(await Promise.all(calls))).toEqual(new Set(['CannotAcquireLockError']));
  locks.comeBack();
});

describe('Once whose time is that of a test', () => {
  const time = FakeClock.install();

  it('A caller of once whose own task runs waits for its end, longer than its waitTime', async () => {
    const [one] = pairs();
    const { task, open } = gated('done');
    const [own, joined] = [1, 2].map(() => time.settled(one.once('key', task, { ...KEPT, waitTime: 50 })));
    expect((await joined)?.error).toMatchObject({ name: 'LockTimeoutError', waitTime: 50 });
    await time.advance(50);
    open();
    expect(await own).toMatchObject({ value: 'done' });
  });

  it.each([
    ['the result', 0, 'did not answer in time'],
    ['the lock', 1, 'has not answered for 450 ms'],
    ['the result under the lock', 1, 'did not answer in time'],
    ['the lock again', 1, 'has not answered for 350 ms'],
  ])('A caller of once is told that Redis is silent when that is asked for %s', async (asked, answers, how) => {
    const locks = new InMemoryLocks();
    const [one, other] = pairs(locks);
    let reads = 0;
    const read = async () => (reads++ < answers ? undefined : new Promise<undefined>(() => undefined));
    const watch = () => ({ pause: 100, on: () => () => undefined });
    const once = new Once(resultsOf(read, { watch }), 1_000);
    if (asked === 'the lock again') await other.obtain('key').lock();
    if (asked === 'the lock') locks.goSilent();
    const call = time.settled(once.once(one.obtain('key') as RedisLock, () => 1, { ...KEPT, waitTime: 400 }));
    await time.advance(100);
    locks.goSilent();
    const message = `Lock "key" could not be acquired: Redis ${how}`;
    expect((await call)?.error).toMatchObject({ name: 'CannotAcquireLockError', message });
  });

  it('A result of once that is stored late is kept until keepFor after the end of its task', async () => {
    const [one] = pairs();
    const kept: string[] = [];
    const task = (lease: Lease) => {
      const stored = async (_script: string, options: LeaseEvalOptions = {}): Promise<unknown> => {
        kept.push(options.arguments?.[1] as string);
        if (time.now < 3_000) throw Object.assign(new Error('NOREPLICAS Not enough good replicas to write.'));
        return 1;
      };
      Object.assign(lease, { eval: stored });
      return 1;
    };
    const call = time.settled(one.once('key', task, { keepFor: 10_000 }));
    await time.advance(8_000);
    expect((await call)?.value).toBe(1);
    expect(kept[0]).toBe('10000');
    expect(Number(kept.at(-1))).toBeLessThan(8_000);
  });

  it('A caller of once that comes while the lock of a task that has failed is released runs its own task', async () => {
    const [one] = pairs();
    let release = (): void => undefined;
    const failing = (lease: Lease) => {
      const unlock = lease.unlock.bind(lease);
      const released = new Promise<void>((resolve) => (release = resolve));
      Object.assign(lease, { unlock: () => released.then(unlock) });
      throw new Error('no token');
    };
    const failed = time.settled(one.once('key', failing, KEPT));
    await time.advance(10);
    const later = time.settled(one.once('key', () => 'token', KEPT));
    await time.advance(10);
    release();
    expect((await failed)?.error).toMatchObject({ message: 'no token' });
    expect((await later)?.value).toBe('token');
  });

  it('What once asks has 50 ms to be answered, however short the waitTime', async () => {
    let answer = (_text: string): void => undefined;
    const read = () => new Promise<string>((resolve) => (answer = resolve));
    const once = new Once(resultsOf(read), 1_000);
    const [one] = pairs();
    const call = once.once(one.obtain('key') as RedisLock, () => 1, { ...KEPT, waitTime: 20 });
    const kept = expect(call).resolves.toBe('kept');
    await time.advance(69);
    answer('"kept"');
    await kept;
  });

  const asked = ['the result', 'the result under the lock'];

  it.each(asked)('A caller of once asks again for %s after a failure that passes', async (what) => {
    const failures = what === 'the result' ? [1, 2] : [2, 3];
    const read = jest.fn(async () => {
      if (failures.includes(read.mock.calls.length)) throw new Error('Socket closed unexpectedly');
      return undefined;
    });
    const [one] = pairs();
    const call = time.settled(new Once(resultsOf(read), 1_000).once(one.obtain('key') as RedisLock, () => 1, KEPT));
    expect((await call)?.value).toBe(1);
    expect(read).toHaveBeenCalledTimes(4);
  });

  it.each(asked)(
    'A caller of once for which %s was not read in unavailableAfter rejects with the reason',
    async (what) => {
      let reads = 0;
      const read = async () => {
        if (reads++ === 0 && what !== 'the result') return undefined;
        throw new Error('no answer');
      };
      const once = new Once(resultsOf(read), 1_000);
      const registry = new InMemoryLockRegistry({ locks: new InMemoryLocks(), unavailableAfter: 3_000 });
      const startedAt = time.now;
      const failed = await time.settled(once.once(registry.obtain('key') as RedisLock, () => 1, KEPT));
      expect(failed?.error).toMatchObject({
        name: 'CannotAcquireLockError',
        message: 'The result of "key" could not be read: the client failed: no answer',
      });
      expect(time.now - startedAt).toBeGreaterThan(1_900);
      expect(time.now - startedAt).toBeLessThanOrEqual(3_000);
    },
  );

  it('A caller of once whose result is not read yet rejects when its registry is closed', async () => {
    const once = new Once(
      resultsOf(() => new Promise(() => undefined)),
      1_000,
    );
    const [one] = pairs();
    const lock = one.obtain('key') as RedisLock;
    const calls = [1, 2].map(() => time.settled(once.once(lock, () => 1, KEPT)));
    await time.advance(0);
    await one.close();
    for (const call of calls) expect((await call)?.error).toMatchObject({ name: 'RegistryClosedError' });
  });

  it('A caller of once that came later than the leader goes on by itself when Redis was unavailable for that one', async () => {
    const startedAt = time.now;
    const read = async () => {
      if (time.now - startedAt < 3_500) throw new Error('no answer');
      return undefined;
    };
    const once = new Once(resultsOf(read), 1_000);
    const registry = new InMemoryLockRegistry({ locks: new InMemoryLocks(), unavailableAfter: 3_000 });
    const call = (name: string) =>
      once.once(registry.obtain('key') as RedisLock, () => name, KEPT).then(String, String);
    const first = [call('one'), call('two')];
    await time.advance(2_000);
    const last = call('three');
    await time.advance(3_000);
    const failure = 'CannotAcquireLockError: The result of "key" could not be read: the client failed: no answer';
    expect(await Promise.all(first)).toEqual([failure, failure]);
    expect(await last).toBe('three');
  });

  it('A caller of once whose result Redis refuses to read rejects at once, with all that have joined it', async () => {
    const read = jest.fn(() => Promise.reject(new Error('NOPERM no rights')));
    const once = new Once(resultsOf(read), 1_000);
    const [one] = pairs();
    const calls = [1, 2, 3].map(() => once.once(one.obtain('key') as RedisLock, () => 1, KEPT));
    for (const call of calls) {
      await expect(call).rejects.toMatchObject({
        name: 'CannotAcquireLockError',
        message: 'The result of "key" could not be read: NOPERM no rights',
      });
    }
    expect(read).toHaveBeenCalledTimes(1);
  });

  it.each<[string, 'never' | 'later' | 'meanwhile', number[]]>([
    ['after each pause', 'never', [0, 0, 100, 200]],
    ['when it is told so', 'later', [0, 0, 100, 150]],
    ['once more when it is told so while it looks', 'meanwhile', [0, 0, 100, 100]],
  ])('A caller of once that waits for the lock looks for the result %s', async (_, told, at) => {
    const [one, other] = pairs();
    const startedAt = time.now;
    const looked: number[] = [];
    const wakers = new Set<() => void>();
    const timeouts = new Set<number>();
    const read = async (name: string, timeout: number) => {
      looked.push(time.now - startedAt);
      timeouts.add(timeout);
      expect(name).toContain('once');
      if (told === 'meanwhile' && looked.length === 3) for (const wake of wakers) wake();
      if (looked.length === 2) throw new Error('a failure that the wait for the lock reports');
      return looked.length === at.length ? '"theirs"' : undefined;
    };
    const on = (wake: () => void) => {
      wakers.add(wake);
      return () => wakers.delete(wake);
    };
    const once = new Once(resultsOf(read, { watch: () => ({ pause: 100, on }) }), 1_000);
    const lease = await other.obtain('key').lock();
    const task = jest.fn(() => 'mine');
    const call = time.settled(once.once(one.obtain('key') as RedisLock, task, KEPT));
    await time.advance(150);
    if (told === 'later') for (const wake of wakers) wake();
    expect((await call)?.value).toBe('theirs');
    expect([looked, [...timeouts], wakers.size]).toEqual([at, [1_000], 0]);
    await lease.unlock();
    await time.advance(1_000);
    expect([task.mock.calls.length, looked.length]).toEqual([0, at.length]);
  });

  it('A caller of once whose task runs looks for no result meanwhile', async () => {
    const [one, other] = pairs();
    const read = jest.fn(async () => undefined);
    const watch = () => ({ pause: 100, on: () => () => undefined });
    const once = new Once(resultsOf(read, { watch }), 1_000);
    const lease = await other.obtain('key').lock();
    const { task, open } = gated('done');
    const call = once.once(one.obtain('key') as RedisLock, task, KEPT);
    await time.advance(50);
    await lease.unlock();
    await time.advance(10);
    expect(task).toHaveBeenCalledTimes(1);
    const { length } = read.mock.calls;
    await time.advance(1_000);
    expect(read).toHaveBeenCalledTimes(length);
    open();
    expect(await call).toBe('done');
  });

  it.each(['has left', 'has had the lock'])('A caller of once that %s looks for no result any more', async (how) => {
    const [one, other] = pairs();
    const read = jest.fn(async () => undefined);
    const watch = () => ({ pause: 100, on: () => () => undefined });
    const once = new Once(resultsOf(read, { watch }), 1_000);
    const lease = await other.obtain('key').lock();
    const failure = new Error('of the task');
    const task = () => Promise.reject(failure);
    const call = time.settled(once.once(one.obtain('key') as RedisLock, task, { ...KEPT, waitTime: 250 }));
    await time.advance(50);
    if (how === 'has had the lock') await lease.unlock();
    const error = how === 'has left' ? { name: 'LockTimeoutError', waitTime: 250 } : failure;
    expect((await call)?.error).toMatchObject(error);
    const { length } = read.mock.calls;
    await time.advance(1_000);
    expect(read).toHaveBeenCalledTimes(length);
    await lease.unlock();
  });
});

describe('Once with the fake timers of a test', () => {
  afterEach(() => void jest.useRealTimers());

  it('A result of once in memory is kept for keepFor by the fake timers of a test', async () => {
    jest.useFakeTimers();
    const [one] = pairs();
    let count = 0;
    const next = () => one.once('key', () => ++count, { keepFor: 1_000 });
    expect([await next(), await next()]).toEqual([1, 1]);
    jest.advanceTimersByTime(1_000);
    expect(await next()).toBe(2);
  });
});
