import { NoTurn, type Turn } from '../acquire/turn';
import { clock } from '../internal/clock';
import type { RedisLease } from '../lease/redis-lease';
import type { LockProtocol } from '../protocols/protocol';
import { RedisLock } from '../redis-lock';

/**
 * A lock of which this process may have several leases. The local turn of a caller ends with its grant: the next local
 * caller queues in Redis then.
 */
export class SharedLock extends RedisLock {
  readonly #leases = new Set<RedisLease>();

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

  /** @internal As LeaseKeeper. */
  override leaseOver(lease: RedisLease): void {
    this.#leases.delete(lease);
    super.leaseOver(lease);
  }

  /** @internal As ContendedLock. */
  override recordLease(lease: RedisLease, turn: Turn): void {
    this.#leases.add(lease);
    turn.release();
  }

  /**
   * @internal As ContendedLock. Grants to earlier callers do not show that this caller would be refused. Makes one attempt, unless the last answer
   * was a refusal and Redis still answers.
   */
  override async withoutTurn({ availability }: LockProtocol): Promise<Turn | undefined> {
    const now = clock.now();
    return availability.isRefused(now) && availability.isContended(now) ? undefined : new NoTurn(false);
  }
}
