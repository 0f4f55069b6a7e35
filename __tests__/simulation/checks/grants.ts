import type { RedisServer } from '../server/redis-server';
import { ownersOf } from '../world';

/** When each owner value last had each lock in Redis, and when Redis last lost the lock by a fault. */
export class Grants {
  readonly #lastOwned = new Map<string, number>();
  readonly #lastLoss = new Map<string, number>();
  #count = 0;

  /** After each script. */
  ran(server: RedisServer, locks: readonly string[]): void {
    for (const lock of locks) {
      for (const owner of ownersOf(server, lock)) this.#lastOwned.set(`${lock}/${owner}`, ++this.#count);
    }
  }

  lost(lock: string): void {
    this.#lastLoss.set(lock, ++this.#count);
  }

  /** Redis lost the lock since it was the owner's. A reply that says it is the owner's may still be on its way. */
  isOutdated(lock: string, owner: string): boolean {
    const lostAt = this.#lastLoss.get(lock);
    return lostAt !== undefined && (this.#lastOwned.get(`${lock}/${owner}`) ?? 0) <= lostAt;
  }
}
