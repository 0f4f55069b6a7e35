import { setTimeout as sleep } from 'node:timers/promises';
import { expect, it } from '@jest/globals';
import { LockLostError, LockTimeoutError } from '../../../lib';
import { until, WAIT_LIMIT } from '../../support/until';
import type { LockFixture } from '../lock-fixture';

export function running(fixture: LockFixture): void {
  it('lock.run() returns the result of a synchronous or asynchronous task, and holds the lock meanwhile', async () => {
    const registry = fixture.registry();
    const lock = registry.obtain('key');
    expect(await lock.run(() => 'at once')).toBe('at once');
    const later = await registry.run('key', async (lease) => {
      lease.assertHeld();
      expect(lock.isAcquiredInThisProcess).toBe(true);
      return fixture.isInRedis('key');
    });
    expect(later).toBe(true);
    expect(await fixture.isInRedis('key')).toBe(false);
  });

  it('lock.run() rejects with the error of the task, and releases the lock', async () => {
    const registry = fixture.registry();
    const error = new Error('of the task');
    const throwing = () => {
      throw error;
    };
    await expect(registry.run('key', throwing)).rejects.toBe(error);
    await expect(registry.run('key', async () => throwing())).rejects.toBe(error);
    await expect(registry.run('key', () => Promise.reject('not even an Error'))).rejects.toBe('not even an Error');
    expect(await fixture.isInRedis('key')).toBe(false);
  });

  it('A lock whose tasks have thrown is not in use: it makes room for others', async () => {
    const registry = fixture.registry({ cacheCapacity: 2 });
    for (const key of ['a', 'b', 'c', 'd']) {
      await expect(registry.run(key, () => Promise.reject(new Error('of the task')))).rejects.toThrow('of the task');
    }
    expect(registry.size).toBe(2);
  });

  it('Nested calls that wait for their turn when the lease of their run is unlocked all get the lock, one by one', async () => {
    const lock = fixture.registry().obtain('key');
    const order: string[] = [];
    await lock.run(async (lease) => {
      const inside = await lock.lock();
      const behind = ['first', 'second'].map((name) => lock.run(() => order.push(name), { waitTime: WAIT_LIMIT }));
      await lease.unlock();
      await inside.unlock();
      await Promise.all(behind);
    });
    expect(order).toEqual(['first', 'second']);
    expect(await fixture.isInRedis('key')).toBe(false);
  });

  it('tryRun() runs the task if the lock is free, and says whether it ran', async () => {
    const registry = fixture.registry();
    const inside = await registry.tryRun('key', async (lease) => {
      lease.assertHeld();
      const nested = await registry.obtain('key').tryRun(() => 'enters again');
      const others = await fixture.otherRegistry().tryRun('key', () => 'others');
      return { nested, others };
    });
    expect(inside).toEqual({
      ran: true,
      value: { nested: { ran: true, value: 'enters again' }, others: { ran: false } },
    });
    expect(await fixture.otherRegistry().tryRun('key', () => undefined)).toEqual({ ran: true, value: undefined });
    const failing = registry.tryRun('key', () => Promise.reject(new Error('of the task')));
    await expect(failing).rejects.toThrow('of the task');
    expect(await fixture.isInRedis('key')).toBe(false);
  });

  it('tryRun() waits for up to its waitTime', async () => {
    const registry = fixture.registry();
    const lease = await registry.obtain('key').lock();
    const waiting = fixture.otherRegistry().tryRun('key', () => 'ran', { waitTime: 60_000 });
    await lease.unlock();
    expect(await waiting).toEqual({ ran: true, value: 'ran' });
  });

  it('lock.run() does not run the task when the lock was not acquired', async () => {
    const lease = await fixture.registry().obtain('key').lock();
    let ran = false;
    const task = () => {
      ran = true;
    };
    await expect(fixture.otherRegistry().run('key', task, { waitTime: 500 })).rejects.toThrow(LockTimeoutError);
    expect(ran).toBe(false);
    await lease.unlock();
  });

  it('lock.run() reports a loss during a task that succeeded, with its result; the error of a task takes precedence (P7)', async () => {
    const registry = fixture.registry();
    const runBeyondTtl = (key: string, ending: () => string) =>
      registry.obtain(key).run(
        async (lease) => {
          await until(() => lease.signal.aborted);
          return ending();
        },
        { ttl: 200 },
      );
    const failing = () => {
      throw new Error('of the task');
    };
    const lost = runBeyondTtl('key', () => 'done').catch((error: unknown) => error);
    await expect(runBeyondTtl('other', failing)).rejects.toThrow('of the task');
    expect(await lost).toBeInstanceOf(LockLostError);
    expect(await lost).toMatchObject({ reason: 'expired', result: 'done', key: 'key' });
  });

  it('lock.run() reports a loss that stopped the task by the signal, with the AbortError as the cause (P7)', async () => {
    const lock = fixture.registry().obtain('key');
    const stopped = lock.run(({ signal }) => sleep(60_000, undefined, { signal }), { ttl: 200 });
    const lost = await stopped.catch((error: unknown) => error);
    expect(lost).toBeInstanceOf(LockLostError);
    expect(lost).toMatchObject({ reason: 'expired', key: 'key', cause: { name: 'AbortError' } });
  });

  it('lock.run() reports a loss that only the release detects, with the result', async () => {
    const task = async () => {
      await fixture.admin.set(fixture.nameOf('key'), 'somebody else', { PX: 60_000 });
      return 42;
    };
    await expect(fixture.registry().run('key', task)).rejects.toMatchObject({ reason: 'stolen', result: 42 });
    expect(await fixture.isInRedis('key')).toBe(true);
    await fixture.admin.del(fixture.nameOf('key'));
  });
}
