import { holderOf, isKept } from '../../../lib/protocols/kept';
import { lockName, ownerOf, type World } from '../world';
import type { OwnedLease } from './leases';

/** ms by which the end of a key may differ: Redis counts in whole ms. */
const ROUNDING = 2;

/** ms by which a key may be kept for longer: the way of the grant and of the unlock. */
const LONGER = 100;

interface MinHold {
  readonly lease: OwnedLease;
  readonly host: { readonly process: { readonly isAlive: boolean } };
  readonly caller: string;
  /** Nobody else may have the lock before. */
  readonly until: number;
  /** Where nothing is slow, it is not kept for longer. */
  readonly longest: number;
}

/** Nobody gets a lock before its `minHold` has ended, though it was unlocked. */
export class MinHoldChecks {
  readonly #world: World;
  readonly #keys: readonly string[];
  /** The owner value of each lock, and since when. */
  readonly #owners = new Map<string, { readonly owner: string | undefined; readonly since: number }>();
  /** By key: that of the last lease. */
  readonly #holds = new Map<string, MinHold>();

  constructor(world: World, keys: readonly string[]) {
    this.#world = world;
    this.#keys = keys;
  }

  opened(lease: OwnedLease, host: MinHold['host'], key: string, caller: string, minHold: number): void {
    const found = this.#owners.get(key);
    // Redis has lost it since.
    if (found?.owner !== lease.owner) return;
    const longest = this.#world.timeline.now + minHold + LONGER;
    this.#holds.set(key, { lease, host, caller, until: found.since + minHold - ROUNDING, longest });
  }

  /** Redis lost the keys, or a holder that died or lost its lease left its key to its ttl. */
  excuse(keys: readonly string[]): void {
    for (const key of keys) this.#holds.delete(key);
  }

  /** After every event. */
  note(): void {
    const { plan, server, timeline } = this.#world;
    for (const key of this.#keys) {
      const value = ownerOf(server, lockName(key));
      const owner = value === undefined ? undefined : holderOf(value);
      if (this.#owners.get(key)?.owner !== owner) this.#owners.set(key, { owner, since: timeline.now });
      const hold = this.#holds.get(key);
      if (hold === undefined) continue;
      if (owner !== hold.lease.owner) this.#ended(key, hold, owner);
      else if (plan.isCalm && isKept(value) && timeline.now > hold.longest) this.#report(key, hold, 'is still kept');
    }
  }

  #ended(key: string, hold: MinHold, owner: string | undefined): void {
    this.#holds.delete(key);
    const { process } = hold.host;
    if (!process.isAlive || hold.lease.signal.aborted || this.#world.timeline.now >= hold.until) return;
    this.#report(key, hold, owner === undefined ? 'is free' : `is ${owner}'s`);
  }

  #report(key: string, { caller, until }: MinHold, state: string): void {
    const text = `"${key}" ${state}, and the minHold of ${caller} ends at ${until.toFixed(1)}`;
    this.#world.violations.report('min hold', key, text);
  }
}
