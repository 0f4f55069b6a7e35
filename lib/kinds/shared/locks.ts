import type { DistributedLock, LockLostReason, ReadWriteLock } from '../../api/distributed-lock';
import { CannotAcquireLockError } from '../../api/errors';
import { describeKind, type SharedKind } from '../../api/lock-types';
import type { SemaphoreOptions } from '../../api/options';
import type { Call } from '../../core/acquire';
import type { LockBackend } from '../../core/backend';
import type { Hold } from '../../core/hold';
import type { RedisLease } from '../../core/lease';
import type { PassedOn } from '../../core/lease-services';
import type { Turn } from '../../core/local-queue';
import { type LockServices, RedisLock } from '../../core/lock';
import { LockCache } from '../../core/lock-cache';
import type { Entry } from '../../core/lock-of-call';
import type { LossDetails } from '../../core/loss';
import type { LeaseOfHold } from '../../core/of-hold';
import { Passing } from '../../core/passing';
import type { LockProtocol } from '../../core/protocol';
import { Scope } from '../../core/scope';
import { clock } from '../../internal/clock';
import { type Check, checkedOptions, nonEmptyString, wholeNumber } from '../../internal/validation';
import { Permits } from './permits';

/** Callers that may have a lease each. The turn of a caller ends with its grant: the next one queues in Redis then. */
class SharedPassing extends Passing<LockServices> {
  readonly #leases = new Set<RedisLease>();
  /** The caller that has the turn, while it is suspended. */
  #first: Call | undefined;

  override get isShared(): boolean {
    return true;
  }

  override get leases(): readonly RedisLease[] {
    return [...this.#leases];
  }

  override leaseOver(lease: RedisLease, unansweredSince?: number): void {
    this.#leases.delete(lease);
    super.leaseOver(lease, unansweredSince);
  }

  protected override leaseOf(hold: Hold, call: Call, now: number): RedisLease {
    const lease = super.leaseOf(hold, call, now);
    this.#leases.add(lease);
    return lease;
  }

  protected override recordLease(lease: RedisLease, _hold: Hold, turn: Turn): void {
    this.#leases.add(lease);
    turn.release();
  }

  override suspended(call: Call, isSuspended: boolean): void {
    if (isSuspended) this.#first = call;
    else if (this.#first === call) this.#first = undefined;
  }

  override get isWaiterRefused(): boolean {
    return this.#first?.wasRefused === true;
  }

  /** The caller that waits in Redis: those behind it came later. None before the `minHold` of the lease ends. */
  protected override nextAfter(ended: RedisLease): Call | undefined {
    return this.#first?.mayBeWoken && ended.hold.keep === undefined ? this.#first : undefined;
  }

  protected override give(next: Call, lease?: RedisLease): void {
    if (lease !== undefined) next.receive(lease, this.calls.next);
    next.wake();
  }
}

/** A lock that up to a number of callers have at a time. */
class Semaphore extends RedisLock {
  readonly permits: Permits;

  constructor(key: string, services: LockServices) {
    const permits = new Permits();
    const openProtocol: LockServices['openProtocol'] = (names) =>
      Object.assign(services.openProtocol(names), { permits });
    super(key, { ...services, openProtocol });
    this.permits = permits;
  }

  protected override newPassing(): Passing<LockServices> {
    return new SharedPassing(this);
  }

  override get mostPermits(): number {
    return (this.cached() as Semaphore).permits.count;
  }
}

/** Readers of a process that are in together. They rely on one hold, which lasts as long as one of them is inside. */
class Group implements LeaseOfHold {
  readonly leases = new Set<RedisLease>();

  get ttl(): number {
    return Math.max(...this.#ttls);
  }

  /** Each of them learns of a loss within a third of its own ttl. */
  get renewedTtl(): number {
    return Math.min(...this.#ttls);
  }

  /** Of those that are renewed, if there are any: what the others need, the hold had when they came. */
  get #ttls(): number[] {
    const now = clock.now();
    const all = [...this.leases];
    const renewed = all.filter(({ renewUntil = Number.POSITIVE_INFINITY }) => now < renewUntil);
    return (renewed.length > 0 ? renewed : all).map(({ ttl }) => ttl);
  }

  get endsAt(): number {
    return Math.min(...[...this.leases].map(({ endsAt = Number.POSITIVE_INFINITY }) => endsAt));
  }

  get renewUntil(): number {
    return Math.max(...[...this.leases].map(({ renewUntil = Number.POSITIVE_INFINITY }) => renewUntil));
  }

  renewed(): void {
    for (const lease of this.leases) lease.renewed();
  }

  endSome(now: number): boolean {
    const ended = [...this.leases].filter(({ endsAt = Number.POSITIVE_INFINITY }) => endsAt <= now);
    if (ended.length === this.leases.size) return false;
    for (const lease of ended) this.leases.delete(lease);
    loseAll(ended, 'expired');
    return true;
  }

  lost(reason: LockLostReason, details?: LossDetails): void {
    loseAll([...this.leases], reason, details);
  }
}

/** A listener that hears of one loss may unlock the others. */
function loseAll(leases: readonly RedisLease[], reason: LockLostReason, details?: LossDetails): void {
  for (const lease of leases) lease.lose(reason, details);
  for (const lease of leases) lease.tellLoss(reason);
}

/**
 * Readers enter beside others of their process, without a command, while no writer waits; and all that wait in this process
 * enter together. The last one to leave gives the hold back.
 */
class Readers extends SharedPassing {
  /** What readers may enter with. */
  #hold: Hold | undefined;

  override entryFor(call: Call, protocol: LockProtocol): Entry | undefined {
    const hold = this.#hold;
    const now = clock.now();
    if (
      hold?.isHeld &&
      !this.calls.hasWaiters &&
      protocol.mayPassOn(now, hold) &&
      !this.services.loopRound.isDue(now)
    ) {
      if (hold.isFreshFor(call.request, now)) return this.leaseOf(hold, call, now);
    }
    return super.entryFor(call, protocol);
  }

  protected override reliesOn(hold: Hold, lease: RedisLease): LeaseOfHold {
    const group = hold.lease instanceof Group ? hold.lease : new Group();
    group.leases.add(lease);
    return group;
  }

  /** All that wait here by now enter together. */
  protected override recordLease(lease: RedisLease, hold: Hold, turn: Turn): void {
    this.#hold = hold;
    const { calls } = this;
    for (let { next } = calls; next !== undefined; { next } = calls) {
      const now = clock.now();
      if (!hold.isFreshFor(next.request, now, now)) break;
      calls.pass(this.leaseOf(hold, next, now));
    }
    super.recordLease(lease, hold, turn);
  }

  /** The hold stays as long as others are inside. */
  override passOn(ended: RedisLease, now: number, timeout: number): PassedOn | undefined {
    const group = ended.hold.lease as Group;
    group.leases.delete(ended);
    if (group.leases.size === 0) return super.passOn(ended, now, timeout);
    this.leaseOver(ended);
    return 'passed on';
  }
}

/** None gets the hold before the `minHold` of the lease ends: the release keeps it until then. */
class Writers extends Passing<LockServices> {
  protected override nextAfter(ended: RedisLease): Call | undefined {
    return ended.hold.keep === undefined ? super.nextAfter(ended) : undefined;
  }
}

/** Finds the other lock of the key if it is cached, which a lock with an open scope always is. */
type Counterpart = () => RedisLock | undefined;

/** A lock for reading. Inside a write scope of the caller a reader enters again on the write lease. */
class ReadLock extends RedisLock {
  readonly #write: Counterpart;

  constructor(key: string, services: LockServices, write: Counterpart) {
    super(key, services);
    this.#write = write;
  }

  protected override newPassing(): Passing<LockServices> {
    return new Readers(this);
  }

  override get scopeLock(): RedisLock {
    const write = this.#write();
    return write !== undefined && Scope.holding(write) !== undefined ? write : this;
  }
}

/** A lock for writing. */
class WriteLock extends RedisLock {
  readonly #read: Counterpart;

  constructor(key: string, services: LockServices, read: Counterpart) {
    super(key, services);
    this.#read = read;
  }

  protected override newPassing(): Passing<LockServices> {
    return new Writers(this);
  }

  protected override assertMayEnter(): void {
    const read = this.#read();
    if (read === undefined || Scope.holding(read) === undefined) return;
    const why =
      'a writer waits for all readers, so it would wait for itself. Take it for writing first, and read inside';
    throw new CannotAcquireLockError(
      `Lock "${this.key}" could not be acquired for writing inside its own read scope: ${why}`,
      this.key,
    );
  }
}

/** The locks of one kind, and what they share. */
interface Kind {
  readonly cache: LockCache<RedisLock>;
  readonly services: LockServices;
}

/** The semaphores and read/write locks of a registry. Each kind has a cache of its own. */
export class SharedLocks {
  readonly #services: LockServices;
  readonly #backend: LockBackend;
  /** Made when one of them is asked for: most registries have none. */
  readonly #kinds = new Map<SharedKind, Kind>();
  /** By the lock for reading. */
  readonly #pairs = new WeakMap<RedisLock, ReadWriteLock>();

  constructor(services: LockServices, backend: LockBackend) {
    this.#services = services;
    this.#backend = backend;
  }

  semaphore(key: string, options: SemaphoreOptions): DistributedLock {
    nonEmptyString('key', key);
    const permits: Check<number> = (name, value) => wholeNumber(name, value, 1);
    // Without a number nobody could enter.
    const { permits: count = permits('permits', undefined) } = checkedOptions({ permits }, options);
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

  /** Those of this key that are cached. */
  of(key: string): RedisLock[] {
    return this.#caches.flatMap((cache) => cache.get(key) ?? []);
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

  get #caches(): LockCache<RedisLock>[] {
    return [...this.#kinds.values()].map(({ cache }) => cache);
  }

  #kind(kind: SharedKind): Kind {
    const known = this.#kinds.get(kind);
    if (known !== undefined) return known;
    const { inspection, settings } = this.#services;
    const { shared } = this.#backend;
    const cache = new LockCache<RedisLock>(settings.cacheCapacity, settings.registryKey);
    const services: LockServices = {
      ...this.#services,
      settings: { ...settings, lockType: kind },
      inspection: inspection.of(shared.inspector, describeKind(kind)),
      explainWrongType: (error, names, timeout) =>
        this.#backend.explainWrongType(error, names, describeKind(kind), timeout),
      leaseScripts: shared.leaseScripts(kind),
      besideTurn: () => undefined,
      openProtocol: (names) => shared.open(kind, names),
      cache,
    };
    const made = { cache, services };
    this.#kinds.set(kind, made);
    return made;
  }
}
