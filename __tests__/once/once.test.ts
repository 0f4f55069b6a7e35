import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import { getEventListeners } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { CannotAcquireLockError, type Lease, LockLostError, LockRegistry, LockTimeoutError } from '../../lib';
import type { Results } from '../../lib/core/backend';
import type { RedisLock } from '../../lib/core/lock';
import { Once } from '../../lib/once/once';
import { InMemoryLockRegistry, InMemoryLocks } from '../../lib/testing';
import { type Pair, pairsInMemory, SharedFixture } from '../semaphore-read-write/shared-fixture';
import { DISTINCT_TYPES } from '../support/lock-types';
import { startMonitor } from '../support/monitor';
import { describeReal } from '../support/redis';
import { until } from '../support/until';

const KEPT = { keepFor: 60_000 };

/** A task that ends when the test says so. */
function gated<T>(result: T) {
  let open = (): void => undefined;
  const gate = new Promise<void>((resolve) => {
    open = resolve;
  });
  const task = jest.fn(async (_lease?: Lease) => {
    await gate;
    return result;
  });
  return { task, open: () => open() };
}

/** What holds wherever the locks are. */
function theSameEverywhere(pair: () => Promise<Pair>): void {
  let one: Pair[0];
  let other: Pair[1];
  beforeEach(async () => {
    [one, other] = await pair();
  });

  it('A task of once runs once for all callers of two registries, who all have its result', async () => {
    const { task, open } = gated({ rows: [1, 2] });
    const calls = [one, one, other, other].map((registry) => registry.once('key', task, KEPT));
    await until(() => task.mock.calls.length > 0);
    open();
    expect(await Promise.all(calls)).toEqual(Array(4).fill({ rows: [1, 2] }));
    expect(task).toHaveBeenCalledTimes(1);
    expect(await other.once('key', task, KEPT)).toEqual({ rows: [1, 2] });
    expect(task).toHaveBeenCalledTimes(1);
    expect(one.obtain('key').isAcquiredInThisProcess).toBe(false);
  });

  it('A result of once is a copy for each caller, and may be nothing', async () => {
    const results = await Promise.all([one.once('key', () => [1], KEPT), one.once('key', () => [1], KEPT)]);
    expect(results[0]).not.toBe(results[1]);
    const nothing = jest.fn(() => undefined);
    for (const registry of [one, other]) expect(await registry.once('nothing', nothing, KEPT)).toBeUndefined();
    expect(nothing).toHaveBeenCalledTimes(1);
  });

  it('A result of once is forgotten when it is asked for, and after keepFor', async () => {
    let count = 0;
    const next = () => ++count;
    expect(await one.forget('key')).toBe(false);
    expect(await one.once('key', next, KEPT)).toBe(1);
    expect(await other.forget('key')).toBe(true);
    expect(await other.once('key', next, { keepFor: 50 })).toBe(2);
    await until(async () => (await one.once('key', next, { keepFor: 50 })) > 2);
  });

  it('An error of the task of once rejects the callers of its process, and is not kept', async () => {
    const failing = jest.fn(() => Promise.reject(new Error('no token')));
    const calls = [one.once('key', failing, KEPT), one.once('key', failing, KEPT)];
    for (const call of calls) await expect(call).rejects.toThrow('no token');
    expect(failing).toHaveBeenCalledTimes(1);
    expect(await other.once('key', () => 'token', KEPT)).toBe('token');
  });

  it('A caller of once that waits leaves after its waitTime, or by its signal, and the task goes on', async () => {
    const { task, open } = gated('done');
    const first = one.once('key', task, KEPT);
    await until(() => task.mock.calls.length > 0);
    for (const registry of [one, other]) {
      await expect(registry.once('key', task, { ...KEPT, waitTime: 20 })).rejects.toThrow(LockTimeoutError);
      const controller = new AbortController();
      const aborted = registry.once('key', task, { ...KEPT, signal: controller.signal });
      controller.abort(new Error('enough'));
      await expect(aborted).rejects.toThrow('enough');
    }
    open();
    expect(await first).toBe('done');
    expect(task).toHaveBeenCalledTimes(1);
  });

  it('A call of once leaves nothing at its signal', async () => {
    const { signal } = new AbortController();
    await Promise.all([1, 2].map(() => one.once('key', () => 1, { ...KEPT, signal })));
    expect(getEventListeners(signal, 'abort')).toEqual([]);
  });

  it('A caller of once that leaves does not end the waiting of others of its process', async () => {
    const lease = await other.obtain('key').lock();
    const staying = one.once('key', () => 'result', KEPT);
    await expect(one.once('key', () => 'result', { ...KEPT, waitTime: 20 })).rejects.toThrow(LockTimeoutError);
    await lease.unlock();
    expect(await staying).toBe('result');
  });

  it('A caller of once whose waiting was given up leaves nothing that would run its task', async () => {
    const lease = await other.obtain('key').lock();
    const task = jest.fn(() => 1);
    await expect(one.once('key', task, { ...KEPT, waitTime: 20 })).rejects.toThrow(LockTimeoutError);
    await lease.unlock();
    expect(await other.once('key', () => 2, KEPT)).toBe(2);
    expect(task).not.toHaveBeenCalled();
  });

  it('A task of once works on other keys, and rejects at once for its own key, which it would wait for', async () => {
    const nested = one.once('a', () => one.once('b', () => 'b', KEPT), KEPT);
    expect(await nested).toBe('b');
    const own = one.once('c', () => one.once('c', () => 'c', KEPT), KEPT);
    await expect(own).rejects.toThrow(CannotAcquireLockError);
    await expect(own).rejects.toThrow('The task of once("c") would wait for its own result: a deadlock');
    expect(await one.run('d', () => one.once('d', () => 'd', KEPT))).toBe('d');
  });

  it('A caller of once that has the lock does not wait for callers that wait for the lock', async () => {
    const task = jest.fn(() => 'outside');
    const { task: holding, open } = gated('held');
    const inside = one.run('key', async () => {
      await holding();
      return one.once('key', () => 'inside', KEPT);
    });
    await until(() => holding.mock.calls.length > 0);
    const outside = [one, other].map((registry) => registry.once('key', task, KEPT));
    await sleep(20);
    open();
    expect(await Promise.all([inside, ...outside])).toEqual(['inside', 'inside', 'inside']);
    expect(task).not.toHaveBeenCalled();
  });

  it('A result of once whose lock was lost is not kept, and its caller learns of the loss', async () => {
    const { task, open } = gated('late');
    const losing = one.once('key', task, KEPT);
    await until(() => task.mock.calls.length > 0);
    await other.obtain('key').forceUnlock();
    const lease = await other.obtain('key').lock();
    open();
    await expect(losing).rejects.toThrow(LockLostError);
    await lease.unlock();
    expect(await other.once('key', () => 'mine', KEPT)).toBe('mine');
  });

  it('A caller of once that comes after the lock of a running task was lost runs its own', async () => {
    const { task, open } = gated('late');
    const losing = one.once('key', task, KEPT);
    const lost = expect(losing).rejects.toThrow(LockLostError);
    await until(() => task.mock.calls.length > 0);
    await other.obtain('key').forceUnlock();
    await expect(task.mock.calls[0]?.[0]?.renew()).rejects.toThrow(LockLostError);
    expect(await one.once('key', () => 'mine', KEPT)).toBe('mine');
    open();
    await lost;
  });

  it('A result of once of over 1 MiB, or without a text, is refused, and is not kept', async () => {
    const long = one.once('key', () => 'x'.repeat(2 ** 20), KEPT);
    await expect(long).rejects.toThrow(/The result of once\("key"\) is not kept: it has 1048578 bytes, and 1048576/);
    const wide = one.once('key', () => 'é'.repeat(2 ** 19), KEPT);
    await expect(wide).rejects.toThrow('it has 1048578 bytes');
    expect(await one.once('just', () => 'x'.repeat(2 ** 20 - 2), KEPT)).toHaveLength(2 ** 20 - 2);
    const serialize = (): string => 5 as never;
    await expect(one.once('key', () => 5, { ...KEPT, serialize })).rejects.toThrow(
      'Expected `serialize(result of "key")` to be a string, got 5 (number)',
    );
    const cyclic: { self?: unknown } = {};
    cyclic.self = cyclic;
    await expect(one.once('key', () => cyclic, KEPT)).rejects.toThrow(TypeError);
    expect(await other.once('key', () => 'short', KEPT)).toBe('short');
  });

  it('The options serialize and deserialize of once make the text of the result, and the result of the text', async () => {
    const dates = {
      ...KEPT,
      serialize: (date: Date) => date.toISOString(),
      deserialize: async (text: string) => new Date(text),
    };
    const now = new Date();
    for (const registry of [one, other]) expect(await registry.once('key', () => now, dates)).toEqual(now);
  });

  it('A call of once is checked, and rejects after the registry was closed', async () => {
    const call = (options: object, task: unknown = () => 1) => one.once('key', task as () => number, options as never);
    await expect(call({})).rejects.toThrow('Expected `keepFor` to be a number, got undefined');
    await expect(call({ keepFor: 0 })).rejects.toThrow(RangeError);
    await expect(call({ ...KEPT, waitTime: 0 })).rejects.toThrow(RangeError);
    await expect(call({ ...KEPT, ttl: 5 })).rejects.toThrow('Unknown option `ttl` (5)');
    await expect(call(KEPT, 5)).rejects.toThrow('Expected `task` to be a function, got 5 (number)');
    const refused = /^Expected the braces in ".*a\{b" to make a hash tag/;
    await expect(one.once('a{b', () => 1, KEPT)).rejects.toMatchObject({
      name: 'RangeError',
      message: expect.stringMatching(refused),
    });
    await expect(one.forget('a{b')).rejects.toMatchObject({
      name: 'RangeError',
      message: expect.stringMatching(refused),
    });
    await expect(call({ ...KEPT, signal: AbortSignal.abort(new Error('early')) })).rejects.toThrow('early');
    const waiting = other.once('key', () => other.obtain('other').lock(), KEPT);
    const lease = await one.obtain('held').lock();
    const waits = other.once('held', () => 1, KEPT);
    await waiting;
    await Promise.all([other.close({ timeout: 0 }), expect(waits).rejects.toThrow('its registry is closed')]);
    await expect(other.once('key', () => 1, KEPT)).rejects.toThrow('its registry is closed');
    await lease.unlock();
  });
}

describe('Once whose results are slow', () => {
  const reads: ((text: string | undefined) => void)[] = [];
  const forget = jest.fn(() => Promise.resolve(true));
  let registry: InMemoryLockRegistry;
  let once: Once;
  beforeEach(() => {
    reads.length = 0;
    registry = new InMemoryLockRegistry({ locks: new InMemoryLocks() });
    const results = {
      read: () => new Promise<string | undefined>((resolve) => reads.push(resolve)),
      forget,
    };
    once = new Once(results as never as Results, 1_000);
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
    await expect(forgetting).rejects.toThrow(CannotAcquireLockError);
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

describe('Once with locks in memory', () => {
  afterEach(() => void jest.useRealTimers());

  const pairs = pairsInMemory();
  theSameEverywhere(async () => pairs());

  it('A result of once in memory is kept for keepFor by the fake timers of a test', async () => {
    jest.useFakeTimers();
    const [one] = pairs();
    let count = 0;
    const next = () => one.once('key', () => ++count, { keepFor: 1_000 });
    expect([await next(), await next()]).toEqual([1, 1]);
    jest.advanceTimersByTime(1_000);
    expect(await next()).toBe(2);
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

  it('A caller of once whose own task runs waits for its end, longer than its waitTime', async () => {
    jest.useFakeTimers();
    const [one] = pairs();
    const { task, open } = gated('done');
    const [own, joined] = [1, 2].map(() => one.once('key', task, { ...KEPT, waitTime: 50 }));
    await Promise.all([jest.advanceTimersByTimeAsync(100), expect(joined).rejects.toThrow(LockTimeoutError)]);
    open();
    expect(await own).toBe('done');
  });

  it('A registry of the application that knows no results says so', async () => {
    class Fake extends LockRegistry {
      obtain(): never {
        throw new Error('not used');
      }
    }
    await expect(new Fake().once('key', () => 1, KEPT)).rejects.toThrow('Fake keeps no results');
    await expect(new Fake().forget('key')).rejects.toThrow('Fake keeps no results');
  });
});

describeReal.each(DISTINCT_TYPES)('Once with locks of type %s', (lockType) => {
  const fixture = SharedFixture.install();
  theSameEverywhere(() => fixture.pair({ lockType, fairLockWaitTimeout: 1_000 }));

  it('A result of once that is there costs one command', async () => {
    const [one, other] = await fixture.pair({ lockType });
    await one.once('key', () => 1, KEPT);
    await other.once('key', () => 1, KEPT); // The server knows the script now.
    const monitor = await startMonitor();
    try {
      expect(await other.once('key', () => 2, KEPT)).toBe(1);
      await monitor.settle();
      const sent = monitor.commands.filter(
        ({ source, args }) => source !== 'lua' && args.some((arg) => arg.includes(fixture.registryKey)),
      );
      expect(sent.map(({ name }) => name)).toEqual(['EVALSHA']);
    } finally {
      monitor.stop();
    }
  });

  it('Waiters of once in other processes have the result when it is there, while the lock is still held', async () => {
    const registries = await Promise.all([1, 2, 3, 4].map(() => fixture.registry({ lockType })));
    const { task, open } = gated('result');
    const first = registries[0]?.once('key', task, KEPT);
    await until(() => task.mock.calls.length > 0);
    const waiting = registries.slice(1).map((registry) => registry.once('key', task, KEPT));
    await sleep(50);
    // As the script of `once` does, but the lock stays held.
    const name = `{${fixture.registryKey}:key}:once`;
    await fixture.client.set(name, '"early"', { expiration: { type: 'PX', value: 60_000 } });
    await fixture.client.publish(name, '');
    expect(await Promise.all(waiting)).toEqual(['early', 'early', 'early']);
    open();
    expect(await first).toBe('result');
  });

  it('A key with a result of once is no lock, and has an expiry', async () => {
    const [one] = await fixture.pair({ lockType });
    await one.once('key', () => 1, KEPT);
    const left = await fixture.keys();
    const name = `{${fixture.registryKey}:key}:once`;
    expect(left).toContain(name);
    for (const key of left) expect(await fixture.client.pTTL(key)).toBeGreaterThan(0);
    const listed = [];
    for await (const { key } of one.list()) listed.push(key);
    expect(listed).toEqual([]);
  });
});
