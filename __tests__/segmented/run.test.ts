import { AsyncLocalStorage } from 'node:async_hooks';
import { beforeEach, describe, expect, it } from '@jest/globals';
import { CannotAcquireLockError, type Lease, LockTimeoutError, type Segment, SegmentedLock } from '../../lib';
import { seeded } from '../../support/random';
import { until } from '../support/until';
import { LocalRegistry } from './local-registry';

/** The indices of the segments. */
const ALL = [0, 1, 2, 3, 4, 5, 6, 7];

let registry: LocalRegistry;
/** A segmented lock of eight segments without Redis. */
let lock: SegmentedLock;

beforeEach(() => {
  registry = new LocalRegistry();
  lock = new SegmentedLock(registry, 'stock', { segments: ALL.length, random: seeded(1) });
});

/** A task that any segment can serve. */
const serve = ({ index }: Segment): number => index;

/** Takes the locks of these segments, as another caller. */
const hold = (...indices: number[]): Promise<Lease[]> =>
  Promise.all(indices.map((index) => registry.obtain(`stock:${index}`).lock()));

/** The segments that somebody waits for. */
const waitedFor = () => ALL.filter((index) => registry.waiting(`stock:${index}`) > 0);

it('The segment that serves is drawn at random', async () => {
  const served = new Map<number, number>();
  for (let i = 0; i < 800; i++) {
    const answer = await lock.run(serve);
    if (answer.served) served.set(answer.segment, (served.get(answer.segment) ?? 0) + 1);
  }
  expect([...served.keys()].sort()).toEqual(ALL);
  for (const times of served.values()) expect(times).toBeGreaterThan(60);
});

it('The segment that serves is passed to the task and to the caller, and released at the end', async () => {
  const answer = await lock.run(async (segment) => {
    expect(segment.name).toBe(`stock:${segment.index}`);
    expect(segment.lease.key).toBe(segment.name);
    expect(registry.held).toEqual([segment.name]);
    return segment.name;
  });
  expect(answer).toEqual({ served: true, value: expect.stringMatching(/^stock:\d$/), segment: expect.any(Number) });
  expect(registry.held).toEqual([]);
});

it.each([undefined, null, false, 0, ''])('The segment that serves may serve with %p', async (value) => {
  expect(await lock.run(() => value)).toMatchObject({ served: true, value });
  expect(registry.contended).toHaveLength(1);
});

it('A segment that is exhausted is released, and the next segment is tried, each once', async () => {
  const seen: number[] = [];
  const answer = await lock.run(({ index, name, exhausted }) => {
    expect(registry.held).toEqual([name]);
    seen.push(index);
    return exhausted;
  });
  expect(answer).toEqual({ served: false });
  expect(seen.toSorted()).toEqual(ALL);
  expect(registry.contended).toHaveLength(8);
  expect(registry.held).toEqual([]);
});

it('A task is in the scope and the async context of its caller, also in a segment that its caller came to later', async () => {
  const context = new AsyncLocalStorage<string>();
  const leases = await hold(...ALL);
  const again = () => registry.run('order', () => context.getStore(), { waitTime: 1_000 });
  const answer = context.run('caller', () => registry.run('order', () => lock.run(again)));
  await until(() => waitedFor().length > 2);
  const later = Number(registry.contended.at(-1)?.slice(6));
  await leases[later]?.unlock();
  expect(await answer).toEqual({ served: true, value: 'caller', segment: later });
  for (const lease of leases) await lease.unlock();
});

it('A `minHold` keeps the segment that is entered, and not another one that came free in the same turn', async () => {
  const leases = await hold(...ALL);
  const answer = lock.run(serve, { minHold: 30_000 });
  await until(() => waitedFor().length === 2);
  const indices = waitedFor();
  await Promise.all(indices.map((index) => leases[index]?.unlock()));
  const { segment } = (await answer) as { segment: number };
  for (const index of indices) {
    const lease = await registry.obtain(`stock:${index}`).tryLock();
    expect(lease === null).toBe(index === segment);
    await lease?.unlock();
  }
  for (const lease of leases) await lease.unlock();
});

it('A waitTime of 0 is one attempt for each segment', async () => {
  const leases = await hold(...ALL);
  await expect(lock.run(serve, { waitTime: 0 })).rejects.toThrow(LockTimeoutError);
  expect(registry.contended).toHaveLength(8);
  await leases[5]?.unlock();
  expect(await lock.run(serve, { waitTime: 0 })).toMatchObject({ segment: 5 });
});

it('The wait for a segment includes the time of tasks that could not serve', async () => {
  const leases = await hold(3);
  const slow = async ({ exhausted }: Segment) => {
    await new Promise((resolve) => setTimeout(resolve, 30));
    return exhausted;
  };
  await expect(lock.run(slow, { waitTime: 100 })).rejects.toThrow(LockTimeoutError);
  expect(registry.contended.length).toBeLessThan(7);
  await leases[0]?.unlock();
});

it('The wait for a segment does not interrupt a task', async () => {
  const slow = async () => {
    await new Promise((resolve) => setTimeout(resolve, 100));
    return 'served';
  };
  expect(await lock.run(slow, { waitTime: 50 })).toMatchObject({ value: 'served' });
});

describe('the signal', () => {
  const reason = new Error('enough');

  it('The signal of a segmented run that has aborted already prevents any attempt', async () => {
    await expect(lock.run(serve, { signal: AbortSignal.abort(reason) })).rejects.toBe(reason);
    expect(registry.contended).toEqual([]);
  });

  it('The signal of a segmented run stops the wait at once', async () => {
    const leases = await hold(...ALL);
    const controller = new AbortController();
    const answer = lock.run(serve, { signal: controller.signal });
    await until(() => waitedFor().length > 0);
    controller.abort(reason);
    await expect(answer).rejects.toBe(reason);
    await until(() => waitedFor().length === 0);
    for (const lease of leases) await lease.unlock();
    expect(registry.held).toEqual([]);
  });

  it('The signal of a segmented run does not interrupt a task, but prevents the next attempt', async () => {
    const controller = new AbortController();
    const served = lock.run(
      () => {
        controller.abort(reason);
        return 'served';
      },
      { signal: controller.signal },
    );
    expect(await served).toMatchObject({ value: 'served' });
    const second = new AbortController();
    const exhausted = lock.run(
      (segment) => {
        second.abort(reason);
        return segment.exhausted;
      },
      { signal: second.signal },
    );
    await expect(exhausted).rejects.toBe(reason);
    expect(registry.contended).toHaveLength(2);
  });
});

it('An error of the registry, such as a full cache, rejects a segmented call', async () => {
  const leases = await hold(...ALL);
  const obtain = registry.obtain.bind(registry);
  const full = new CannotAcquireLockError('the cache is full', 'stock:7');
  let asked = 0;
  registry.obtain = (key) => {
    asked += 1;
    if (asked > 9) throw full;
    return obtain(key);
  };
  await expect(lock.run(serve)).rejects.toBe(full);
  registry.obtain = obtain;
  expect(waitedFor()).toEqual([]);
  for (const lease of leases) await lease.unlock();
});

it('An error of a segment that was waited for rejects the call, and ends the other waits', async () => {
  const leases = await hold(...ALL);
  const failure = new CannotAcquireLockError('Redis is gone', 'stock:1');
  const fail: (() => void)[] = [];
  for (const index of ALL) {
    const lock = registry.obtain(`stock:${index}`);
    const run = lock.run.bind(lock);
    lock.run = (task, options) =>
      options?.waitTime === 0 ? run(task, options) : new Promise((_, reject) => fail.push(() => reject(failure)));
  }
  const answer = lock.run(serve);
  await until(() => fail.length > 0);
  fail[0]?.();
  await expect(answer).rejects.toBe(failure);
  for (const lease of leases) await lease.unlock();
});
