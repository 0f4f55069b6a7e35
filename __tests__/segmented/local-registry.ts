import type { RedisLock } from '../../lib';
import { InMemoryLockRegistry } from '../../lib/testing';

/** Locks in memory that can be asked who contends for them: a segmented lock needs no more than a registry. */
export class LocalRegistry extends InMemoryLockRegistry {
  /** The keys of all acquisitions, in order, with repetitions. */
  readonly contended: string[] = [];
  readonly #locks = new Map<string, RedisLock>();
  readonly #waiting = new Map<string, number>();

  override obtain(key: string): RedisLock {
    const known = this.#locks.get(key);
    if (known !== undefined) return known;
    const lock = super.obtain(key);
    this.#locks.set(key, lock);
    const run = lock.run.bind(lock);
    lock.run = (task, options) => {
      const stopWaiting = this.#contend(key);
      const enter: typeof task = (lease) => {
        stopWaiting();
        return task(lease);
      };
      return run(enter, options).finally(stopWaiting);
    };
    return lock;
  }

  /** The held keys. */
  get held(): string[] {
    return [...this.#locks.values()].filter((lock) => lock.isAcquiredInThisProcess).map(({ key }) => key);
  }

  /** Number of waiters of a key. */
  waiting(key: string): number {
    return this.#waiting.get(key) ?? 0;
  }

  #contend(key: string): () => void {
    this.contended.push(key);
    this.#waiting.set(key, this.waiting(key) + 1);
    let isWaiting = true;
    return () => {
      if (isWaiting) this.#waiting.set(key, this.waiting(key) - 1);
      isWaiting = false;
    };
  }
}
