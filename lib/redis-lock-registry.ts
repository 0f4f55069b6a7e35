import { randomUUID } from 'node:crypto';
import { clock, Timer } from './clock';
import { warn } from './diagnostics';
import { CannotAcquireLockError, NotLockOwnerError, RegistryClosedError } from './errors';
import { LinkedList } from './linked-list';
import { LockRegistry } from './lock-registry';
import {
  duration,
  expected,
  nonEmptyString,
  notNegative,
  number,
  type RedisLockRegistryOptions,
  registrySettings,
  type SegmentedLockOptions,
} from './options';
import { Orphans } from './orphans';
import { isRedisClient, Redis, type RedisClient } from './redis/client';
import { hashTag } from './redis/names';
import { type LockServices, RedisLock } from './redis-lock';
import { SegmentedLock } from './segmented-lock';
import { createStrategy } from './strategies';
import type { Wait } from './wait';
import { Watchdog } from './watchdog';

/** ms that `close` waits for the holders. */
const CLOSE_TIMEOUT = 10_000;

/**
 * A registry of distributed locks on Redis: hands out one `RedisLock` for each key.
 *
 * Make one for each process and `registryKey`, and inject it. The client stays the caller's: it is neither closed
 * nor changed, and it must be connected, or be about to be, when locks are taken.
 */
export class RedisLockRegistry extends LockRegistry implements AsyncDisposable {
  readonly #services: LockServices;
  readonly #locks = new Map<string, RedisLock>();
  /** The same: the least recently used one comes first. */
  readonly #byUse = new LinkedList<RedisLock>();
  /** Of callers between their call and their lease. */
  readonly #waits = new LinkedList<Wait>();
  readonly #clientId = randomUUID();
  #sequence = 0;
  #closing: Promise<void> | undefined;

  /** Throws `TypeError` or `RangeError` when an option is unknown or bad, or the client has no `eval` and `evalSha`. */
  constructor(client: RedisClient, options: RedisLockRegistryOptions) {
    super();
    if (!isRedisClient(client)) {
      throw new TypeError(expected('client', 'a Redis client with the methods eval and evalSha', client));
    }
    const settings = registrySettings(options);
    const redis = new Redis(client, settings.commandTimeout);
    const strategy = createStrategy(settings.lockType, redis, settings);
    this.#services = {
      settings,
      redis,
      strategy,
      watchdog: new Watchdog(strategy, settings.commandTimeout),
      orphans: new Orphans(strategy, redis, settings.commandTimeout),
      nextOwner: () => `${this.#clientId}:${++this.#sequence}`,
      begin: (wait) => this.#begin(wait),
      end: (wait) => this.#waits.remove(wait),
      cached: (key) => this.#locks.get(key),
      readmit: (lock) => this.#locks.get(lock.key) ?? this.#cache(lock),
    };
  }

  /**
   * The lock of this key: the same object for the same key, as long as it is cached.
   * Throws `CannotAcquireLockError` when the cache is full of locks that are in use.
   */
  obtain(key: string): RedisLock {
    const lock = this.#locks.get(nonEmptyString('key', key)) ?? new RedisLock(key, this.#services);
    return this.#cache(lock);
  }

  /**
   * The lock of a resource that is split into segments, so that several callers work on it at a time.
   * Throws `TypeError` or `RangeError` when the key or an option is bad.
   */
  segmented(key: string, options: SegmentedLockOptions): SegmentedLock {
    const { registryKey, onWarning } = this.#services.settings;
    if (hashTag(registryKey) !== undefined) {
      const message = `The hash tag in registryKey "${registryKey}" puts all segments of "${key}" into one slot of a cluster`;
      warn(onWarning, { code: 'SEGMENTS_SHARE_SLOT', message, key });
    }
    return new SegmentedLock(this, key, options);
  }

  /** The number of cached locks. */
  get size(): number {
    return this.#locks.size;
  }

  /**
   * Makes the lease that this process holds on `key` last at least `ttl` ms from now (default: the ttl it was taken
   * with), and never less than it did. Rejects with `NotLockOwnerError` when this process does not hold it, else as
   * `Lease.renew` does.
   */
  async renewLock(key: string, ttl?: number): Promise<void> {
    const lock = this.#locks.get(nonEmptyString('key', key));
    if (ttl !== undefined) duration('ttl', ttl);
    if (lock === undefined) throw new NotLockOwnerError(`Lock "${key}" is not held in this process`, key);
    await lock.renew(ttl);
  }

  /** Forgets the locks that were not used for more than `age` ms and are not in use. A negative age: all not in use. */
  expireUnusedOlderThan(age: number): void {
    if (Number.isNaN(number('age', age))) throw new RangeError(expected('age', 'a number of milliseconds', age));
    const now = clock.now();
    for (const lock of this.#locks.values()) {
      if (!lock.isInUse && now - lock.usedAt > age) this.#evict(lock);
    }
  }

  /**
   * Rejects the callers that wait (`RegistryClosedError`) and all later ones, and waits for the holders, whose leases
   * are still renewed, for up to `timeout` ms (default 10 000). What is held even then is renewed no more: its signal
   * aborts with a `LockLostError` of reason `closed`, and its key expires; it is not deleted under a running task.
   */
  async close(options: { timeout?: number | undefined } = {}): Promise<void> {
    const { timeout = CLOSE_TIMEOUT } = options;
    this.#closing ??= this.#close(notNegative('timeout', timeout));
    await this.#closing;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  async #close(timeout: number): Promise<void> {
    for (const wait of [...this.#waits]) wait.interrupt(registryClosed(wait.key));
    const locks = [...this.#locks.values()].filter((lock) => lock.isInUse);
    await new Promise<void>((resolve) => {
      const timer = new Timer(timeout, resolve);
      void Promise.all(locks.map((lock) => lock.free())).then(() => {
        timer.cancel();
        resolve();
      });
    });
    for (const lock of locks) lock.loseByClose();
    this.#services.watchdog.close();
    await this.#services.orphans.settle();
    await this.#services.strategy.close();
    this.#services.redis.close();
  }

  #begin(wait: Wait): void {
    if (this.#closing !== undefined) throw registryClosed(wait.key);
    this.#waits.append(wait);
  }

  /** Makes it the most recently used one, and makes room for it where it is new. */
  #cache(lock: RedisLock): RedisLock {
    if (this.#locks.has(lock.key)) {
      this.#byUse.remove(lock);
    } else {
      this.#makeRoom(lock.key);
      this.#locks.set(lock.key, lock);
      lock.evicted = false;
    }
    this.#byUse.append(lock);
    lock.usedAt = clock.now();
    return lock;
  }

  #makeRoom(key: string): void {
    const { cacheCapacity, registryKey } = this.#services.settings;
    if (this.#locks.size < cacheCapacity) return;
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
      `Lock "${key}" cannot be cached: all ${cacheCapacity} locks of registry "${registryKey}" are in use (cacheCapacity ${cacheCapacity})`,
      key,
    );
  }

  #evict(lock: RedisLock): void {
    this.#locks.delete(lock.key);
    this.#byUse.remove(lock);
    lock.evicted = true;
  }
}

function registryClosed(key: string): RegistryClosedError {
  return new RegistryClosedError(`Lock "${key}" cannot be acquired: its registry is closed`, key);
}
