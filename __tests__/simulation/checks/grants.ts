import type { RedisServer } from '../server/redis-server';
import { type Host, hostOf, ownerOf, type World } from '../world';

/** When each process last had each lock in Redis, and when Redis last lost the lock by a fault. */
export class Grants {
  readonly #world: World;
  readonly #lastOwned = new Map<string, number>();
  readonly #lastLoss = new Map<string, number>();
  #count = 0;

  constructor(world: World) {
    this.#world = world;
  }

  /** After each script. */
  ran(server: RedisServer, locks: readonly string[]): void {
    for (const lock of locks) {
      const host = hostOf(this.#world, ownerOf(server, lock));
      if (host !== undefined) this.#lastOwned.set(`${lock}/${host.index}`, ++this.#count);
    }
  }

  lost(lock: string): void {
    this.#lastLoss.set(lock, ++this.#count);
  }

  /** What the process believes to have of this lock was granted before Redis lost it. */
  areOutdated(lock: string, host: Host): boolean {
    return (
      (this.#lastOwned.get(`${lock}/${host.index}`) ?? 0) <= (this.#lastLoss.get(lock) ?? 0) && this.#lastLoss.has(lock)
    );
  }
}
