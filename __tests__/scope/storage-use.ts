import asyncHooks from 'node:async_hooks';
import type { RedisClientOptions } from 'redis';
import type { LockType } from '../../lib/protocols/lock-types';
import { connect, report, serve } from '../support/serve';

/** Uses of AsyncLocalStorage: on Node 20 and 22 the first use makes every later `await` more expensive. */
export interface StorageUse {
  made: number;
  called: number;
}

/** Message from storage.test.ts. */
export interface StorageQuestion {
  readonly lockType: LockType;
  readonly redis: RedisClientOptions;
  readonly registryKey: string;
}

export interface StorageReport {
  readonly state: 'done';
  readonly afterLocks: StorageUse;
  readonly afterFirstRun: StorageUse;
  readonly afterSecondRun: StorageUse;
}

const use: StorageUse = { made: 0, called: 0 };

class WatchedStorage<T> extends asyncHooks.AsyncLocalStorage<T> {
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

Object.defineProperty(asyncHooks, 'AsyncLocalStorage', { value: WatchedStorage });

async function answer({ lockType, redis, registryKey }: StorageQuestion): Promise<void> {
  // Loaded after the class was replaced.
  const { RedisLockRegistry } = require('../../lib') as typeof import('../../lib');
  const client = await connect(redis);
  const mine = new RedisLockRegistry(client, { registryKey, lockType, idleBetweenTries: 10 });
  const others = new RedisLockRegistry(client, { registryKey, lockType, idleBetweenTries: 10 });
  const lock = mine.obtain('key');
  Object.assign(use, { made: 0, called: 0 });

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
  const afterLocks = { ...use };

  await mine.run('key', () => undefined);
  const afterFirstRun = { ...use };
  await mine.run('key', () => mine.run('key', () => others.run('another', () => undefined)));
  report<StorageReport>({ state: 'done', afterLocks, afterFirstRun, afterSecondRun: { ...use } });
}

serve(answer);
