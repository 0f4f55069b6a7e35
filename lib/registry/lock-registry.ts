import type {
  DistributedLock,
  Leadership,
  Lease,
  LockOptions,
  LockSource,
  ReadWriteLock,
  TryRunResult,
} from '../api/distributed-lock';
import type {
  AdoptOptions,
  CloseOptions,
  LeadOptions,
  OnceOptions,
  SegmentedLockOptions,
  SemaphoreOptions,
} from '../api/options';
import { knownAcrossCopies } from '../internal/copies';
import type { MultiLock } from '../multi/multi-lock';
import { SegmentedLock } from '../segmented/segmented-lock';
import { lead } from './lead';

/**
 * Hands out locks by key: what a service gets injected. An abstract class and not an interface, so that it can be a
 * token for dependency injection. Unit tests may extend it.
 */
export abstract class LockRegistry implements LockSource {
  /**
   * The lock of this key. It sends no command.
   * @throws TypeError when the key is not a string, is empty, or is not well-formed UTF-16.
   * @example
   * const lock = registry.obtain('order:42');
   */
  abstract obtain(key: string): DistributedLock;

  /**
   * Shorthand for `obtain(key).run(task, options)`, with the same errors.
   * @example
   * await registry.run('order:42', async (lease) => ship(order, lease.signal), { waitTime: 5_000 });
   */
  async run<T>(key: string, task: (lease: Lease) => T | PromiseLike<T>, options?: LockOptions): Promise<T> {
    return this.obtain(key).run(task, options);
  }

  /**
   * Shorthand for `obtain(key).tryRun(task, options)`, with the same errors.
   * @example
   * const result = await registry.tryRun('nightly', () => clean(), { minHold: 30_000 });
   * if (!result.ran) console.log('another process does it');
   */
  async tryRun<T>(
    key: string,
    task: (lease: Lease) => T | PromiseLike<T>,
    options?: LockOptions,
  ): Promise<TryRunResult<T>> {
    return this.obtain(key).tryRun(task, options);
  }

  /**
   * Runs the task while this process leads: one of all that call `lead` with this key. The others wait. After a loss the
   * process waits again, until `signal` aborts; while Redis cannot be reached it tries every second. The process leads
   * for as long as the task runs. When the task ends, another process may lead, and `lead` resolves to the task's result;
   * `undefined` when `signal` has aborted, and the task rejected with its reason or an `AbortError`, lost its lock, or did not run.
   * @throws what the task throws; a loss that it rejects with as `run` says is none.
   * @throws CannotAcquireLockError when Redis refused, or the client is closed.
   * @throws LockQueueFullError when `maxWaiting` callers wait for the lock already.
   * @throws RegistryClosedError when the registry is closed. `close()` waits for a leader: abort `signal` before it.
   * @throws TypeError when an argument is not valid.
   * @example
   * await registry.lead('scheduler', ({ signal }) => schedule(signal), { signal: stopping.signal });
   */
  async lead<T>(
    key: string,
    task: (leadership: Leadership) => T | PromiseLike<T>,
    options?: LeadOptions,
  ): Promise<T | undefined> {
    return lead(this.obtain(key), task, options);
  }

  /**
   * The lock of a resource that is split into segments, so that several callers work on it at a time.
   * @throws TypeError or RangeError when the key or an option is not valid.
   * @example
   * const stock = registry.segmented('{product:7}', { segments: 20 }); // create it once and keep it
   */
  segmented(key: string, options: SegmentedLockOptions): SegmentedLock {
    return new SegmentedLock(this, key, options);
  }

  /**
   * A lock that up to `permits` callers have at a time, over all processes, in the order in which they came. The same
   * object for the same key, as long as it is cached; the number that was given last counts.
   * @throws TypeError or RangeError when the key or `permits` is not valid.
   * @throws Error when this registry has no semaphores.
   * @example
   * await registry.semaphore('render', { permits: 3 }).run(() => render(page));
   */
  semaphore(_key: string, _options: SemaphoreOptions): DistributedLock {
    throw new Error(`${this.constructor.name} has no semaphores`);
  }

  /**
   * A lock that many readers have at a time, or one writer, in the order in which they came: a waiting writer keeps new
   * readers out. The same object for the same key, as long as it is cached.
   * @throws TypeError or RangeError when the key is not valid.
   * @throws Error when this registry has no read/write locks.
   * @example
   * const { read, write } = registry.readWrite('prices');
   * const price = await read.run(() => priceOf(article));
   */
  readWrite(_key: string): ReadWriteLock {
    throw new Error(`${this.constructor.name} has no read/write locks`);
  }

  /**
   * A multi-key lock: the locks of several keys, taken all or nothing. Keys that are given twice count once.
   * @throws TypeError or RangeError when there is no key, there are over 1,000, or one is not valid.
   * @example
   * await registry.multi(['account:1', 'account:2']).run(() => transfer());
   */
  multi(_keys: readonly string[]): MultiLock {
    throw new TypeError(`${this.constructor.name} has no locks of several keys`);
  }

  /**
   * The result of a task that one caller of all processes runs, under the lock of this key; the others get its result. It
   * is kept for `keepFor` ms, and only if the lock was held to the end of the task. An error of the task rejects the
   * callers of this process, and is not kept: the next caller runs its own task. So does the next one that waits when a
   * caller leaves before its task has begun, or when the task fails after its caller has left.
   * @throws TypeError or RangeError when the key or an option is not valid, or the result has no text, or one of over
   *   1 MiB.
   * @throws TypeError when a result is kept that cannot be read: `forget` removes it.
   * @throws `signal.reason`, and RegistryClosedError when the registry is closed.
   * @throws LockTimeoutError when there is no result within `waitTime`, and somebody has the lock.
   * @throws LockQueueFullError when `maxWaiting` callers wait for the lock already.
   * @throws LockLostError when the lock was lost before the task had ended: nothing is kept.
   * @throws NotLockOwnerError when the task has unlocked or detached its lease: nothing is kept.
   * @throws CannotAcquireLockError when Redis failed or was silent, and at once inside a task of the same key.
   * @throws Error when this registry keeps no results.
   * @example
   * const token = await registry.once('token:shop', () => refresh(), { keepFor: 60_000 });
   */
  async once<T>(_key: string, _task: (lease: Lease) => T | PromiseLike<T>, _options: OnceOptions<T>): Promise<T> {
    throw new Error(`${this.constructor.name} keeps no results`);
  }

  /**
   * Removes the result that `once` has kept. The result of a task that began before is not kept either: only the caller
   * of that task gets it, and those that wait with it run their own.
   * @returns whether there was one
   * @throws CannotAcquireLockError when Redis failed or was silent.
   */
  async forget(_key: string): Promise<boolean> {
    throw new Error(`${this.constructor.name} keeps no results`);
  }

  /**
   * Goes on with a lease that `Lease.detach` has ended, here or in another process: of a lock of the same `registryKey`
   * and format (`spin`, `pub-sub` and `fair` have one, `redisson` another). Nobody has the lock in between. The new lease
   * has a ttl from now on, a new fencing token, and what was left of the `minHold`. It is beside the local turn: callers
   * of this process wait for it as for that of another process, and a `run` does not enter it again. One text adopts once.
   * After a `CannotAcquireLockError`, adopt again with the same registry: an adoption that Redis did not answer is found.
   * @param passport what `detach` returned
   * @throws LockLostError when it was adopted before (`stolen`), or came to its end (`expired`).
   * @throws CannotAcquireLockError when Redis failed or was silent: within 300 ms while the client says that it has no
   *   connection, else after `commandTimeout`.
   * @throws RegistryClosedError when the registry is closed: another one can adopt it.
   * @throws TypeError for a text of another version, lock or format, and in a registry whose leases do not travel.
   * @throws TypeError or RangeError when an option is not valid.
   * @throws Error when this registry adopts nothing.
   * @example
   * await using lease = await registry.adopt(job.data.lease); // the request that made the job has locked
   */
  async adopt(_passport: string, _options?: AdoptOptions): Promise<Lease> {
    throw new Error(`${this.constructor.name} adopts no leases`);
  }

  /**
   * Refuses new callers, rejects the waiters, and waits for the holders. A registry that has nothing to close does
   * nothing.
   */
  async close(_options?: CloseOptions): Promise<void> {}
}

knownAcrossCopies({ LockRegistry });
