import { expect, it } from '@jest/globals';
import type { RedisLock } from '../../lib';
import { collectGarbage } from '../support/collected';
import { describeReal } from '../support/redis';
import { until } from '../support/until';
import { Gate, isExcluded, SCOPE_TYPES, ScopeFixture } from './scope-fixture';

/** Of nested runs. */
const LEVELS = 4;

describeReal.each(SCOPE_TYPES)('When the scope of a %s lock ends', (lockType) => {
  const scope = ScopeFixture.install(lockType);

  /** Starts work in a run of the lock that does not wait for it, and returns when that run is over. */
  async function inScope(lock: RedisLock, work: () => Promise<void>): Promise<{ readonly done: Promise<void> }> {
    return lock.run(() => {
      const done = work();
      done.catch(() => undefined); // handled by the test
      return { done };
    });
  }

  it('Work that outlives the scope of a lock makes its own acquisition, and is excluded by another holder', async () => {
    const [scopeOver, refused] = [new Gate(), new Gate()];
    const work = await inScope(scope.lock, async () => {
      await scopeOver.opened;
      expect(await scope.lock.tryLock()).toBeNull();
      refused.open();
      await scope.lock.run(async () => {
        expect(await isExcluded(scope.theirs)).toBe(true);
        await scope.enter('detached');
      });
    });
    const held = await scope.theirs.lock();
    await scope.enter('theirs', async () => {
      scopeOver.open();
      await refused.opened;
    });
    await scope.enter('still theirs');
    await held.unlock();
    await work.done;
    expect(scope.entered).toEqual(['theirs', 'still theirs', 'detached']);
  });

  it('Work that outlives the scope of a lock is in the outer scope of the one that ended, while that is open', async () => {
    const { spy, lock } = scope.spied();
    await lock.run(async () => {
      const before = spy.sent;
      const innerOver = new Gate();
      const work = await inScope(lock, async () => {
        await innerOver.opened;
        await lock.run(() => scope.enter('detached'));
      });
      innerOver.open();
      await Promise.all([work.done, lock.run(() => scope.enter('inside'))]);
      expect(spy.sent).toBe(before);
    });
    expect(scope.entered).toHaveLength(2);
  });

  it('Work that outlives the scope of a lock does not wait for ever for a turn that was not released in the scope', async () => {
    let waiting: Promise<unknown> = Promise.resolve();
    await scope.lock.run(async () => {
      await scope.lock.lock();
      waiting = scope.lock.run(() => scope.enter('detached'), { waitTime: 2_000 });
      waiting.catch(() => undefined);
    });
    await waiting;
    expect(scope.entered).toEqual(['detached']);
  });

  it('Work that outlives the scope of a lock no longer holds the lock by a nested lease', async () => {
    const lease = await scope.lock.run(() => scope.lock.lock());
    expect(lease.remaining).toBe(0);
    expect(() => lease.assertHeld()).toThrow(expect.objectContaining({ code: 'ERR_NOT_LOCK_OWNER' }));
    await expect(lease.renew()).rejects.toMatchObject({ code: 'ERR_NOT_LOCK_OWNER' });
    const held = await scope.theirs.lock();
    await lease.unlock();
    await scope.expectStillHeld(held);
    await held.unlock();
  });

  it('Work that outlives the scope of a lock never releases a later lease of another caller by `unlock` of the lock', async () => {
    const taken = new Gate();
    let work: Promise<unknown> = Promise.resolve();
    await scope.lock.run(async () => {
      await scope.lock.lock();
      work = taken.opened.then(() => scope.lock.unlock()).catch(() => undefined);
    });
    const later = await scope.lock.lock();
    taken.open();
    await work;
    await scope.expectStillHeld(later);
    await later.unlock();
  });

  it('A nested run that was not awaited is under the lock to its end: the outermost run waits for it before it releases the lock', async () => {
    const [taskOver, gate] = [new Gate(), new Gate()];
    const settled: string[] = [];
    const outer = scope.lock
      .run(() => {
        void scope.lock.run(() => scope.enter('nested', () => gate.opened)).then(() => settled.push('nested'));
        taskOver.open();
        return 'result';
      })
      .finally(() => settled.push('outer'));
    await taskOver.opened;
    const other = scope.theirs.run(() => scope.enter('other'));
    await until(() => scope.entered.length > 0);
    expect(await isExcluded(scope.theirs)).toBe(true);
    expect(settled).toEqual([]);
    gate.open();
    expect(await outer).toBe('result');
    expect(settled).toEqual(['nested', 'outer']);
    await other;
    expect(scope.entered).toEqual(['nested', 'other']);
  });

  it('A nested run that was not awaited is waited for also when the task of the outer run fails, and that error is reported', async () => {
    const gate = new Gate();
    const [ofTheTask, ofNested] = [new Error('of the task'), new Error('of the nested run')];
    let isSettled = false;
    let nested: Promise<void> = Promise.resolve();
    const outer = scope.lock.run(() => {
      nested = expect(
        scope.lock.run(async () => {
          await gate.opened;
          throw ofNested;
        }),
      ).rejects.toBe(ofNested);
      throw ofTheTask;
    });
    const rejected = expect(outer.finally(() => (isSettled = true))).rejects.toBe(ofTheTask);
    await until(() => scope.lock.isAcquiredInThisProcess);
    expect(await isExcluded(scope.theirs)).toBe(true);
    expect(isSettled).toBe(false);
    gate.open();
    await Promise.all([nested, rejected]);
  });

  it('A nested run that was not awaited is under the lock as well if it first extends the lease', async () => {
    let nested: Promise<unknown> = Promise.resolve();
    await scope.lock.run(
      () => {
        nested = scope.lock.run(
          async (lease) => {
            lease.assertHeld();
            expect(await isExcluded(scope.theirs)).toBe(true);
            await scope.enter('nested');
            lease.assertHeld();
          },
          { ttl: 60_000 },
        );
        nested.catch(() => undefined); // checked below
      },
      { ttl: 30_000 },
    );
    await nested;
    expect(scope.entered).toEqual(['nested']);
  });

  it.each([1, 2, 3, 4])(
    'An error of level %i of four surfaces as it is, and the lock is released once',
    async (thrower) => {
      const { spy, lock } = scope.spied();
      await lock.run(() => undefined);
      const start = spy.sent;
      await lock.run(() => undefined);
      const ofOneRun = spy.sent - start;
      const error = new Error(`of level ${thrower}`);
      // The innermost task throws synchronously.
      const descend = (level: number): unknown => {
        const end = () => {
          if (level === thrower) throw error;
        };
        return level < LEVELS ? lock.run(() => descend(level + 1)).then(end) : end();
      };
      const before = spy.sent;
      await expect(lock.run(() => descend(1))).rejects.toBe(error);
      expect(spy.sent - before).toBe(ofOneRun);
      expect(await isExcluded(scope.theirs)).toBe(false);
    },
  );

  it.each([2, 3, 4])(
    'After an error of level %i that the level above catches, the lock is still held, and the turn is free',
    async (thrower) => {
      const caught: number[] = [];
      const descend = async (level: number): Promise<void> => {
        if (level < LEVELS) {
          await scope.lock
            .run(() => descend(level + 1))
            .catch(async () => {
              caught.push(level);
              expect(await isExcluded(scope.theirs)).toBe(true);
              expect(await isExcluded(scope.lock)).toBe(false);
            });
        }
        if (level === thrower) throw new Error(`of level ${level}`);
      };
      await scope.lock.run(() => descend(1));
      expect(caught).toEqual([thrower - 1]);
    },
  );

  it('A scope does not keep a lock that was acquired and released in it (P8)', async () => {
    const takeAndGiveBack = async (i: number): Promise<WeakRef<RedisLock>> => {
      const other = scope.mine.obtain(`other ${i}`);
      await other.lock();
      await other.unlock();
      return new WeakRef(other);
    };
    await scope.lock.run(async () => {
      const taken = await Promise.all(Array.from({ length: 100 }, (_, i) => takeAndGiveBack(i)));
      scope.mine.expireUnusedOlderThan(-1);
      // A register or cache of the engine may still reference some of them.
      await until(() => {
        collectGarbage();
        return taken.filter((other) => other.deref() === undefined).length >= 95;
      });
      expect(scope.mine.size).toBe(1);
    });
  });
});
