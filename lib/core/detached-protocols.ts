import type { LockProtocol } from './protocol';

/**
 * The protocols of locks that were evicted from the cache. There must never be two protocols for one lock name in a
 * registry: a grant for a waiter of one would be unknown to the other, which would release it. So a protocol is found
 * here as long as anything refers to it: a lease that was lost, an orphan that is followed up, a timer. While it is
 * active it is kept in any case.
 */
export class DetachedProtocols {
  readonly #all = new Map<string, WeakRef<LockProtocol>>();
  readonly #active = new Set<LockProtocol>();
  /** Beyond this number, protocols that are gone, or no longer active, are removed. */
  #sweepAt = 16;

  add(name: string, protocol: LockProtocol): void {
    this.#all.set(name, new WeakRef(protocol));
    if (protocol.isActive) this.#active.add(protocol);
    if (this.#all.size < this.#sweepAt) return;
    for (const active of this.#active) if (!active.isActive) this.#active.delete(active);
    for (const [other, reference] of this.#all) if (reference.deref() === undefined) this.#all.delete(other);
    this.#sweepAt = 2 * this.#all.size + 16;
  }

  /**
   * The protocol of this name, for a lock that is cached again. It stays here: that lock may not fit into the cache.
   */
  find(name: string): LockProtocol | undefined {
    return this.#all.get(name)?.deref();
  }
}
