import { getEventListeners } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import { beforeEach, describe, expect, it, jest } from '@jest/globals';
import { type Leadership, LockLostError, RegistryClosedError } from '../../../lib';
import { InMemoryLocks } from '../../../lib/testing';
import { type Pair, pairsInMemory, SharedFixture } from '../../kinds/shared/shared-fixture';
import { DISTINCT_TYPES } from '../../support/lock-types';
import { describeReal } from '../../support/redis';
import { until } from '../../support/until';

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
}

describe('lead with locks in memory', () => {
  const pairs = pairsInMemory();
  theSameEverywhere(async () => pairs());

  it('A process that has led leaves nothing with the signal of its call, which may live for long', async () => {
    const [one] = pairs(new InMemoryLocks());
    const stop = new AbortController();
    const signals = await Promise.all(
      ['a', 'b', 'c'].map((key) => one.lead(key, ({ signal }) => signal, { signal: stop.signal })),
    );
    expect(getEventListeners(stop.signal, 'abort')).toEqual([]);
    // Where Node keeps what `AbortSignal.any` has made of a signal.
    const kept = Object.getOwnPropertySymbols(stop.signal).find(({ description }) =>
      /Depend.ntSignals/.test(`${description}`),
    );
    expect((stop.signal as unknown as Record<symbol, Set<unknown> | undefined>)[kept as symbol]?.size ?? 0).toBe(0);
    expect(signals.map((signal) => signal?.aborted)).toEqual([false, false, false]);
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
