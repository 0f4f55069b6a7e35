import type { DistributedLock, Lease, LockOptions, LockSource } from './distributed-lock';
import type { SegmentedLockOptions } from './options';
import { SegmentedLock } from './segmented/segmented-lock';

/**
 * Hands out locks by key: what a service gets injected. An abstract class and not an interface, so that it can be a
 * token for dependency injection. Unit tests may extend it.
 */
export abstract class LockRegistry implements LockSource {
  /** The lock of this key. */
  abstract obtain(key: string): DistributedLock;

  /**
   * Shorthand for `obtain(key).run(task, options)`.
   * @example
   * await registry.run('order:42', async (lease) => ship(order, lease.signal), { waitTime: 5_000 });
   */
  async run<T>(key: string, task: (lease: Lease) => T | PromiseLike<T>, options?: LockOptions): Promise<T> {
    return this.obtain(key).run(task, options);
  }

  /**
   * The lock of a resource that is split into segments, so that several callers work on it at a time.
   * @throws TypeError or RangeError when the key or an option is not valid.
   */
  segmented(key: string, options: SegmentedLockOptions): SegmentedLock {
    return new SegmentedLock(this, key, options);
  }

  /**
   * Refuses new callers, rejects the waiters, and waits for the holders. A registry that has nothing to close does
   * nothing.
   * @param options `timeout`: ms that it waits for the holders
   */
  async close(_options?: { timeout?: number | undefined }): Promise<void> {}
}
