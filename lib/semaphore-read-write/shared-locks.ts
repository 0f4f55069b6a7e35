import type { DistributedLock } from '../api/distributed-lock';
import { describeKind, type SharedKind } from '../api/lock-types';
import type { SemaphoreOptions } from '../api/options';
import type { LockBackend, SharedBackend } from '../core/backend';
import type { LockServices, RedisLock } from '../core/lock';
import { LockCache } from '../core/lock-cache';
import { type Check, checkOptions, nonEmptyString, wholeNumber } from '../internal/validation';
import { ReadLock, type ReadWriteLock, Semaphore, WriteLock } from './shared-lock';

/** The locks of one kind, and what they share. */
interface Kind {
  readonly cache: LockCache;
  readonly services: LockServices;
}

/** The semaphores and read/write locks of a registry. Each kind has a cache of its own. */
export class SharedLocks {
  readonly #services: LockServices;
  readonly #backend: LockBackend;
  readonly #shared: SharedBackend;
  /** Made when one of them is asked for: most registries have none. */
  readonly #kinds = new Map<SharedKind, Kind>();
  /** By the lock for reading. */
  readonly #pairs = new WeakMap<RedisLock, ReadWriteLock>();

  constructor(services: LockServices, backend: LockBackend) {
    this.#services = services;
    this.#backend = backend;
    this.#shared = backend.shared;
  }

  semaphore(key: string, options: SemaphoreOptions): DistributedLock {
    nonEmptyString('key', key);
    const permits: Check<unknown> = (name, value) => wholeNumber(name, value, 1);
    checkOptions({ permits }, options);
    // Also when it is missing: without a number nobody could enter.
    const count = wholeNumber('permits', options.permits, 1);
    const { cache, services } = this.#kind('semaphore');
    const lock = (cache.get(key) as Semaphore | undefined) ?? new Semaphore(key, services);
    lock.permits.give(count);
    return cache.add(lock);
  }

  readWrite(key: string): ReadWriteLock {
    nonEmptyString('key', key);
    const reads = this.#kind('read');
    const writes = this.#kind('write');
    const read = reads.cache.get(key) ?? new ReadLock(key, reads.services, () => writes.cache.get(key));
    const write = writes.cache.get(key) ?? new WriteLock(key, writes.services, () => reads.cache.get(key));
    reads.cache.add(read);
    writes.cache.add(write);
    const known = this.#pairs.get(read);
    if (known?.write === write) return known;
    const pair = { key, read, write };
    this.#pairs.set(read, pair);
    return pair;
  }

  /** The number of cached locks. */
  get size(): number {
    return this.#caches.reduce((sum, { size }) => sum + size, 0);
  }

  get inUse(): RedisLock[] {
    return this.#caches.flatMap(({ inUse }) => inUse);
  }

  expireUnusedOlderThan(age: number): void {
    for (const cache of this.#caches) cache.expireUnusedOlderThan(age);
  }

  get #caches(): LockCache[] {
    return [...this.#kinds.values()].map(({ cache }) => cache);
  }

  #kind(kind: SharedKind): Kind {
    const known = this.#kinds.get(kind);
    if (known !== undefined) return known;
    const { inspection, settings } = this.#services;
    const shared = this.#shared;
    const cache = new LockCache(settings.cacheCapacity, settings.registryKey, {
      open: (names) => shared.open(kind, names),
    });
    const services: LockServices = {
      ...this.#services,
      settings: { ...settings, lockType: kind },
      inspection: inspection.of(shared.inspector),
      explainWrongType: (error, names, timeout) =>
        this.#backend.explainWrongType(error, names, describeKind(kind), timeout),
      heldScripts: shared.heldScripts(kind),
      protocols: cache,
      cache,
    };
    const made = { cache, services };
    this.#kinds.set(kind, made);
    return made;
  }
}
