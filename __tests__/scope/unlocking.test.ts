import { expect, it } from '@jest/globals';
import { NotLockOwnerError } from '../../lib';
import { block } from '../support/block';
import { describeReal } from '../support/redis';
import { expectLost, Gate, isExcluded, SCOPE_TYPES, ScopeFixture } from './scope-fixture';

describeReal.each(SCOPE_TYPES)('`unlock` of a %s lock', (lockType) => {
  const scope = ScopeFixture.install(lockType);

  const expectRefused = (unlocked: Promise<unknown>) => expect(unlocked).rejects.toThrow(NotLockOwnerError);

  it.each(['lock', 'tryLock'] as const)(
    'unlock() of a lock inside a scope gives back what the scope took with %s, and the run goes on',
    async (take) => {
      const { spy, lock } = scope.spied();
      await lock.run(async (outer) => {
        const before = spy.sent;
        const hold = await lock[take]();
        expect(await isExcluded(lock)).toBe(true);
        await lock.unlock();
        expect(hold?.remaining).toBe(0);
        expect(await isExcluded(lock)).toBe(false);
        expect(spy.sent).toBe(before);
        outer.assertHeld();
        expect(await isExcluded(scope.theirs)).toBe(true);
      });
    },
  );

  it('unlock() of a lock inside a scope releases what that scope took, in Redis too, but nothing of an outer or inner one, or from before', async () => {
    const [before, other] = [scope.mine.obtain('before'), scope.mine.obtain('other')];
    const early = await before.lock();
    await scope.lock.run(async () => {
      const ofOuter = await other.lock();
      await scope.lock.run(async () => {
        await expectRefused(other.unlock());
        ofOuter.assertHeld();
        await scope.lock.lock();
      });
      // The nested lease that the inner scope did not release ended with it.
      await expectRefused(scope.lock.unlock());
      await expectRefused(before.unlock());
      await scope.expectStillHeld(ofOuter);
      await other.unlock();
      expect(await scope.isInRedis('other')).toBe(false);
    });
    await scope.expectStillHeld(early);
    await before.unlock();
    expect(await scope.isInRedis('before')).toBe(false);
  });

  it('unlock() of a lock inside a scope reports the loss of another lock first, and does not affect a later lease of the scope', async () => {
    const other = scope.mine.obtain('other');
    await scope.lock.run(async () => {
      await scope.lockAndLose(other);
      const later = await other.lock();
      await expectLost(other.unlock(), 'expired');
      await scope.expectStillHeld(later);
      await other.unlock();
      expect(await scope.isInRedis('other')).toBe(false);
      await expectRefused(other.unlock());
    });
  });

  it('unlock() of a lock outside any scope is refused while a run holds the lock, in this process or in another', async () => {
    const [inside, refused] = [new Gate(), new Gate()];
    const holder = scope.lock.run(async (lease) => {
      // The scope also has a nested lease, which a call outside must not release.
      const hold = await scope.lock.lock();
      inside.open();
      await refused.opened;
      lease.assertHeld();
      hold.assertHeld();
      await hold.unlock();
    });
    await inside.opened;
    await expectRefused(scope.lock.unlock());
    await expectRefused(scope.theirs.unlock());
    expect(await scope.isInRedis('key')).toBe(true);
    refused.open();
    await holder;
  });

  it('unlock() of a lock outside any scope can be mixed with the unlock of leases by several callers: none releases the lease of another', async () => {
    const styles = [
      async (name: string) => {
        const lease = await scope.lock.lock();
        await scope.enter(name, () => lease.assertHeld());
        await lease.unlock();
        await lease.unlock();
      },
      async (name: string) => {
        const lease = await scope.lock.lock();
        await scope.enter(name, () => lease.assertHeld());
        await scope.lock.unlock();
      },
      (name: string) => scope.lock.run((lease) => scope.enter(name, () => lease.assertHeld())),
    ];
    const names = Array.from({ length: 15 }, (_, i) => `${i}`);
    await Promise.all(names.map((name, i) => styles[i % styles.length]?.(name)));
    expect([...scope.entered].sort()).toEqual([...names].sort());
    await expectRefused(scope.lock.unlock());
  });

  it('unlock() of a lock outside any scope is refused to the second of two callers that release one lease at the same time', async () => {
    await scope.lock.lock();
    const [first, second] = await Promise.allSettled([scope.lock.unlock(), scope.lock.unlock()]);
    expect(first.status).toBe('fulfilled');
    expect(second).toMatchObject({ status: 'rejected', reason: { code: 'ERR_NOT_LOCK_OWNER' } });
  });

  it('unlock() of a lock after a loss reports what no timer has detected yet (P5)', async () => {
    await scope.lock.lock({ ttl: 300 });
    block(350);
    await expectLost(scope.lock.unlock(), 'expired');
  });

  it('unlock() of a lock after a loss reports each loss once that its lease or run has not reported, and then releases the current holder', async () => {
    const [reported, disposed] = [await scope.lockAndLose(scope.lock), await scope.lockAndLose(scope.lock)];
    for (let i = 0; i < 3; i++) await scope.lockAndLose(scope.lock);
    await expectLost(reported.unlock(), 'expired');
    await disposed[Symbol.asyncDispose]();
    const run = scope.lock.run((lease) => scope.lose(lease));
    await expectLost(run, 'expired');
    const later = await scope.lock.lock();
    for (let i = 0; i < 3; i++) {
      await expectLost(scope.lock.unlock(), 'expired');
      await scope.expectStillHeld(later);
    }
    await scope.lock.unlock();
    expect(await scope.isInRedis('key')).toBe(false);
    await expectRefused(scope.lock.unlock());
  });
});
