import type { RedisServer } from '../server/redis-server';
import { ownersOf } from '../world';

/** When each owner value last had each lock in Redis, and when Redis last lost the lock by a fault. */
export class Grants {
  readonly #lastOwned = new Map<string, number>();
  readonly #lastLoss = new Map<string, { readonly count: number; readonly time: number }>();
  #count = 0;

  /** After each script. */
  ran(server: RedisServer, locks: readonly string[]): void {
    for (const lock of locks) {
      for (const owner of ownersOf(server, lock)) this.#lastOwned.set(`${lock}/${owner}`, ++this.#count);
    }
  }

  lost(lock: string, time: number): void {
    this.#lastLoss.set(lock, { count: ++this.#count, time });
  }

  /**
   * When Redis lost the lock that had been the owner's. A reply that says it is the owner's may still be on its way.
   * `undefined`: it has not.
   */
  lostAt(lock: string, owner: string): number | undefined {
    const loss = this.#lastLoss.get(lock);
    if (loss === undefined || (this.#lastOwned.get(`${lock}/${owner}`) ?? 0) > loss.count) return undefined;
    return loss.time;
  }
}
