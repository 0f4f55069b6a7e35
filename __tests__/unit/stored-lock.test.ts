import { getEventListeners } from 'node:events';
import { beforeEach, expect, it, jest } from '@jest/globals';
import type { StoredKind } from '../../lib/api/lock-types';
import { InMemoryLockRegistry, InMemoryLocks } from '../../lib/testing';
import type { StoredLock } from '../../lib/testing/stored-lock';

beforeEach(() => {
  jest.useFakeTimers();
});

/** One lock in memory, and how tests use it. Tickets and owners are letters; `granted` has those that got it while they waited. */
function stored(kind: StoredKind = 'lock') {
  const locks = new InMemoryLocks();
  const lock: StoredLock = locks.find('lock');
  const granted: string[] = [];
  let since = 0;
  /** Attempts, and waits if it has to. `granted`, or what ends the wait. */
  const ask = (ticket: string, more: Partial<Parameters<StoredLock['acquire']>[0]> = {}) => {
    const use = { is: 'a lock', as: 'a lock', isShared: kind !== 'lock' };
    const claim = { ticket, kind, use, ttl: 1_000, permits: undefined, takes: 1, since: ++since, ...more };
    if (lock.acquire(claim, true).granted) return 'granted';
    return lock.await(ticket, (answer) => void granted.push(answer.granted ? ticket : `${ticket} woken`));
  };
  return { locks, lock, granted, ask };
}

it('A caller of the same ms as a writer that waits does not overtake it', () => {
  const { ask, lock } = stored('read');
  ask('a');
  ask('b', { kind: 'write', since: 7 });
  expect(ask('c', { since: 7 })).not.toBe('granted');
  expect(lock.state.waiting).toBe(2);
});

it('The queue of a lock in memory has the order of the calls, whenever they reach it', () => {
  const { ask, granted, lock } = stored();
  ask('a');
  for (const [ticket, since] of [
    ['b', 5],
    ['c', 3],
    ['d', 4],
    ['e', 6],
  ] as const)
    ask(ticket, { since });
  for (const owner of 'acdb') lock.release(owner);
  expect(granted.join('')).toBe('cdbe');
});

it('The number of permits of a caller counts where nobody waits, though another one gave a later number', () => {
  const { ask } = stored('semaphore');
  const given = [
    ['a', { count: 1, at: 2 }],
    ['b', { count: 2, at: 1 }],
  ] as const;
  expect(given.map(([ticket, permits]) => ask(ticket, { permits }))).toEqual(['granted', 'granted']);
  // While somebody waits, the later number counts.
  expect(ask('c', { permits: { count: 1, at: 2 } })).not.toBe('granted');
  expect(ask('d', { permits: { count: 9, at: 1 } })).not.toBe('granted');
});

it('A larger number of permits lets in those that wait, and not only the caller that gave it', () => {
  const { ask, granted } = stored('semaphore');
  for (const ticket of 'ab') ask(ticket, { permits: { count: 1, at: 1 } });
  expect(ask('c', { permits: { count: 3, at: 2 } })).toBe('granted');
  expect(granted).toEqual(['b']);
});

it('A lock in memory that somebody else was given by hand goes to the next caller when that time ends', () => {
  const { ask, granted, lock } = stored();
  ask('a', { ttl: 60_000 });
  ask('b');
  lock.give('somebody else', 500);
  jest.advanceTimersByTime(499);
  expect(granted).toEqual([]);
  jest.advanceTimersByTime(1);
  expect(granted).toEqual(['b']);
});

it('A lease in memory that is detached, or adopted, twice stays what it is', () => {
  const { ask, lock } = stored();
  ask('a');
  for (const _ of [1, 2]) expect(lock.detach('a', 'detached@a', 1_000)).toBe('released');
  for (const _ of [1, 2]) expect(lock.adopt('detached@a', 'b', 1_000)).toMatchObject({ owner: 'b', fencingToken: 2 });
});

it('A lock in memory is free when its ttl has ended, and not before', () => {
  const { ask, lock } = stored();
  ask('a', { ttl: 500 });
  jest.advanceTimersByTime(499);
  expect(lock.state).toMatchObject({ owner: 'a', remaining: 1 });
  jest.advanceTimersByTime(1);
  expect(lock.state).toMatchObject({ owner: undefined, remaining: 0 });
});

it('A result in memory is there as long as it is kept, and can be forgotten once', () => {
  const { results } = new InMemoryLocks();
  for (const name of ['kept', 'forgotten']) expect(results.store(name, 'text', 500, '')).toBe(true);
  const forget = (result: string) => results.forget({ result, forgotten: 'mark', lock: 'lock' }, 'mark', false);
  expect([forget('forgotten'), forget('forgotten')]).toEqual([true, false]);
  jest.advanceTimersByTime(499);
  expect(results.read('kept')).toBe('text');
  jest.advanceTimersByTime(1);
  expect([forget('kept'), results.read('kept')]).toEqual([false, undefined]);
});

it('Locks in memory that are silent refuse at once what a closed registry asks, and have no timer for it', async () => {
  const { locks } = stored();
  locks.goSilent();
  const [execute, closed] = [jest.fn(), new AbortController()];
  const stop = locks.onSilence(() => undefined);
  const sent = locks.send(execute, 1_000, closed.signal).catch((error: unknown) => error);
  const timers = jest.getTimerCount();
  stop();
  expect(jest.getTimerCount()).toBe(timers - 1);
  closed.abort('closed');
  const late = locks.send(execute, 1_000, closed.signal).catch((error: unknown) => error);
  expect(await Promise.all([sent, late])).toEqual(['closed', 'closed']);
  locks.comeBack();
  expect(execute).toHaveBeenCalledTimes(2);
});

it('A registry in memory that is closed in a silence leaves no timer, and what it left undone is not tried again', async () => {
  const locks = new InMemoryLocks();
  const registry = new InMemoryLockRegistry({ locks });
  jest.runAllTimers(); // those of other tests
  locks.steal('key', { ttl: 1_000_000 });
  const waiting = registry.obtain('key').tryLock({ waitTime: 10 });
  await jest.advanceTimersByTimeAsync(0);
  locks.goSilent();
  await jest.advanceTimersByTimeAsync(100);
  expect(await waiting).toBeNull();
  await registry.close({ timeout: 0 });
  await jest.advanceTimersByTimeAsync(10_000);
  expect(jest.getTimerCount()).toBe(0);
});

it('A request in memory that was answered after a silence leaves no listener and no timer, and the next silence does not repeat it', async () => {
  const locks = new InMemoryLocks();
  const closed = new AbortController();
  const execute = jest.fn(() => 'answer');
  jest.clearAllTimers();
  locks.goSilent();
  const sent = locks.send(execute, 1_000, closed.signal);
  locks.comeBack();
  expect(await sent).toBe('answer');
  await jest.advanceTimersByTimeAsync(0);
  expect([getEventListeners(closed.signal, 'abort'), jest.getTimerCount()]).toEqual([[], 0]);
  locks.goSilent();
  locks.comeBack();
  expect(execute).toHaveBeenCalledTimes(1);
});
