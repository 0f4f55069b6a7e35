/** A process that holds one lock and waits for another, which another process holds. */

import type { RedisClientOptions } from 'redis';
import { type DistributedLock, LockTimeoutError, type LockType, RedisLockRegistry } from '../../../lib';
import { connect, report, serve } from '../../support/serve';
import { until } from '../../support/until';

export interface DeadlockJob {
  readonly redis: RedisClientOptions;
  readonly registryKey: string;
  readonly name: string;
  readonly lockType: LockType;
  readonly own: Taken;
  readonly wanted: Taken;
  /** The lock that it holds is that of a `run`, or was taken by `lock`. */
  readonly by: 'run' | 'lock';
  /** ms of each attempt; `undefined`: it makes one, and waits until it has the lock. */
  readonly waitTime: number | undefined;
  /** The most attempts: there are none after an error that says the circle. */
  readonly attempts: number;
}

/** Which lock, and how it is taken. */
export interface Taken {
  readonly key: string;
  readonly as: 'lock' | 'semaphore' | 'read' | 'write';
}

export interface DeadlockReport {
  readonly state: 'done';
  readonly errors: readonly string[];
  readonly warnings: readonly string[];
}

async function wait({ redis, own, wanted, by, waitTime, attempts, ...options }: DeadlockJob): Promise<void> {
  const warnings: string[] = [];
  const registry = new RedisLockRegistry(await connect(redis), {
    ...options,
    idleBetweenTries: 20,
    warnAfter: 200,
    onWarning: ({ message }) => void warnings.push(message),
  });
  const errors: string[] = [];
  const lockOf = ({ key, as }: Taken): DistributedLock => {
    if (as === 'lock') return registry.obtain(key);
    if (as === 'read') return registry.readWrite(key).read;
    if (as === 'write') return registry.readWrite(key).write;
    return registry.semaphore(key, { permits: 1 });
  };
  const other = lockOf(wanted);
  const inside = async (): Promise<void> => {
    await until(async () => (await other.inspect()).held);
    if (waitTime === undefined) {
      await (await other.lock()).unlock();
      return;
    }
    // A question that a busy machine answers too late is asked again by the next attempt.
    for (let i = 0; i < attempts && !(errors.at(-1) ?? '').includes('deadlock'); i++) {
      await other
        .lock({ waitTime })
        .then((lease) => lease.unlock())
        .catch((error) => {
          if (!(error instanceof LockTimeoutError)) throw error;
          errors.push(error.message);
        });
    }
  };
  const lock = lockOf(own);
  if (by === 'run') {
    await lock.run(inside);
  } else {
    const lease = await lock.lock();
    await inside();
    await lease.unlock();
  }
  report<DeadlockReport>({ state: 'done', errors, warnings });
}

serve(wait);
