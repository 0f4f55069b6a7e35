import { setTimeout as sleep } from 'node:timers/promises';
import { beforeEach, describe, expect, it, jest } from '@jest/globals';
import { CannotAcquireLockError, type Leadership, LockLostError, RegistryClosedError } from '../../lib';
import { clock } from '../../lib/internal/clock';
import { InMemoryLocks } from '../../lib/testing';
import { type Pair, pairsInMemory, SharedFixture } from '../semaphore-read-write/shared-fixture';
import { DISTINCT_TYPES } from '../support/lock-types';
import { describeReal } from '../support/redis';
import { until } from '../support/until';

/** Leads until its signal aborts, and keeps count of what it was given. */
function leader() {
  const given: Leadership[] = [];
  const task = async (leadership: Leadership): Promise<never> => {
    given.push(leadership);
    return sleep(60_000, undefined, { signal: leadership.signal, ref: false }) as Promise<never>;
  };
  return { given, task };
}

/** What holds wherever the locks are. */
function theSameEverywhere(pair: () => Promise<Pair>): void {
  let one: Pair[0];
  let other: Pair[1];
  let stop: AbortController;
  beforeEach(async () => {
    [one, other] = await pair();
    stop = new AbortController();
  });

  it('One process leads, the next one when it stops, and both calls end by their signal', async () => {
    const [first, second] = [leader(), leader()];
    const stops = [new AbortController(), new AbortController()] as const;
    const leading = one.lead('key', first.task, { signal: stops[0].signal });
    await until(() => first.given.length === 1);
    const standing = other.lead('key', second.task, { signal: stops[1].signal });
    await sleep(30);
    expect(second.given).toEqual([]);
    stops[0].abort();
    expect(await leading).toBeUndefined();
    await until(() => second.given.length === 1);
    expect(one.obtain('key').isAcquiredInThisProcess).toBe(false);
    stops[1].abort(new Error('enough'));
    expect(await standing).toBeUndefined();
    expect(first.given).toHaveLength(1);
  });

  it('A process that waits to lead leaves by its signal, and does not lead later', async () => {
    const lease = await one.obtain('key').lock();
    const { given, task } = leader();
    const standing = other.lead('key', task, { signal: stop.signal });
    await sleep(20);
    stop.abort();
    expect(await standing).toBeUndefined();
    await lease.unlock();
    expect(await one.lead('key', () => 'led')).toBe('led');
    expect(given).toEqual([]);
    expect(await other.lead('key', task, { signal: stop.signal })).toBeUndefined();
    expect(given).toEqual([]);
  });

  it('A leader that loses the lock is told by its signal, and leads again when the lock is free', async () => {
    const { given, task } = leader();
    const leading = one.lead('key', task, { signal: stop.signal });
    await until(() => given.length === 1);
    const { lease, signal } = given[0] as Leadership;
    const taken = other.obtain('key').lock();
    await other.obtain('key').forceUnlock();
    const usurper = await taken;
    await lease.renew().catch(() => undefined); // finds the loss now
    expect(signal.reason).toBeInstanceOf(LockLostError);
    expect(signal.reason).toBe(lease.signal.reason);
    expect(given).toHaveLength(1);
    await usurper.unlock();
    await until(() => given.length === 2);
    expect(given[1]?.signal.aborted).toBe(false);
    stop.abort();
    expect(await leading).toBeUndefined();
  });

  it('A leader stands again also when its task did not notice the loss, and returned', async () => {
    let runs = 0;
    const leading = one.lead('key', async ({ lease }) => {
      if (++runs > 1) return 'led to its end';
      await other.obtain('key').forceUnlock();
      await lease.renew().catch(() => undefined);
      return 'of the past';
    });
    expect(await leading).toBe('led to its end');
  });

  it('An error of the task that the loss did not cause rejects lead, as it does run', async () => {
    const error = new Error('a bug');
    const leading = one.lead('key', async ({ lease }) => {
      await other.obtain('key').forceUnlock();
      await lease.renew().catch(() => undefined);
      throw error;
    });
    await expect(leading).rejects.toBe(error);
  });

  it('A leader stands down when its task returns or throws, with its result or its error', async () => {
    expect(await one.lead('key', async () => 5)).toBe(5);
    const error = new Error('a bug');
    await expect(one.lead('key', () => Promise.reject(error), { signal: stop.signal })).rejects.toBe(error);
    // Not the loss of this lock, and no failure to take it.
    const foreign = [new LockLostError('another', 'stolen'), new CannotAcquireLockError('another', 'another')];
    for (const thrown of foreign) await expect(one.lead('key', () => Promise.reject(thrown))).rejects.toBe(thrown);
    const aborted = new DOMException('of a request', 'AbortError');
    const others = one.lead('key', () => Promise.reject(aborted), { signal: stop.signal });
    await expect(others).rejects.toBe(aborted);
    const late = one.lead(
      'key',
      () => {
        stop.abort();
        throw error;
      },
      { signal: stop.signal },
    );
    await expect(late).rejects.toBe(error);
    expect(await other.tryRun('key', () => 'free')).toEqual({ ran: true, value: 'free' });
  });

  it('A call of lead rejects when the registry is closed: one that waits at once, a leader after its task', async () => {
    const { given, task } = leader();
    const leading = one.lead('key', task);
    await until(() => given.length === 1);
    const standing = one.lead('key', task);
    const rejections = [leading, standing].map((call) => expect(call).rejects.toThrow(RegistryClosedError));
    await one.close({ timeout: 0 });
    await Promise.all(rejections);
    expect(given[0]?.signal.reason).toMatchObject({ reason: 'closed' });
  });

  it('A call of lead is checked', async () => {
    const call = (options: unknown, task: unknown = () => 1) => one.lead('key', task as () => 1, options as never);
    await expect(call({ signal: 5 })).rejects.toThrow('Expected `signal` to be an AbortSignal, got 5');
    await expect(call({ ttl: 5 })).rejects.toThrow('Unknown option `ttl` (5); known are signal');
    await expect(call({}, 5)).rejects.toThrow('Expected `task` to be a function, got 5');
    await expect(one.lead('', () => 1)).rejects.toThrow('Expected `key` to be a non-empty string');
  });
}

describe('lead with locks in memory', () => {
  const pairs = pairsInMemory({ unavailableAfter: 50, commandTimeout: 20, onWarning: () => undefined });
  theSameEverywhere(async () => pairs());

  it('A process stands again while Redis is silent, and leads when it is back', async () => {
    const locks = new InMemoryLocks();
    const [one] = pairs(locks);
    const { given, task } = leader();
    const stop = new AbortController();
    locks.goSilent();
    const leading = one.lead('key', task, { signal: stop.signal });
    await sleep(200); // The first attempt has been rejected.
    locks.comeBack();
    await until(() => given.length === 1);
    stop.abort();
    expect(await leading).toBeUndefined();
  });

  it('A leader that Redis has to confirm after a suspension of the machine stands again', async () => {
    const [one] = pairs();
    const { wallNow } = clock;
    let runs = 0;
    const leading = one.lead('key', async ({ lease }) => {
      if (++runs > 1) return 'led to its end';
      clock.wallNow = () => wallNow() + 60_000;
      lease.assertHeld();
      return 'not noticed';
    });
    expect(await leading.finally(() => Object.assign(clock, { wallNow }))).toBe('led to its end');
  });

  it('A process that leads inside a lost scope of the same key does not stand again for ever', async () => {
    const locks = new InMemoryLocks();
    const [one] = pairs(locks);
    const task = jest.fn();
    const outer = one.run('key', async (lease) => {
      locks.expire('key');
      await lease.renew().catch(() => undefined);
      return one.lead('key', task as () => void);
    });
    await expect(outer).rejects.toThrow(LockLostError);
    expect(task).not.toHaveBeenCalled();
  });
});

describeReal.each(DISTINCT_TYPES)('lead with locks of type %s', (lockType) => {
  const fixture = SharedFixture.install();
  theSameEverywhere(() => fixture.pair({ lockType, fairLockWaitTimeout: 1_000, idleBetweenTries: 20 }));
});
