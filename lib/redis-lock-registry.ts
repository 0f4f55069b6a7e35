import { randomUUID } from 'node:crypto';
import { Attempts } from './acquire/attempts';
import type { Wait } from './acquire/wait';
import { NotLockOwnerError, RegistryClosedError } from './errors';
import { captureContext } from './internal/background';
import { clock, Timer } from './internal/clock';
import { LinkedList } from './internal/linked-list';
import { ttl as checkedTtl, expected, nonEmptyString, notNegative, number } from './internal/validation';
import { Orphans } from './lease/orphans';
import { Watchdog } from './lease/watchdog';
import { LockCache } from './lock-cache';
import { LockRegistry } from './lock-registry';
import type { RedisLockRegistryOptions, SegmentedLockOptions } from './options';
import { createProtocols, type Protocols } from './protocols/lock-types';
import { describeWrongClient, isRedisClient, type RedisClient } from './redis/client';
import { hashTag } from './redis/names';
import { Redis } from './redis/redis';
import { type LockServices, RedisLock } from './redis-lock';
import type { SegmentedLock } from './segmented/segmented-lock';
import { registrySettings } from './settings';
import { type LockWarning, warn } from './warnings';

/** ms; how long `close` waits for the holders by default. */
const CLOSE_TIMEOUT = 10_000;

/** ms; `close` has at least this long to remove what attempts in flight leave in Redis. */
const CLEANING_AT_LEAST = 500;

/**
 * A registry of distributed locks on Redis: hands out one `RedisLock` for each key.
 *
 * Make one for each process and `registryKey`, and inject it. The client stays the caller's: it is neither closed
 * nor changed, and it must be connected, or be about to be, when locks are taken.
 * @example
 * const registry = new RedisLockRegistry(client, { registryKey: 'orders', lockType: 'pub-sub' });
 * await registry.run('order:42', () => ship(order));
 */
export class RedisLockRegistry extends LockRegistry implements AsyncDisposable {
  readonly #services: LockServices;
  readonly #protocols: Protocols;
  readonly #cache: LockCache;
  /** Calls that are still acquiring. */
  readonly #waits = new LinkedList<Wait>();
  #whenNoWaits: (() => void) | undefined;
  readonly #clientId = randomUUID();
  #sequence = 0;
  readonly #stopMonitoring: () => void;
  #closing: Promise<void> | undefined;

  /**
   * @throws TypeError when an option is unknown or has a wrong type, or the client has no `eval` and `evalSha`.
   * @throws RangeError when an option is out of range.
   */
  constructor(client: RedisClient, options: RedisLockRegistryOptions) {
    super();
    if (!isRedisClient(client)) throw new TypeError(describeWrongClient(client));
    const settings = inCreatorsContext(registrySettings(options));
    const redis = new Redis(client, settings.commandTimeout);
    const watchdog = new Watchdog(settings.commandTimeout);
    this.#protocols = createProtocols(settings.lockType, redis, settings);
    this.#cache = new LockCache(settings.cacheCapacity, settings.registryKey, this.#protocols);
    this.#services = {
      settings,
      redis,
      attempts: new Attempts(settings, redis.monitor),
      watchdog,
      orphans: new Orphans(redis, settings.commandTimeout),
      nextTicket: () => `${this.#clientId}:${++this.#sequence}`,
      openProtocol: (names) => this.#cache.openProtocol(names),
      begin: (wait) => this.#begin(wait),
      end: (wait) => this.#end(wait),
      cached: (key) => this.#cache.get(key),
      readmit: (lock) => this.#cache.get(lock.key) ?? this.#cache.add(lock),
    };
    // A server that was restarted, or failed over, may have lost locks: their holders learn it at once.
    this.#stopMonitoring = redis.monitor.onReconnect(() => watchdog.askAboutAll());
  }

  /**
   * The lock of this key: the same object for the same key, as long as it is cached.
   * @throws TypeError for a key that is no string, is empty, or is not well-formed UTF-16.
   * @throws RangeError for a key that has no name in Redis with the registry's lock type.
   * @throws CannotAcquireLockError when the cache is full of locks that are in use.
   */
  obtain(key: string): RedisLock {
    return this.#cache.add(this.#cache.get(nonEmptyString('key', key)) ?? new RedisLock(key, this.#services));
  }

  /**
   * The lock of a resource that is split into segments, so that several callers work on it at a time.
   * @throws TypeError or RangeError when the key or an option is not valid.
   */
  override segmented(key: string, options: SegmentedLockOptions): SegmentedLock {
    const { registryKey, onWarning } = this.#services.settings;
    if (hashTag(registryKey) !== undefined) {
      const message = `The hash tag in registryKey "${registryKey}" puts all segments of "${key}" into one slot of a cluster`;
      warn(onWarning, { code: 'SEGMENTS_SHARE_SLOT', message, key });
    }
    return super.segmented(key, options);
  }

  /** The number of cached locks. */
  get size(): number {
    return this.#cache.size;
  }

  /**
   * Makes the lease that this process holds on `key` last at least `ttl` ms from now (default: the ttl it was taken
   * with), and never less than before.
   * @throws NotLockOwnerError when this process does not hold it; else as `Lease.renew`.
   */
  async renewLock(key: string, ttl?: number): Promise<void> {
    const lock = this.#cache.get(nonEmptyString('key', key));
    if (ttl !== undefined) checkedTtl('ttl', ttl);
    if (lock === undefined) throw new NotLockOwnerError(`Lock "${key}" is not held in this process`, key);
    await lock.renew(ttl);
  }

  /** Removes from the cache the locks that are not in use and were not used for more than `age` ms. A negative age: all that are not in use. */
  expireUnusedOlderThan(age: number): void {
    if (Number.isNaN(number('age', age))) throw new RangeError(expected('age', 'a number of milliseconds', age));
    this.#cache.expireUnusedOlderThan(age);
  }

  /**
   * Rejects the waiters and all later callers with `RegistryClosedError`. Waits for the holders, whose leases are still
   * renewed, for up to `timeout` ms. A lease that is still held then is no longer renewed: its signal aborts with a
   * `LockLostError` of reason `closed`, and its key expires; it is not deleted under a running task. What attempts in
   * flight left in Redis has been removed when this resolves, as far as Redis answered. A second call waits for the first.
   * @param options `timeout`: ms; default 10 000
   */
  override async close(options: { timeout?: number | undefined } = {}): Promise<void> {
    const { timeout = CLOSE_TIMEOUT } = options;
    this.#closing ??= this.#close(notNegative('timeout', timeout));
    await this.#closing;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  async #close(timeout: number): Promise<void> {
    const { orphans, settings, watchdog } = this.#services;
    const endsAt = clock.now() + timeout;
    for (const wait of [...this.#waits]) wait.interrupt(registryClosed(wait.key));
    const locks = this.#cache.inUse;
    await within(timeout, Promise.all(locks.map((lock) => lock.free())));
    for (const lock of locks) lock.loseByClose();
    watchdog.close();
    // What attempts in flight leave in Redis is removed before this settles: the application closes its client next.
    const limit = Math.min(settings.commandTimeout, Math.max(endsAt - clock.now(), CLEANING_AT_LEAST));
    await within(limit, this.#noWaits());
    await orphans.settle(limit);
    this.#stopMonitoring();
    await this.#protocols.close();
  }

  #begin(wait: Wait): void {
    if (this.#closing !== undefined) throw registryClosed(wait.key);
    this.#waits.append(wait);
  }

  #end(wait: Wait): void {
    this.#waits.remove(wait);
    if (this.#waits.first === undefined) this.#whenNoWaits?.();
  }

  async #noWaits(): Promise<void> {
    if (this.#waits.first === undefined) return;
    await new Promise<void>((resolve) => {
      this.#whenNoWaits = resolve;
    });
  }
}

/** Resolves with the promise, or after `ms` at the latest. */
async function within(ms: number, promise: Promise<unknown>): Promise<void> {
  await new Promise<void>((resolve) => {
    const timer = new Timer(ms, resolve);
    void promise.then(() => {
      timer.cancel();
      resolve();
    });
  });
}

/** `onWarning` runs in the async context in which the registry was made, and never in that of a caller. */
function inCreatorsContext<T extends { readonly onWarning: (warning: LockWarning) => void }>(settings: T): T {
  const { onWarning } = settings;
  const run = captureContext();
  return { ...settings, onWarning: (warning) => run(() => onWarning(warning)) };
}

function registryClosed(key: string): RegistryClosedError {
  return new RegistryClosedError(`Lock "${key}" cannot be acquired: its registry is closed`, key);
}
