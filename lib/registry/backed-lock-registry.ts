import { randomUUID } from 'node:crypto';
import type { DistributedLock, Lease, ListedLock, ReadWriteLock } from '../api/distributed-lock';
import { type NotReplicatedError, notHeld, registryClosed } from '../api/errors';
import { type LockType, traitsOf } from '../api/lock-types';
import type {
  AdoptOptions,
  CloseOptions,
  KindSettings,
  ListOptions,
  OnceOptions,
  RegistrySettings,
  SemaphoreOptions,
} from '../api/options';
import { isOfLibrary, registryId } from '../api/owner-name';
import { type WarningListener, warn } from '../api/warnings';
import { Adoptions } from '../core/adoption';
import type { LockBackend } from '../core/backend';
import type { BesideTheTurns } from '../core/beside-the-turn';
import { GivingBack } from '../core/give-back';
import { Inbox } from '../core/inbox';
import { Inspection } from '../core/inspection';
import { LastUsed } from '../core/last-used';
import { type LockServices, RedisLock } from '../core/lock';
import { LockCache } from '../core/lock-cache';
import { LongHolds } from '../core/long-holds';
import { LoopRound } from '../core/loop-round';
import { OpenWaits } from '../core/open-waits';
import { assertTravels, passportIn } from '../core/passport';
import { Replacements } from '../core/replacement';
import { CallsForSeveral } from '../core/several';
import { SilenceWarning } from '../core/silence-warning';
import { Unconnected } from '../core/unconnected';
import { leastTimeout } from '../core/wait';
import { Watchdog } from '../core/watchdog';
import { clock, within } from '../internal/clock';
import {
  boolean,
  checkedOptions,
  ttl as checkedTtl,
  count,
  expected,
  nonEmptyString,
  notNegative,
  number,
} from '../internal/validation';
import { SharedLocks } from '../kinds/shared/locks';
import { MultiLock, multiKeys } from '../multi/multi-lock';
import { Once } from '../once/once';
import { lockPrefix } from '../redis/names';
import { LockRegistry } from './lock-registry';

/** ms; how long `close` waits for the holders by default. */
const CLOSE_TIMEOUT = 10_000;

/** How many keys of each type the warning of `close` names. */
const SHOWN_KEYS = 3;

/** ms; `close` has at least this long to remove what attempts in flight leave in Redis. */
const CLEANING_AT_LEAST = 500;

/** A registry of locks that are in a backend: in Redis, or in memory. It hands out one `RedisLock` for each key. */
export abstract class BackedLockRegistry extends LockRegistry implements AsyncDisposable {
  readonly #services: LockServices;
  readonly #backend: LockBackend;
  readonly #cache: LockCache<RedisLock>;
  readonly #shared: SharedLocks;
  readonly #once: Once;
  readonly #adoptions: Adoptions;
  readonly #replacements: Replacements;
  readonly #silence: SilenceWarning;
  /**
   * The part of this registry's owner values before their time: its name and a random part. It tells which process
   * holds a key in Redis.
   * @example 'web-7:4121:h0pCmsO5S7mSQpHDOZJ1Sw'
   */
  readonly id: string;
  readonly #stopMonitoring: () => void;
  #closing: Promise<void> | undefined;

  /** @internal */
  protected constructor(settings: RegistrySettings, backend: LockBackend) {
    super();
    this.id = registryId(settings.name, traitsOf(settings.lockType).nameSeparator, randomUUID());
    const { connection } = backend;
    const { onWarning, warnAfter, warnHeldAfter } = settings;
    const inUse = () => ({ locks: this.#inUse, awaited: waits.awaited });
    const usedAs = `a lock of type ${settings.lockType}`;
    const silence = new SilenceWarning(connection, inUse, onWarning, () => watchdog.askAboutAll());
    const waits = new OpenWaits(warnAfter, onWarning, connection, () => this.#inUse);
    const watchdog = new Watchdog(settings.commandTimeout, () => silence.notice());
    const prefix = lockPrefix(settings.registryKey);
    const locksOf = (name: string): RedisLock[] => {
      const key = name.startsWith(prefix) ? name.slice(prefix.length) : '';
      return [this.#cache.get(key), ...this.#shared.of(key)].filter((lock) => lock !== undefined);
    };
    const inbox = new Inbox(backend.inboxes, this.id, settings.commandTimeout, locksOf, () => watchdog.askAboutAll());
    const nextOwner = ownersOf(this.id);
    const withInbox = (): string => {
      void inbox.open();
      return nextOwner();
    };
    this.#silence = silence;
    this.#backend = backend;
    this.#cache = new LockCache(settings.cacheCapacity, settings.registryKey);
    this.#services = {
      settings,
      connection,
      inspection: new Inspection(backend, this.id, settings.commandTimeout, usedAs),
      inbox,
      // The first attempt opens it: no other one looks.
      nextOwner: settings.inbox ? withInbox : nextOwner,
      explainWrongType: (error, names, timeout) => backend.explainWrongType(error, names, usedAs, timeout),
      warnNotReplicated: notReplicatedWarning(onWarning),
      watchdog,
      leaseScripts: backend.leaseScripts,
      givingBack: new GivingBack(connection, settings.commandTimeout),
      loopRound: new LoopRound(),
      lastUsed: new LastUsed(),
      leastTimeout: leastTimeout(settings),
      several: new CallsForSeveral(),
      unconnected: new Unconnected(connection),
      waits,
      longHolds: warnHeldAfter === Number.POSITIVE_INFINITY ? undefined : new LongHolds(warnHeldAfter, onWarning),
      openProtocol: (names) => backend.open(names),
      cache: this.#cache,
      besideTurn: (key) => beside.get(key),
      replace: (lock, request, wait) => this.#replacements.replace(lock, request, wait),
    };
    this.#shared = new SharedLocks(this.#services, backend);
    const beside: BesideTheTurns = new Map();
    this.#adoptions = new Adoptions(this.#services, beside);
    this.#replacements = new Replacements(this.#services, beside);
    this.#once = new Once(backend.results, settings.commandTimeout);
    // A server that was restarted, or failed over, may have lost locks: their holders learn it at once.
    const stops = [backend.onReconnect(() => watchdog.askAboutAll()), backend.onSilence(() => silence.notice())];
    this.#stopMonitoring = () => stops.forEach((stop) => void stop());
  }

  /**
   * The lock of this key: the same object for the same key, as long as it is cached.
   * @throws TypeError for a key that is no string, is empty, or is not well-formed UTF-16.
   * @throws RangeError for a key that has no name in Redis with the registry's lock type.
   * @throws CannotAcquireLockError when the cache is full of locks that are in use.
   */
  obtain(key: string): RedisLock {
    // A key that is cached was checked when its lock was made.
    return this.#cache.obtain(key) ?? this.#cache.add(new RedisLock(nonEmptyString('key', key), this.#services));
  }

  override multi(keys: readonly string[]): MultiLock {
    return new MultiLock(multiKeys(keys).map((key) => this.obtain(key)));
  }

  override semaphore(key: string, options: SemaphoreOptions): DistributedLock {
    return this.#shared.semaphore(key, options);
  }

  override readWrite(key: string): ReadWriteLock {
    return this.#shared.readWrite(key);
  }

  override async once<T>(key: string, task: (lease: Lease) => T | PromiseLike<T>, options: OnceOptions<T>): Promise<T> {
    if (this.#closing !== undefined) throw registryClosed(key);
    return this.#once.once(this.obtain(key), task, options);
  }

  override async adopt(passport: string, options: AdoptOptions = {}): Promise<Lease> {
    const checked = checkedOptions<AdoptOptions>({ ttl: checkedTtl, renew: boolean }, options);
    const { registryKey, lockType } = this.settings;
    const prefix = lockPrefix(registryKey);
    const read = passportIn(passport, traitsOf(lockType as LockType).format, prefix);
    const lock = this.obtain(read.lock.slice(prefix.length));
    assertTravels(lock.passing.openProtocol().travel, lockType);
    return this.#adoptions.adopt(lock, read, checked);
  }

  override async forget(key: string): Promise<boolean> {
    return this.#once.forget(this.obtain(key));
  }

  /** The number of cached locks: a semaphore is one, a read/write lock is two. */
  get size(): number {
    return this.#cache.size + this.#shared.size;
  }

  /**
   * Makes the lease that this process holds on `key` last at least `ttl` ms from now, and never less than before.
   * @param ttl ms, at least 5; by default the ttl that it was taken with
   * @throws NotLockOwnerError when this process does not hold it; else as `Lease.renew`.
   */
  async renewLock(key: string, ttl?: number): Promise<void> {
    const lock = this.#cache.get(nonEmptyString('key', key));
    if (ttl !== undefined) checkedTtl('ttl', ttl);
    if (lock === undefined) throw notHeld(key, 'in this process');
    await lock.renew(ttl);
  }

  /**
   * The locks under the registryKey that somebody holds, with what `inspect` says of each. With an empty registryKey every
   * key of the database is looked at, and those whose value shows that it is a lock's are listed. SCAN finds them, step by
   * step: one that is taken or released meanwhile may be missing. Needs a client with the method `scan`, as node-redis'
   * are.
   * @throws TypeError when an option is not valid, or the client has no `scan`.
   * @throws LockInspectionError when Redis failed or was silent.
   * @example
   * for await (const { key, name, remaining } of registry.list({ match: 'order:*' })) console.log(key, name, remaining);
   */
  list(options: ListOptions = {}): AsyncIterableIterator<ListedLock> {
    const { match = '*', count: keys = 1_000 } = checkedOptions<ListOptions>({ match: nonEmptyString, count }, options);
    const { lockType, registryKey } = this.settings;
    const isProof = traitsOf(lockType as LockType).needsProof ? isOfLibrary : undefined;
    return this.#services.inspection.list(registryKey, match, keys, isProof);
  }

  /**
   * Removes from the cache the locks that are not in use and were not called for more than `age` ms. To obtain a lock
   * that is cached is no call of it.
   * @param age ms; a negative age removes all that are not in use
   * @throws TypeError or RangeError when the age is not a number.
   */
  expireUnusedOlderThan(age: number): void {
    if (Number.isNaN(number('age', age))) throw new RangeError(expected('age', 'a number of milliseconds', age));
    this.#cache.expireUnusedOlderThan(age);
    this.#shared.expireUnusedOlderThan(age);
  }

  /**
   * Rejects the waiters and all later callers with `RegistryClosedError`. Waits for the holders, whose leases are still
   * renewed, for up to `timeout` ms. A lease that is still held then is no longer renewed: its signal aborts with a
   * `LockLostError` of reason `closed`, and its key expires; it is not deleted under a running task. One warning says how
   * many there were. When this resolves, unlocks in flight have been answered, and what attempts in flight left in Redis
   * has been removed, as far as Redis answered. A second call waits for the first.
   * @throws TypeError or RangeError when an option is not valid.
   * @example
   * await registry.close({ timeout: 5_000 });
   * client.destroy();
   */
  override async close(options: CloseOptions = {}): Promise<void> {
    const { timeout = CLOSE_TIMEOUT } = checkedOptions<CloseOptions>({ timeout: notNegative }, options);
    this.#closing ??= this.#close(timeout);
    if (timeout === 0) this.#backend.cutOff?.();
    await this.#closing;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  get #inUse(): RedisLock[] {
    return [...this.#cache.inUse, ...this.#shared.inUse];
  }

  async #close(timeout: number): Promise<void> {
    const { givingBack, settings, unconnected, waits, watchdog } = this.#services;
    const endsAt = clock.now() + timeout;
    waits.close();
    const locks = this.#inUse;
    const free = Promise.all(locks.map((lock) => lock.passing.free()));
    // Without a timer for 0: one that a test has faked may never fire. A listener to a loss may call `close` too.
    await (timeout > 0 ? within(timeout, free) : undefined);
    const given = locks
      .map((lock) => ({ lock, leases: lock.passing.loseByClose() }))
      .filter(({ leases }) => leases > 0);
    if (given.length > 0) warnGivenUp(settings, timeout, given);
    watchdog.close();
    waits.stopWarning();
    this.#silence.close();
    this.#services.longHolds?.close();
    // Releases in flight are answered, and what attempts in flight leave in Redis is removed, before this settles: the
    // application closes its client next.
    const limit = Math.min(settings.commandTimeout, Math.max(endsAt - clock.now(), CLEANING_AT_LEAST));
    await within(limit, Promise.all([waits.none(), free]));
    await within(limit, Promise.all([givingBack.removeNow(limit), this.#backend.endMessages?.()]));
    this.#stopMonitoring();
    const closed = this.#backend.close();
    for (const one of [givingBack, unconnected, this.#adoptions, this.#replacements]) one.close();
    await closed;
  }

  /** @internal */
  protected get settings(): KindSettings {
    return this.#services.settings;
  }
}

/** Makes owner values, each for one hold only. */
function ownersOf(id: string): () => string {
  // The text of a large number costs more than the rest: it is made once for each ms.
  let ms = 0;
  let begin = '';
  let micros = 0;
  return () => {
    const now = Math.floor(clock.wallNow());
    if (now > ms || ++micros > 999) {
      // A clock that was set back does not repeat a value.
      ms = Math.max(now, ms + 1);
      begin = `${id}:${ms}`;
      micros = 100;
    }
    return begin + micros;
  };
}

/** `close` gave up these leases, after `timeout` ms. */
function warnGivenUp(
  { registryKey, onWarning }: KindSettings,
  timeout: number,
  given: readonly { readonly lock: RedisLock; readonly leases: number }[],
): void {
  const typeOf = ({ lock }: (typeof given)[number]): string => lock.services.settings.lockType;
  const count = (some: typeof given): number => some.reduce((sum, { leases }) => sum + leases, 0);
  const types = [...new Set(given.map(typeOf))].map((type) => {
    const those = given.filter((one) => typeOf(one) === type);
    const keys = those.slice(0, SHOWN_KEYS).map(({ lock }) => `"${lock.key}"`);
    return `${count(those)} of type ${type} (${keys.join(', ')}${those.length > SHOWN_KEYS ? ', …' : ''})`;
  });
  const leases = count(given) === 1 ? 'a lease' : `${count(given)} leases`;
  const message = `Registry "${registryKey}" was closed, and gave up ${leases} after ${timeout} ms: ${types.join(', ')}`;
  warn(onWarning, { code: 'CLOSED_WHILE_HELD', message });
}

/** Warns once: a caller that continues to wait would learn of it much later. */
function notReplicatedWarning(onWarning: WarningListener): (cause: NotReplicatedError, key: string) => void {
  let hasWarned = false;
  return (cause, key) => {
    if (hasWarned) return;
    hasWarned = true;
    const message = `Lock "${key}" was given back: ${cause.message}`;
    warn(onWarning, { code: 'NOT_REPLICATED', message, key, cause });
  };
}
