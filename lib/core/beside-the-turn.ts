import { isDetached } from '../api/owner-name';
import { Availability } from './availability';
import type { Hold } from './hold';
import type { RedisLease } from './lease';
import type { Turn } from './local-queue';
import { type LockServices, RedisLock } from './lock';
import { takers } from './loss';
import { Passing } from './passing';
import { type LockProtocol, NOT_GRANTED } from './protocol';

/** The leases of a registry that are held beside the local turns, by key. */
export type BesideTheTurns = Map<string, Set<PassingBeside>>;

/** What a lease is taken by from an owner: adopted, or by `replace`. */
export class LockBeside extends RedisLock {
  /** The lock of its key. */
  readonly original: RedisLock;
  /** The owner from which it is taken. */
  readonly from: string;
  /** Where it is while it has a lease. */
  readonly besideTheTurns: BesideTheTurns;

  constructor(original: RedisLock, from: string, services: LockServices, besideTheTurns: BesideTheTurns) {
    super(original.key, services);
    this.original = original;
    this.from = from;
    this.besideTheTurns = besideTheTurns;
  }

  protected override newPassing(): PassingBeside {
    return new PassingBeside(this);
  }
}

/**
 * A lease that was taken from an owner is a hold of its own, beside the local turn. A caller of this process may have that
 * turn, and wait in Redis. So callers of this process wait for it there, as those of every other process do.
 */
class PassingBeside extends Passing<LockServices> {
  readonly lock: LockBeside;

  constructor(lock: LockBeside) {
    super(lock);
    this.lock = lock;
  }

  protected override recordLease(lease: RedisLease, hold: Hold, turn: Turn): void {
    const { besideTheTurns, from, original } = this.lock;
    const { passing } = original;
    hold.protocol = passing.openProtocol();
    super.recordLease(lease, hold, turn);
    const { leases } = passing;
    besideTheTurns.set(this.key, (besideTheTurns.get(this.key) ?? new Set()).add(this));
    passing.open++;
    for (const { hold: before, owner } of leases) {
      // What this process had of a lock that was detached, it had lost before that.
      if (!isDetached(from) && owner !== from) continue;
      if (owner === from) takers.set(before, hold.owner);
      before.lose('stolen');
    }
  }

  /** It is used once. */
  override mayRest(): void {
    this.drop();
  }

  override leaseOver(lease: RedisLease, unansweredSince?: number): void {
    super.leaseOver(lease);
    const { besideTheTurns, original } = this.lock;
    const beside = besideTheTurns.get(this.key);
    beside?.delete(this);
    if (beside?.size === 0) besideTheTurns.delete(this.key);
    original.passing.leaseOver(lease, unansweredSince);
  }
}

/** What a call makes attempts by that takes a lock from an owner. Nobody waits for it. */
export function besideTheTurn(lock: LockProtocol, own: Pick<LockProtocol, 'attempt' | 'release'>): LockProtocol {
  return {
    ...own,
    availability: new Availability(),
    hasLearnt: false,
    callersLeft: () => undefined,
    standBack: () => undefined,
    wait: () => Promise.resolve(NOT_GRANTED),
    mayPassOn: () => false,
    renew: (...renewal) => lock.renew(...renewal),
    orphanLife: ({ longestTtl }) => longestTtl,
  };
}
