import { expect, it } from '@jest/globals';
import type { RedisLock } from '../../../lib';
import { collectGarbage } from '../../support/collected';
import { describeReal } from '../../support/redis';
import { until } from '../../support/until';
import { Gate, isExcluded, SCOPE_TYPES, ScopeFixture } from './scope-fixture';

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
