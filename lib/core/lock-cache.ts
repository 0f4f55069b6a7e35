import { CannotAcquireLockError } from '../api/errors';
import { clock } from '../internal/clock';
import { type Linked, LinkedList } from '../internal/linked-list';

/** What a cache needs of its locks. */
interface CachedLock<Lock> extends Linked<Lock> {
  readonly key: string;
  /** A lock that is in use stays. */
  readonly isInUse: boolean;
  /** When it was cached or last called, on the monotonic clock: whole ms. */
  usedAt: number;
  /** It was removed. Its callers use the one that is cached. */
  evicted: boolean;
  /** It was evicted. */
  retire(): void;
}

/** The locks of a registry by key, of which the least recently used ones are evicted. */
export class LockCache<Lock extends CachedLock<Lock>> {
  readonly #capacity: number;
  readonly #registryKey: string;
  readonly #locks = new Map<string, Lock>();
  /** All locks of `#locks`: the least recently used one comes first. */
  readonly #byUse = new LinkedList<Lock>();

  constructor(capacity: number, registryKey: string) {
    this.#capacity = capacity;
    this.#registryKey = registryKey;
  }

  get size(): number {
    return this.#locks.size;
  }

  get(key: string): Lock | undefined {
    return this.#locks.get(key);
  }

  get inUse(): Lock[] {
    return [...this.#locks.values()].filter((lock) => lock.isInUse);
  }

  /** Removes the locks that are not in use and were not called for more than `age` ms. */
  expireUnusedOlderThan(age: number): void {
    const now = clock.now();
    for (const lock of this.#locks.values()) {
      if (!lock.isInUse && now - lock.usedAt > age) this.#evict(lock);
    }
  }

  /** Makes the lock the most recently used one, and makes room for it where it is new. */
  add(lock: Lock): Lock {
    if (this.#locks.has(lock.key)) {
      this.#byUse.remove(lock);
    } else {
      this.#makeRoom(lock.key);
      this.#locks.set(lock.key, lock);
      lock.evicted = false;
      lock.usedAt = Math.floor(clock.now());
    }
    this.#byUse.append(lock);
    return lock;
  }

  /**
   * The lock of the key, which is then the most recently used one, if it is cached. The clock is not read, which would
   * cost as much as the rest: a lock that is obtained is mostly called next, and notes the time itself.
   */
  obtain(key: string): Lock | undefined {
    const lock = this.#locks.get(key);
    if (lock !== undefined) {
      this.#byUse.remove(lock);
      this.#byUse.append(lock);
    }
    return lock;
  }

  /** Caches a lock again that was evicted, unless another one is cached for its key. Returns the cached one. */
  readmit(lock: Lock): Lock {
    return this.get(lock.key) ?? this.add(lock);
  }

  #makeRoom(key: string): void {
    if (this.#locks.size < this.#capacity) return;
    const { last } = this.#byUse;
    for (const lock of this.#byUse) {
      if (!lock.isInUse) {
        this.#evict(lock);
        return;
      }
      // What is in use is recently used: then the next search does not have to pass it again.
      this.#byUse.remove(lock);
      this.#byUse.append(lock);
      if (lock === last) break;
    }
    throw new CannotAcquireLockError(
      `Lock "${key}" cannot be cached: all ${this.#capacity} locks of registry "${this.#registryKey}" are in use (cacheCapacity ${this.#capacity})`,
      key,
    );
  }

  #evict(lock: Lock): void {
    this.#locks.delete(lock.key);
    this.#byUse.remove(lock);
    lock.evicted = true;
    lock.retire();
  }
}
