import { holderOf, isKept } from '../../../lib/api/owner-name';
import { lockName, ownersOf, type World } from '../world';
import type { OwnedLease } from './leases';

/** ms by which the end of a key may differ: Redis counts in whole ms. */
const ROUNDING = 2;

/** ms by which a key may be kept for longer: the way of the grant and of the unlock. */
const LONGER = 100;

interface MinHold {
  readonly key: string;
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
  /** None where no caller has a minHold. */
  readonly #keys: readonly string[];
  /** By key: its owner values, and since when they have it. */
  readonly #owners = new Map<string, Map<string, number>>();
  readonly #holds = new Set<MinHold>();

  constructor(world: World, keys: readonly string[]) {
    this.#world = world;
    const isAsked = world.plan.callers.some(({ rounds }) => rounds.some(({ minHold }) => minHold !== undefined));
    this.#keys = isAsked ? keys : [];
  }

  /** The next caller of its process has the lock by the same owner value: since now. */
  passedOn(key: string, owner: string): void {
    for (const hold of this.#holds) if (hold.key === key && hold.lease.owner === owner) this.#ended(hold, owner);
    const owners = this.#owners.get(key);
    // Redis may have lost it, and nobody here knows yet.
    if (owners?.has(owner)) owners.set(owner, this.#world.timeline.now);
  }

  opened(lease: OwnedLease, host: MinHold['host'], key: string, caller: string, minHold: number): void {
    const since = this.#owners.get(key)?.get(lease.owner);
    // Redis has lost it since.
    if (since === undefined) return;
    const longest = this.#world.timeline.now + minHold + LONGER;
    this.#holds.add({ key, lease, host, caller, until: since + minHold - ROUNDING, longest });
  }

  /** Redis lost the keys, or a holder that died or lost its lease left its key to its ttl. */
  excuse(keys: readonly string[]): void {
    for (const hold of this.#holds) if (keys.includes(hold.key)) this.#holds.delete(hold);
  }

  /** After every event. */
  note(): void {
    const { plan, server, timeline } = this.#world;
    for (const key of this.#keys) {
      const values = ownersOf(server, lockName(key));
      const before = this.#owners.get(key);
      const owners = values.map(holderOf).map((owner) => [owner, before?.get(owner) ?? timeline.now] as const);
      this.#owners.set(key, new Map(owners));
      for (const hold of this.#holds) {
        if (hold.key !== key) continue;
        const value = values.find((one) => holderOf(one) === hold.lease.owner);
        if (value === undefined) this.#ended(hold, values[0]);
        else if (plan.isCalm && isKept(value) && timeline.now > this.#longest(hold))
          this.#report(hold, 'is still kept');
      }
    }
  }

  /** Readers of a process have one hold, which is kept for all of them. */
  #longest({ lease }: MinHold): number {
    const same = [...this.#holds].filter((other) => other.lease.owner === lease.owner);
    return Math.max(...same.map(({ longest }) => longest));
  }

  #ended(hold: MinHold, owner: string | undefined): void {
    this.#holds.delete(hold);
    const { process } = hold.host;
    if (!process.isAlive || hold.lease.signal.aborted || this.#world.timeline.now >= hold.until) return;
    this.#report(hold, owner === undefined ? 'is free' : `is ${owner}'s`);
  }

  #report({ key, caller, until }: MinHold, state: string): void {
    const text = `"${key}" ${state}, and the minHold of ${caller} ends at ${until.toFixed(1)}`;
    this.#world.violations.report('min hold', key, text);
  }
}
