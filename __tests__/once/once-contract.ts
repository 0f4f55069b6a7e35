import { AsyncLocalStorage } from 'node:async_hooks';
import { getEventListeners } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import { inspect } from 'node:util';
import { beforeEach, expect, it, jest } from '@jest/globals';
import { CannotAcquireLockError, type Lease, LockLostError, LockTimeoutError, NotLockOwnerError } from '../../lib';
import type { Pair } from '../kinds/shared/shared-fixture';
import { until } from '../support/until';

/** ms; in that time Redis answers, also on a busy machine. */
const WAIT = 500;

export const KEPT = { keepFor: 59_999.5 };

/** A task that ends when the test says so. */
export function gated<T>(result: T) {
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

/** What `once` does, wherever the locks are. */
export function onceContract(pair: () => Promise<Pair>): void {
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
      await expect(registry.once('key', task, { ...KEPT, waitTime: WAIT })).rejects.toThrow(LockTimeoutError);
      const controller = new AbortController();
      const aborted = registry.once('key', task, { ...KEPT, signal: controller.signal });
      controller.abort(new Error('enough'));
      await expect(aborted).rejects.toThrow('enough');
    }
    open();
    expect(await first).toBe('done');
    expect(task).toHaveBeenCalledTimes(1);
  });

  it('A call of once leaves nothing at its signal, and nothing at that of a lease around it', async () => {
    const { signal } = new AbortController();
    await Promise.all([1, 2].map(() => one.once('key', () => 1, { ...KEPT, signal })));
    expect(getEventListeners(signal, 'abort')).toEqual([]);
    const around = await one.run('k', (lease) => one.once('k', () => 1, KEPT).then(() => lease.signal));
    expect(getEventListeners(around, 'abort')).toEqual([]);
  });

  it('A caller of once that leaves does not end the waiting of others of its process', async () => {
    const lease = await other.obtain('key').lock();
    const staying = one.once('key', () => 'result', KEPT);
    await expect(one.once('key', () => 'result', { ...KEPT, waitTime: WAIT })).rejects.toThrow(LockTimeoutError);
    await lease.unlock();
    expect(await staying).toBe('result');
  });

  it('A caller of once whose waiting was given up leaves nothing that would run its task', async () => {
    const lease = await other.obtain('key').lock();
    const task = jest.fn(() => 1);
    await expect(one.once('key', task, { ...KEPT, waitTime: WAIT })).rejects.toThrow(LockTimeoutError);
    await lease.unlock();
    expect(await other.once('key', () => 2, KEPT)).toBe(2);
    expect(task).not.toHaveBeenCalled();
  });

  it.each(['waitTime', 'signal'])(
    'A caller of once that has left by its %s leaves the lock to the next one, which runs what it gave itself',
    async (by) => {
      const lease = await other.obtain('key').lock();
      const ran: string[] = [];
      const controller = new AbortController();
      const of = (name: string, keepFor: number) => {
        const serialize = (result: string) => `${result}, written by ${name}`;
        const task = () => {
          ran.push(name);
          return name;
        };
        return [task, { keepFor, serialize, deserialize: String }] as const;
      };
      const [task, given] = of('one', 60_000);
      const leaving = { ...given, ...(by === 'signal' ? { signal: controller.signal } : { waitTime: WAIT }) };
      const left = one.once('key', task, leaving).catch((error: Error) => error);
      const staying = ['two', 'three'].map((name) => one.once('key', ...of(name, 50)));
      await sleep(20);
      controller.abort(new Error('enough'));
      expect(await left).toBeInstanceOf(by === 'signal' ? Error : LockTimeoutError);
      await lease.unlock();
      expect(await Promise.all(staying)).toEqual(Array(2).fill('two, written by two'));
      expect(ran).toEqual(['two']);
      // Kept as long as the caller said whose task ran.
      await until(async () => (await one.once('key', ...of('four', 50))) === 'four, written by four');
    },
  );

  it('Many callers of once that leave together leave the lock to the one that stays', async () => {
    const lease = await other.obtain('key').lock();
    const controller = new AbortController();
    const leaving = Array.from({ length: 20 }, (_, i) =>
      one.once('key', () => `left ${i}`, { ...KEPT, signal: controller.signal }),
    );
    const left = Promise.allSettled(leaving);
    const staying = one.once('key', () => 'stays', KEPT);
    await sleep(20);
    controller.abort(new Error('enough'));
    expect((await left).map(({ status }) => status)).toEqual(Array(20).fill('rejected'));
    await lease.unlock();
    expect(await staying).toBe('stays');
  });

  it('A task of once that fails since its caller has left rejects none of the others, whose own runs', async () => {
    const controller = new AbortController();
    const { signal } = controller;
    const task = jest.fn(
      () => new Promise<string>((_, reject) => signal.addEventListener('abort', () => reject(signal.reason))),
    );
    const left = one.once('key', task, { ...KEPT, signal }).catch((error: Error) => error.message);
    await until(() => task.mock.calls.length > 0);
    const staying = ['two', 'three'].map((name) => one.once('key', () => name, KEPT));
    controller.abort(new Error('enough'));
    expect(await left).toBe('enough');
    expect(await Promise.all(staying)).toEqual(['two', 'two']);
  });

  it('A task of once that succeeds though its caller has left is that of the others', async () => {
    const controller = new AbortController();
    const { task, open } = gated('done');
    const left = one.once('key', task, { ...KEPT, signal: controller.signal }).catch((error: Error) => error.message);
    await until(() => task.mock.calls.length > 0);
    const staying = one.once('key', () => 'again', KEPT);
    controller.abort(new Error('enough'));
    expect(await left).toBe('enough');
    open();
    expect(await staying).toBe('done');
  });

  it('A task of once runs in the async context of its own caller, and in no scope of one that has left', async () => {
    const context = new AsyncLocalStorage<string>();
    const lease = await other.obtain('key').lock();
    const controller = new AbortController();
    const { task: inside, open } = gated('inside');
    const left = one.run('around', async () => {
      const call = context.run('one', () => one.once('key', () => 'one', { ...KEPT, signal: controller.signal }));
      await call.catch(() => undefined);
      return inside();
    });
    await until(() => one.obtain('around').isAcquiredInThisProcess);
    const task = async () => [context.getStore(), (await one.tryRun('around', () => 'entered')).ran];
    const staying = context.run('two', () => one.once('key', task, KEPT));
    controller.abort(new Error('enough'));
    await until(() => inside.mock.calls.length > 0);
    await lease.unlock();
    expect(await staying).toEqual(['two', false]);
    open();
    await left;
  });

  it.each(['here', 'elsewhere'])(
    'A result of once that is forgotten %s while its task runs is for its caller alone',
    async (where) => {
      const { task, open } = gated('old');
      const first = one.once('key', task, KEPT);
      await until(() => task.mock.calls.length > 0);
      const joined = one.once('key', () => 'joined', KEPT);
      expect(await (where === 'here' ? one : other).forget('key')).toBe(false);
      const later = [one, other].map((registry) => registry.once('key', () => 'new', KEPT));
      open();
      expect(await first).toBe('old');
      const rest = await Promise.all([joined, ...later]);
      expect(rest).not.toContain('old');
      expect(new Set(rest).size).toBe(1);
      expect(await other.once('key', () => 'newest', KEPT)).toBe(rest[0]);
    },
  );

  it('A result of once whose task began after the last forget() is kept, whoever had the lock then', async () => {
    await one.run('key', async () => {
      await other.forget('key');
      await other.forget('key');
    });
    expect(await one.once('key', () => 'kept', KEPT)).toBe('kept');
    expect(await other.once('key', () => 'again', KEPT)).toBe('kept');
    await other.forget('key');
    expect(await one.once('key', () => 'new', KEPT)).toBe('new');
    expect(await other.once('key', () => 'again', KEPT)).toBe('new');
  });

  it('A result of once that cannot be read rejects with its key and the remedy, and without its text', async () => {
    await one.once('key', () => '<secret>', { ...KEPT, serialize: String, deserialize: String });
    const why = 'another `serialize` may have made it. forget("key") removes it';
    for (const registry of [one, other]) {
      const error = await registry.once('key', () => 1, KEPT).catch((reason: Error) => reason);
      expect(error).toMatchObject({ name: 'TypeError', message: `The result of once("key") is not JSON: ${why}` });
      expect(inspect(error)).not.toContain('secret');
    }
    const cause = new Error('no date');
    const deserialize = () => Promise.reject(cause);
    await expect(other.once('key', () => 1, { ...KEPT, deserialize })).rejects.toMatchObject({
      name: 'TypeError',
      message: `The result of once("key") was refused by \`deserialize\`: ${why}`,
      cause,
    });
    expect(await other.forget('key')).toBe(true);
    expect(await one.once('key', () => 1, KEPT)).toBe(1);
  });

  it('A result of once is kept under its lock: a task that has unlocked its lease is told so', async () => {
    const unlocked = one.once('key', (lease) => lease.unlock(), KEPT);
    await expect(unlocked).rejects.toThrow(NotLockOwnerError);
    await expect(unlocked).rejects.toThrow('it was unlocked, or detached');
  });

  it('A task of once works on other keys, and rejects at once for its own key, which it would wait for', async () => {
    const nested = one.once('a', () => one.once('b', () => 'b', KEPT), KEPT);
    expect(await nested).toBe('b');
    const own = one.once('c', () => one.once('c', () => 'c', KEPT), KEPT);
    await expect(own).rejects.toThrow(CannotAcquireLockError);
    await expect(own).rejects.toThrow('The task of once("c") would wait for its own result: a deadlock');
    const deeper = one.once('d', () => one.run('d', () => one.once('d', () => 'd', KEPT)), KEPT);
    await expect(deeper).rejects.toThrow('The task of once("d") would wait for its own result: a deadlock');
    expect(await one.run('e', () => one.run('e', () => one.once('e', () => 'e', KEPT)))).toBe('e');
    expect(await one.run('d', () => one.once('d', () => 'd', KEPT))).toBe('d');
  });

  it('A task of once that would wait for its own result rejects, also after forget() and beside others that wait', async () => {
    const deadlock = 'would wait for its own result: a deadlock';
    const again = (key: string) => one.once(key, () => 'again', KEPT);
    const forgetting = one.once('key', async () => one.forget('key').then(() => again('key')), KEPT);
    await expect(forgetting).rejects.toThrow(deadlock);
    const { task: holding, open } = gated('held');
    const inside = one.run('beside', async () => {
      await holding();
      return one.once('beside', () => again('beside'), KEPT);
    });
    await until(() => holding.mock.calls.length > 0);
    const outside = again('beside');
    open();
    await expect(inside).rejects.toThrow(deadlock);
    expect(await outside).toBe('again');
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
    const before = await other.obtain('key').lock();
    const losing = one.once('key', task, KEPT);
    await sleep(20);
    await before.unlock();
    await until(() => task.mock.calls.length > 0);
    await other.obtain('key').forceUnlock();
    expect(await other.once('key', () => 'theirs', KEPT)).toBe('theirs');
    await sleep(20);
    open();
    await expect(losing).rejects.toThrow(LockLostError);
    expect(await one.once('key', task, KEPT)).toBe('theirs');
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
    const refused = 'Expected the result of once("key") to have a form in JSON, or a `serialize`: Do not know how';
    await expect(one.once('key', () => 5n, KEPT)).rejects.toThrow(refused);
    const serialize = (): string => 5 as never;
    await expect(one.once('key', () => 5, { ...KEPT, serialize })).rejects.toThrow(
      'Expected `serialize(result of "key")` to be a string, got 5 (number)',
    );
    // Redis would keep another text.
    const lone = one.once('key', () => 5, { ...KEPT, serialize: () => '\ud800' });
    await expect(lone).rejects.toThrow('Expected `serialize(result of "key")` to be well-formed UTF-16');
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

  it('A call of once may wait for longer than one timer of Node, and for ever', async () => {
    for (const waitTime of [3e9, Number.POSITIVE_INFINITY]) {
      expect(await one.once(`for ${waitTime}`, () => 1, { ...KEPT, waitTime })).toBe(1);
    }
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
