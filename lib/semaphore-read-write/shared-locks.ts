import { AttemptSender } from '../acquire/attempt-sender';
import type { DistributedLock } from '../distributed-lock';
import { nonEmptyString } from '../internal/validation';
import type { LockBackend, SharedBackend } from '../lock-backend';
import { LockCache } from '../lock-cache';
import type { SemaphoreOptions } from '../options';
import { describeKind, type Permits, type SharedKind } from '../protocols/semaphore-read-write/shared-kinds';
import type { LockNames } from '../redis/names';
import type { LockServices, RedisLock } from '../redis-lock';
import type { ReadWriteLock } from './read-write-lock';
import { ReadLock, WriteLock } from './read-write-locks';
import { semaphoreSettings } from './semaphore-settings';
import { SharedLock } from './shared-lock';

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
  readonly #permits = new WeakMap<RedisLock, Permits>();
  /** By the lock for reading. */
  readonly #pairs = new WeakMap<RedisLock, ReadWriteLock>();

  constructor(services: LockServices, backend: LockBackend, shared: SharedBackend) {
    this.#services = services;
    this.#backend = backend;
    this.#shared = shared;
  }

  semaphore(key: string, options: SemaphoreOptions): DistributedLock {
    nonEmptyString('key', key);
    const { count } = semaphoreSettings(options);
    const { cache, services } = this.#kind('semaphore');
    let lock = cache.get(key);
    if (lock === undefined) {
      const permits = { count };
      lock = new SharedLock(key, {
        ...services,
        protocols: { openProtocol: (names) => Object.assign(cache.openProtocol(names), { permits }) },
      });
      this.#permits.set(lock, permits);
    }
    const permits = this.#permits.get(lock);
    if (permits !== undefined) permits.count = count;
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
    let known = this.#kinds.get(kind);
    if (known === undefined) {
      known = this.#createKind(kind);
      this.#kinds.set(kind, known);
    }
    return known;
  }

  #createKind(kind: SharedKind): Kind {
    const { connection, inspection, settings } = this.#services;
    const shared = this.#shared;
    const open = (names: LockNames) => shared.open(kind, names);
    const cache = new LockCache(settings.cacheCapacity, settings.registryKey, { open });
    const services: LockServices = {
      ...this.#services,
      settings: { ...settings, lockType: kind },
      inspection: inspection.of(shared.inspector),
      sender: new AttemptSender(settings, connection, (error, names, timeout) =>
        this.#backend.explainWrongType(error, names, describeKind(kind), timeout),
      ),
      heldScripts: shared.heldScripts(kind),
      protocols: cache,
      cache,
    };
    return { cache, services };
  }
}
