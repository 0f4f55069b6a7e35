import type { DistributedLock } from '../api/distributed-lock';
import { CannotAcquireLockError } from '../api/errors';
import type { RedisLease } from '../core/lease';
import type { Turn } from '../core/local-queue';
import { type LockServices, RedisLock } from '../core/lock';
import { Scope } from '../core/scope';

/**
 * A lock of which this process may have several leases. The local turn of a caller ends with its grant: the next local
 * caller queues in Redis then.
 */
export class SharedLock extends RedisLock {
  readonly #leases = new Set<RedisLease>();

  /** @internal */
  override get isShared(): boolean {
    return true;
  }

  protected override get leases(): readonly RedisLease[] {
    return [...this.#leases];
  }

  /** @internal */
  override get isInUse(): boolean {
    return this.#leases.size > 0 || super.isInUse;
  }

  /** @internal Resolves when this process has no lease of it. */
  override async free(): Promise<void> {
    while (this.#leases.size > 0) await this.nextLeaseOver();
  }

  /** @internal */
  override leaseOver(lease: RedisLease): void {
    this.#leases.delete(lease);
    super.leaseOver(lease);
  }

  /** @internal */
  override recordLease(lease: RedisLease, turn: Turn): void {
    this.#leases.add(lease);
    turn.release();
  }
}

/** The two locks of a read/write lock: many readers, or one writer. */
export interface ReadWriteLock {
  readonly key: string;
  /** Readers share it. Inside the caller's own write scope it enters on the write lease, without a command. */
  readonly read: DistributedLock;
  /** One writer, and no readers. Inside the caller's own read scope it rejects: it would wait for itself. */
  readonly write: DistributedLock;
}

/** Finds the other lock of the key if it is cached, which a lock with an open scope always is. */
type Counterpart = () => RedisLock | undefined;

/** A lock for reading. Inside a write scope of the caller it enters again on the write lease. */
export class ReadLock extends SharedLock {
  readonly #write: Counterpart;

  /** @internal */
  constructor(key: string, services: LockServices, write: Counterpart) {
    super(key, services);
    this.#write = write;
  }

  override get scopeLock(): RedisLock {
    const write = this.#write();
    return write !== undefined && Scope.holding(write) !== undefined ? write : this;
  }
}

/** A lock for writing. */
export class WriteLock extends SharedLock {
  readonly #read: Counterpart;

  /** @internal */
  constructor(key: string, services: LockServices, read: Counterpart) {
    super(key, services);
    this.#read = read;
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
