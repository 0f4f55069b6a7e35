import { describe, expect, it } from '@jest/globals';
import { CannotAcquireLockError, LockTimeoutError, type Segment, SegmentedLock } from '../../lib';
import { until } from '../support/until';
import { LocalRegistry } from './local-registry';
import { ALL, Stock, serve } from './stock';

const stock = Stock.install();

describe('the wait', () => {
  it('of 0 is one attempt for each segment', async () => {
    const leases = await stock.hold(...ALL);
    await expect(stock.lock.run(serve, { waitTime: 0 })).rejects.toThrow(LockTimeoutError);
    expect(stock.registry.contended).toHaveLength(8 + 8);
    await leases[5]?.unlock();
    expect(await stock.lock.run(serve, { waitTime: 0 })).toMatchObject({ segment: 5 });
  });

  it('that ends before every segment was visited rejects, with the key and the total wait time', async () => {
    const leases = await stock.hold(3);
    const began = performance.now();
    const error = await stock.lock
      .run(({ exhausted }) => exhausted, { waitTime: 120 })
      .catch((reason: unknown) => reason);
    expect(error).toBeInstanceOf(LockTimeoutError);
    expect(error).toMatchObject({ key: 'stock', waitTime: 120 });
    expect(performance.now() - began).toBeGreaterThan(115);
    expect(stock.registry.waiting('stock:3')).toBe(0);
    await leases[0]?.unlock();
  });

  it('includes the time of tasks that could not serve', async () => {
    const leases = await stock.hold(3);
    const slow = async ({ exhausted }: Segment) => {
      await new Promise((resolve) => setTimeout(resolve, 30));
      return exhausted;
    };
    await expect(stock.lock.run(slow, { waitTime: 100 })).rejects.toThrow(LockTimeoutError);
    expect(stock.registry.contended.length).toBeLessThan(8);
    await leases[0]?.unlock();
  });

  it('does not interrupt a task', async () => {
    const slow = async () => {
      await new Promise((resolve) => setTimeout(resolve, 700));
      return 'served';
    };
    expect(await stock.lock.run(slow, { waitTime: 500 })).toMatchObject({ value: 'served' });
  });

  it('ends when the state of a lock is unknown', async () => {
    const silent = new (class extends LocalRegistry {
      override obtain(key: string) {
        const lock = super.obtain(key);
        lock.run = (_task, options) =>
          new Promise((_, reject) => options?.signal?.addEventListener('abort', () => reject(options.signal?.reason)));
        return lock;
      }
    })();
    const lock = new SegmentedLock(silent, 'stock', { segments: 4 });
    const error = await lock.run(serve, { waitTime: 60 }).catch((reason: unknown) => reason);
    expect(error).toBeInstanceOf(CannotAcquireLockError);
    expect(error).toMatchObject({ key: 'stock', message: expect.stringMatching(/has not said for \d+ ms/) });
  });
});

describe('the signal', () => {
  const reason = new Error('enough');

  it('that has aborted already prevents any attempt', async () => {
    await expect(stock.lock.run(serve, { signal: AbortSignal.abort(reason) })).rejects.toBe(reason);
    expect(stock.registry.contended).toEqual([]);
  });

  it('stops the wait at once', async () => {
    const leases = await stock.hold(...ALL);
    const controller = new AbortController();
    const answer = stock.lock.run(serve, { signal: controller.signal });
    await until(() => ALL.some((index) => stock.registry.waiting(`stock:${index}`) > 0));
    controller.abort(reason);
    await expect(answer).rejects.toBe(reason);
    await until(() => ALL.every((index) => stock.registry.waiting(`stock:${index}`) === 0));
    for (const lease of leases) await lease.unlock();
    expect(stock.registry.held).toEqual([]);
  });

  it('does not interrupt a task, but prevents the next attempt', async () => {
    const controller = new AbortController();
    const served = stock.lock.run(
      () => {
        controller.abort(reason);
        return 'served';
      },
      { signal: controller.signal },
    );
    expect(await served).toMatchObject({ value: 'served' });
    const second = new AbortController();
    const exhausted = stock.lock.run(
      (segment) => {
        second.abort(reason);
        return segment.exhausted;
      },
      { signal: second.signal },
    );
    await expect(exhausted).rejects.toBe(reason);
    expect(stock.registry.contended).toHaveLength(2);
  });
});

describe('an error', () => {
  it.each([
    ['of the task', new Error('no payment')],
    ['of a lock in the task', new LockTimeoutError('payment', 10)],
  ])('%s is the caller’s, and no other segment is tried', async (_, error) => {
    await expect(stock.lock.run(() => Promise.reject(error))).rejects.toBe(error);
    expect(stock.registry.contended).toHaveLength(1);
    expect(stock.registry.held).toEqual([]);
  });

  it('of the stock.registry, such as a full cache, rejects the call', async () => {
    const leases = await stock.hold(...ALL);
    const obtain = stock.registry.obtain.bind(stock.registry);
    const full = new CannotAcquireLockError('the cache is full', 'stock:7');
    let asked = 0;
    stock.registry.obtain = (key) => {
      asked += 1;
      if (asked > 9) throw full;
      return obtain(key);
    };
    await expect(stock.lock.run(serve)).rejects.toBe(full);
    stock.registry.obtain = obtain;
    expect(ALL.filter((index) => stock.registry.waiting(`stock:${index}`) > 0)).toEqual([]);
    for (const lease of leases) await lease.unlock();
  });

  it('of a segment that was waited for rejects the call, and ends the other waits', async () => {
    const leases = await stock.hold(...ALL);
    const failure = new CannotAcquireLockError('Redis is gone', 'stock:1');
    const fail: (() => void)[] = [];
    for (const index of ALL) {
      const lock = stock.registry.obtain(`stock:${index}`);
      const run = lock.run.bind(lock);
      lock.run = (task, options) =>
        options?.waitTime === 0 ? run(task, options) : new Promise((_, reject) => fail.push(() => reject(failure)));
    }
    const answer = stock.lock.run(serve);
    await until(() => fail.length > 0);
    fail[0]?.();
    await expect(answer).rejects.toBe(failure);
    for (const lease of leases) await lease.unlock();
  });
});
