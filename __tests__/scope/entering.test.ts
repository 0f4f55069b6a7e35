import { expect, it } from '@jest/globals';
import { SLACK } from '../contract/timing';
import { HoldableClient } from '../support/held-commands';
import { machineDelay } from '../support/machine-delay';
import { describeReal } from '../support/redis';
import { Gate, isExcluded, SCOPE_TYPES, ScopeFixture } from './scope-fixture';

const numbers = (count: number): number[] => Array.from({ length: count }, (_, i) => i);

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

  it('Entry by siblings in a scope comes before callers outside the scope: first all of the scope, then the others', async () => {
    const gate = new Gate();
    const outsiders = [scope.lock, scope.theirs, scope.lock].map(async (outside) => {
      await gate.opened;
      await outside.run(() => scope.enter('outside'));
    });
    await scope.lock.run(async () => {
      gate.open();
      await Promise.all(numbers(4).map(() => scope.lock.run(() => scope.enter('inside'))));
      await scope.enter('inside');
    });
    await Promise.all(outsiders);
    expect(scope.entered).toEqual([...Array(5).fill('inside'), ...Array(3).fill('outside')]);
  });

  it('Entry by siblings in a scope takes one turn for any number of unlocks of a nested lease', async () => {
    await scope.lock.run(async () => {
      const first = await scope.lock.lock();
      const waiters = ['second', 'third'].map((name) =>
        scope.lock.run(() =>
          scope.enter(name, async () => {
            await Promise.all([first.unlock(), first.unlock()]);
            await first[Symbol.asyncDispose]();
            // Enough time for the third to enter, if it could.
            expect(await scope.isInRedis('key')).toBe(true);
          }),
        ),
      );
      await first.unlock();
      await first.unlock();
      await Promise.all(waiters);
    });
    expect(scope.entered).toEqual(['second', 'third']);
  });

  it('Entry by siblings in a scope is given up after waitTime: lock and run reject, tryLock resolves to null, and the task is not called', async () => {
    await scope.lock.run(async () => {
      const sibling = await scope.lock.lock();
      const start = performance.now();
      const timedOut = { code: 'ERR_LOCK_TIMEOUT', key: 'key', waitTime: 100 };
      const [tried] = await Promise.all([
        scope.lock.tryLock({ waitTime: 100 }),
        expect(scope.lock.lock({ waitTime: 100 })).rejects.toMatchObject(timedOut),
        expect(scope.lock.run(() => scope.enter('never'), { waitTime: 100 })).rejects.toMatchObject(timedOut),
      ]);
      const waited = performance.now() - start;
      expect(tried).toBeNull();
      expect(scope.entered).toEqual([]);
      expect(waited).toBeGreaterThanOrEqual(90); // a timer counts from the start of its event loop turn
      expect(waited).toBeLessThan(100 + SLACK + machineDelay());
      sibling.assertHeld();
      await sibling.unlock();
      expect(await isExcluded(scope.lock)).toBe(false);
    });
  });

  it('Entry by siblings in a scope is given up at once when the signal aborts, with its reason, and the others keep their positions', async () => {
    const controller = new AbortController();
    const reason = new Error('changed my mind');
    const { signal } = controller;
    await scope.lock.run(async () => {
      const first = await scope.lock.lock();
      const enter = (name: string, options = {}) => scope.lock.run(() => scope.enter(name), options);
      const before = enter('before');
      const rejected = Promise.all([
        expect(scope.lock.lock({ signal })).rejects.toBe(reason),
        expect(scope.lock.tryLock({ signal, waitTime: 60_000 })).rejects.toBe(reason),
        expect(enter('never', { signal })).rejects.toBe(reason),
      ]);
      const after = enter('after');
      const aborted = performance.now();
      controller.abort(reason);
      await rejected;
      expect(performance.now() - aborted).toBeLessThan(SLACK + machineDelay());
      expect(scope.entered).toEqual([]);
      await first.unlock();
      await Promise.all([before, after]);
      // Also where nobody is inside.
      await expect(enter('never', { signal })).rejects.toBe(reason);
      await expect(scope.lock.tryLock({ signal })).rejects.toBe(reason);
    });
    expect(scope.entered).toEqual(['before', 'after']);
  });

  it('Entering a lock again in its scope obeys waitTime and signal also while Redis does not answer the extension of the lease (P1)', async () => {
    const client = new HoldableClient(scope.clients[0]);
    const lock = scope.registryOn(client, { commandTimeout: 2_000 }).obtain('key');
    const controller = new AbortController();
    const reason = new Error('changed my mind');
    await lock.run(
      async () => {
        const first = client.catchNext('held');
        const start = performance.now();
        await expect(lock.run(() => 'never', { ttl: 60_000, waitTime: 50 })).rejects.toThrow();
        expect(performance.now() - start).toBeLessThan(50 + SLACK + machineDelay());
        const second = client.catchNext('held');
        const { signal } = controller;
        const rejected = expect(lock.run(() => 'never', { ttl: 60_000, signal })).rejects.toBe(reason);
        await Promise.all([first, second]);
        const aborted = performance.now();
        controller.abort(reason);
        await rejected;
        expect(performance.now() - aborted).toBeLessThan(SLACK + machineDelay());
      },
      { ttl: 30_000 },
    );
  });
});
