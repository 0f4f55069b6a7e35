import { Attempts } from '../acquire/attempts';
import type { DistributedLock, ReadWriteLock } from '../distributed-lock';
import { nonEmptyString } from '../internal/validation';
import { LockCache } from '../lock-cache';
import type { SemaphoreOptions } from '../options';
import type { Parts } from '../protocols/parts';
import type { LockProtocol } from '../protocols/protocol';
import { describeKind, type Permits, type SharedKind } from '../protocols/shared/shared-kinds';
import { SharedProtocol } from '../protocols/shared/shared-protocol';
import { createSharedProtocols } from '../protocols/shared/shared-protocols';
import type { LockNames } from '../redis/names';
import type { LockServices, RedisLock } from '../redis-lock';
import { semaphoreSettings } from '../settings';
import { ReadLock, WriteLock } from './read-write-locks';
import { SharedLock } from './shared-lock';

/** The locks of one kind, and what they share. */
interface Kind {
  readonly cache: LockCache;
  readonly services: LockServices;
}

/** The semaphores and read/write locks of a registry. Each kind has a cache of its own. */
export class SharedLocks {
  readonly #services: LockServices;
  readonly #parts: Parts;
  /** Made when one of them is asked for: most registries have none. */
  readonly #kinds = new Map<SharedKind, Kind>();
  readonly #permits = new WeakMap<RedisLock, Permits>();
  /** By the lock for reading. */
  readonly #pairs = new WeakMap<RedisLock, ReadWriteLock>();

  constructor(services: LockServices, parts: Parts) {
    this.#services = services;
    this.#parts = parts;
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
        openProtocol: (names) => withPermits(services.openProtocol(names), permits),
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
    const { inspection, redis, settings } = this.#services;
    const protocols = createSharedProtocols(kind, this.#parts);
    const cache = new LockCache(settings.cacheCapacity, settings.registryKey, protocols);
    const services: LockServices = {
      ...this.#services,
      settings: { ...settings, lockType: kind },
      inspection: inspection.of(protocols.inspector),
      attempts: new Attempts(settings, redis, describeKind(kind)),
      openProtocol: (names: LockNames) => cache.openProtocol(names),
      cached: (key) => cache.get(key),
      readmit: (lock) => cache.get(lock.key) ?? cache.add(lock),
    };
    return { cache, services };
  }
}

function withPermits(protocol: LockProtocol, permits: Permits): LockProtocol {
  if (protocol instanceof SharedProtocol) protocol.permits = permits;
  return protocol;
}
