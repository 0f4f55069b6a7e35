import type { RedisServer } from '../server/redis-server';
import { ownersOf } from '../world';

/** When each owner value last had each lock in Redis, and when Redis last lost the lock by a fault. */
export class Grants {
  readonly #lastOwned = new Map<string, number>();
  readonly #lastLoss = new Map<string, { readonly count: number; readonly time: number; readonly owner?: string }>();
  /** Who has each lock. */
  readonly #owner = new Map<string, string | undefined>();
  /** By lock: since when each owner has had it. */
  readonly #since = new Map<string, ReadonlyMap<string, number>>();
  #count = 0;

  /** After each script. */
  ran(server: RedisServer, locks: readonly string[], now: number): void {
    for (const lock of locks) {
      const owners = ownersOf(server, lock);
      this.#owner.set(lock, owners[0]);
      const before = this.#since.get(lock);
      this.#since.set(lock, new Map(owners.map((owner) => [owner, before?.get(owner) ?? now])));
      for (const owner of owners) this.#lastOwned.set(`${lock}/${owner}`, ++this.#count);
    }
  }

  /** When Redis gave the lock to this owner, if it still has it. */
  since(lock: string, owner: string): number | undefined {
    return this.#since.get(lock)?.get(owner);
  }

  lost(lock: string, time: number): void {
    const owner = this.#owner.get(lock);
    this.#lastLoss.set(lock, { count: ++this.#count, time, ...(owner === undefined ? {} : { owner }) });
  }

  /** Who had the lock when Redis last lost it, if that was after this time. */
  ownerAtLoss(lock: string, since: number): string | undefined {
    const loss = this.#lastLoss.get(lock);
    return loss === undefined || loss.time < since ? undefined : loss.owner;
  }

  /**
   * When Redis lost the lock that had been the owner's. A reply that says it is the owner's may still be on its way.
   * `undefined`: it has not.
   */
  lostAt(lock: string, owner: string): number | undefined {
    const loss = this.#lastLoss.get(lock);
    if (loss === undefined || (this.#lastOwned.get(`${lock}/${owner}`) ?? Number.POSITIVE_INFINITY) > loss.count)
      return undefined;
    return loss.time;
  }
}
