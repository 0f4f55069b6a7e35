import type { AsyncLocalStorage } from 'node:async_hooks';
import { expect, it, jest } from '@jest/globals';
import { createRealClient, describeReal, uniqueKey } from '../../support/redis';
import { SCOPE_TYPES } from './scope-fixture';

/** Uses of AsyncLocalStorage: on Node 20 and 22 the first use makes every later `await` more expensive. */
let use = { made: 0, called: 0 };

jest.mock('node:async_hooks', () => {
  const hooks = jest.requireActual<{ AsyncLocalStorage: typeof AsyncLocalStorage }>('node:async_hooks');
  class Watched<T> extends hooks.AsyncLocalStorage<T> {
    constructor() {
      super();
      use.made++;
    }

    override getStore(): T | undefined {
      use.called++;
      return super.getStore();
    }

    override enterWith(store: T): void {
      use.called++;
      super.enterWith(store);
    }

    override run<R>(store: T, callback: () => R): R {
      use.called++;
      return super.run(store, callback);
    }
  }
  return { ...hooks, AsyncLocalStorage: Watched };
});

describeReal.each(SCOPE_TYPES)('AsyncLocalStorage', (lockType) => {
  it(`AsyncLocalStorage is not used by a ${lockType} lock before the first run, and one instance serves all runs`, async () => {
    const client = await createRealClient();
    // The library as if no test had used it yet.
    jest.resetModules();
    const { RedisLockRegistry } = jest.requireActual<typeof import('../../../lib')>('../../../lib');
    const options = { registryKey: uniqueKey('registry'), lockType, idleBetweenTries: 10 };
    const [mine, others] = [new RedisLockRegistry(client, options), new RedisLockRegistry(client, options)];
    const lock = mine.obtain('key');
    use = { made: 0, called: 0 };

    const lease = await lock.lock();
    const waiting = others.obtain('key').lock();
    const waitingHere = lock.lock();
    await lock.tryLock();
    await lease.renew();
    await lease.unlock();
    await Promise.all([waiting.then((other) => other.unlock()), waitingHere.then((next) => next.unlock())]);
    await lock.tryLock();
    await lock.unlock();
    await lock.unlock().catch(() => undefined);
    expect(use).toEqual({ made: 0, called: 0 });

    await mine.run('key', () => undefined);
    expect(use.made).toBe(1);
    expect(use.called).toBeGreaterThan(0);
    await mine.run('key', () => mine.run('key', () => others.run('another', () => undefined)));
    expect(use.made).toBe(1);
    await Promise.all([mine.close(), others.close()]);
  });
});
