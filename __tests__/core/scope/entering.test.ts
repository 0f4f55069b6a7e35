import { expect, it } from '@jest/globals';
import { NotLockOwnerError } from '../../../lib';
import { describeReal } from '../../support/redis';
import { expectLost, Gate, isExcluded, SCOPE_TYPES, ScopeFixture } from './scope-fixture';

const numbers = (count: number): number[] => Array.from({ length: count }, (_, i) => i);

const expectRefused = (unlocked: Promise<unknown>) => expect(unlocked).rejects.toThrow(NotLockOwnerError);

describeReal.each(SCOPE_TYPES)('Entering a %s lock again in its scope', (lockType) => {
  const scope = ScopeFixture.install(lockType);

  it('Entering a lock again in its scope works with a nested run, ten levels deep, and only the outermost releases the lock', async () => {
    const descend = async (level: number): Promise<number> => {
      const depth = level === 10 ? level : await scope.lock.run(() => descend(level + 1));
      // Also on the way back: nothing was released yet.
      expect(await scope.isInRedis('key')).toBe(true);
      expect(await isExcluded(scope.theirs)).toBe(true);
      await scope.enter('a level');
      return depth;
    };
    expect(await scope.lock.run(() => descend(1))).toBe(10);
    expect(scope.entered).toHaveLength(10);
    expect(await isExcluded(scope.theirs)).toBe(false);
  });

  it('Entering a lock again in its scope sends nothing in any code that the task calls, through awaits, timers and microtasks', async () => {
    const { spy, lock } = scope.spied();
    await lock.run(async () => {
      const before = spy.sent;
      const enter = () => lock.run(() => scope.enter('inside'));
      await Promise.all([
        Promise.resolve()
          .then(() => null)
          .then(enter),
        new Promise((resolve) => setTimeout(() => resolve(enter()), 1)),
        new Promise((resolve) => setImmediate(() => resolve(enter()))),
        new Promise((resolve) => process.nextTick(() => resolve(enter()))),
        new Promise((resolve) => queueMicrotask(() => resolve(enter()))),
        scope.admin.exists('whatever').then(enter),
      ]);
      expect(spy.sent).toBe(before);
    });
    expect(scope.entered).toHaveLength(6);
  });

  it('Entering a lock again in its scope is a new acquisition after an early unlock of the lease, which ends the scope', async () => {
    await scope.lock.run(async (lease) => {
      await lease.unlock();
      const held = await scope.theirs.lock();
      expect(await scope.lock.tryLock()).toBeNull();
      const run = scope.lock.run(() => scope.enter('mine'));
      await scope.enter('theirs', () => held.assertHeld());
      await held.unlock();
      await run;
    });
    expect(scope.entered).toEqual(['theirs', 'mine']);
  });

  it('Entering a lock again in its scope needs no turn of another key of the scope', async () => {
    const [one, two] = [new Gate(), new Gate()];
    await scope.mine.run('one', () =>
      scope.mine.run('two', () =>
        Promise.all([
          scope.mine.run('one', async () => {
            one.open();
            await two.opened;
          }),
          scope.mine.run('two', async () => {
            two.open();
            await one.opened;
          }),
        ]),
      ),
    );
    expect([await scope.isInRedis('one'), await scope.isInRedis('two')]).toEqual([false, false]);
  });

  it('Entering a lock again in its scope is possible with an evicted lock object, inside the scope of its replacement', async () => {
    const { spy, registry, lock: forgotten } = scope.spied();
    registry.expireUnusedOlderThan(-1);
    const fresh = registry.obtain('key');
    expect(fresh).not.toBe(forgotten);
    await fresh.run(async () => {
      const before = spy.sent;
      await Promise.all([
        forgotten.run(() => scope.enter('forgotten')),
        fresh.run(() => scope.enter('fresh')),
        forgotten.run(() => fresh.run(() => scope.enter('both'))),
      ]);
      await forgotten.lock();
      await fresh.unlock();
      await fresh.lock();
      await forgotten.unlock();
      expect(forgotten.isAcquiredInThisProcess).toBe(true);
      expect(spy.sent).toBe(before);
      expect(await isExcluded(scope.theirs)).toBe(true);
    });
    expect(scope.entered).toHaveLength(3);
  });

  it('Entering a lock again in its scope is possible in running tasks while the registry closes, nested runs included, and to no other caller', async () => {
    const { spy, registry, lock } = scope.spied();
    const closed = { name: 'RegistryClosedError' };
    const [inside, closing] = [new Gate(), new Gate()];
    const holder = lock.run(async () => {
      inside.open();
      await closing.opened;
      const before = spy.sent;
      await Promise.all([1, 2].map((i) => lock.run(() => scope.enter(`nested ${i}`))));
      expect(await isExcluded(lock)).toBe(false);
      await (await lock.lock()).unlock();
      expect(spy.sent).toBe(before);
      await expect(registry.run('another', () => 'never')).rejects.toMatchObject(closed);
      return 'done';
    });
    await inside.opened;
    let isClosed = false;
    const close = registry.close().then(() => {
      isClosed = true;
    });
    await expect(lock.run(() => 'never')).rejects.toMatchObject(closed);
    closing.open();
    expect(isClosed).toBe(false);
    expect(await holder).toBe('done');
    await close;
    expect(scope.entered).toHaveLength(2);
  });

  it('Entry by siblings in a scope is one at a time, on two levels: the children of one finish before the next begins', async () => {
    const family = (parent: number) =>
      Promise.all(numbers(3).map((child) => scope.lock.run(() => scope.enter(`${parent}.${child}`))));
    await scope.lock.run(() => Promise.all(numbers(3).map((i) => scope.lock.run(() => family(i)))));
    expect(scope.entered).toEqual(['0.0', '0.1', '0.2', '1.0', '1.1', '1.2', '2.0', '2.1', '2.2']);
  });

  it('Entry by siblings in a scope is one at a time with any of run, lock and tryLock', async () => {
    const kinds = {
      run: (name: string) => scope.lock.run(() => scope.enter(name)),
      lease: async (name: string) => {
        await using _lease = await scope.lock.lock();
        await scope.enter(name);
      },
      // As in Spring: the lock is unlocked, not the lease.
      lock: async (name: string) => {
        await scope.lock.lock();
        await scope.enter(name);
        await scope.lock.unlock();
      },
      tryLock: async (name: string) => {
        const lease = await scope.lock.tryLock({ waitTime: 10_000 });
        expect(lease).not.toBeNull();
        await scope.enter(name);
        await lease?.unlock();
      },
    };
    const names = numbers(3).flatMap((i) => Object.keys(kinds).map((kind) => `${kind} ${i}`));
    await scope.lock.run(() => Promise.all(names.map((name) => kinds[name.split(' ')[0] as keyof typeof kinds](name))));
    expect(scope.entered).toEqual(names);
  });

  it('In a scope, a lease that is lost admits no re-entry: run, lock and tryLock reject, send nothing, and make no new acquisition', async () => {
    const { spy, lock } = scope.spied();
    const run = lock.run(async (lease) => {
      await scope.lose(lease);
      const before = spy.sent;
      const entering = lock.run(() => scope.enter('never'));
      await expectLost(entering, 'expired');
      await expectLost(lock.lock(), 'expired');
      await expectLost(lock.tryLock(), 'expired');
      await expectLost(lock.lock({ ttl: 600_000, waitTime: 1_000 }), 'expired');
      expect(spy.sent).toBe(before);
      expect(lock.isAcquiredInThisProcess).toBe(false);
      expect(await scope.isInRedis('key')).toBe(false);
    });
    await expectLost(run, 'expired');
    expect(scope.entered).toEqual([]);
  });

  it.each(['run', 'lock', 'tryLock'] as const)(
    'In a scope, %s that waits for its own sibling, which waits for it, ends with the lease',
    async (method) => {
      const { lock } = scope.spied();
      let nested: Promise<unknown> = Promise.resolve();
      const run = lock.run(async (lease) => {
        const sibling = await lock.lock();
        nested = method === 'run' ? lock.run(() => scope.enter('never')) : lock[method]({ waitTime: 600_000 });
        void nested.catch(() => undefined);
        await new Promise((resolve) => setImmediate(resolve));
        await scope.lose(lease);
        await expectLost(nested, 'expired');
        await expectLost(sibling.unlock(), 'expired');
      });
      await expectLost(run, 'expired');
      expect(scope.entered).toEqual([]);
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
});
