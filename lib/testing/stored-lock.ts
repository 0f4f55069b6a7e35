import { clock } from '../internal/clock';
import type { Inspected } from '../lock-backend';
import { KEPT, type Keep } from '../protocols/min-hold/kept';
import type { Ownership, Released, RenewalMode } from '../protocols/protocol';
import { ForcedUnlocks } from './forced-unlocks';
import {
  type Answer,
  type Claim,
  extend,
  type Held,
  held,
  mayEnter,
  type Position,
  type Receiver,
  type Store,
  type StoredKind,
  type StoredLease,
  useOf,
} from './stored-lease';

/**
 * One lock in memory: its leases and its queue. A lock that is released, expires or is unlocked by force is granted to
 * those at the head of the queue that may have it, with their full ttl. Every method takes effect at once, and answers.
 */
export class StoredLock {
  readonly #store: Store;
  readonly #queue = new Map<string, Position>();
  /** By owner. One at most, but for shared locks. */
  readonly #leases = new Map<string, StoredLease>();
  readonly #forced = new ForcedUnlocks();
  /** What those that hold it or wait for it use it as; `undefined`: nobody does. */
  #usedAs: string | undefined;
  #permits = 1;
  #expiry: NodeJS.Timeout | undefined;

  constructor(store: Store) {
    this.#store = store;
  }

  /** Nothing has to be remembered of it. */
  get isIdle(): boolean {
    return this.owner === undefined && this.#queue.size === 0 && !this.#forced.isAnyLive;
  }

  /** Whose lease lasts longest. */
  get owner(): string | undefined {
    this.expireAndGrant();
    return this.#byEnd.at(-1)?.[0];
  }

  get state(): Inspected {
    this.expireAndGrant();
    const [owner, lease] = this.#byEnd.at(-1) ?? [];
    return {
      owner,
      remaining: lease === undefined ? 0 : lease.expiresAt - clock.now(),
      fencingToken: lease?.token,
      waiting: this.#queue.size,
      ...(lease !== undefined && lease.kind !== 'lock' && { holders: this.#leases.size }),
    };
  }

  /**
   * Enters if that is possible now. `waits`: else the ticket gets a position, unless it has one. A repetition is
   * harmless. Throws while it is used as something else.
   */
  acquire(claim: Claim, waits: boolean): Answer {
    const { ticket, ttl, permits } = claim;
    this.expireAndGrant();
    this.#use(useOf(claim.kind));
    if (permits !== undefined && permits !== this.#permits) {
      this.#permits = permits;
      this.expireAndGrant();
    }
    const lease = this.#leases.get(ticket);
    if (lease !== undefined) {
      extend(lease, ttl);
      return held(lease);
    }
    const position = this.#queue.get(ticket);
    if (position === undefined && this.#mayEnter(claim, [...this.#queue.values()])) return this.#enter(claim);
    if (waits && position === undefined) this.#queue.set(ticket, { ...claim, receive: undefined });
    this.#watchExpiry();
    const [owner = '', first] = this.#byEnd[0] ?? [];
    return { granted: false, remaining: first === undefined ? 0 : first.expiresAt - clock.now(), owner };
  }

  /** For a caller whose ticket has a position, or has got the lock since. Returns what ends that. */
  await(ticket: string, receive: Receiver): () => void {
    const position = this.#queue.get(ticket);
    const lease = this.#leases.get(ticket);
    if (lease !== undefined) receive(held(lease));
    else if (position === undefined || this.#store.isSilent) receive('not granted');
    else position.receive = receive;
    return () => {
      if (position !== undefined) position.receive = undefined;
    };
  }

  /** Never shortens its ttl. */
  renew(owner: string, ttl: number, mode: RenewalMode): Ownership {
    const found = this.#find(owner);
    if (typeof found === 'string') return { state: found };
    if (mode === 'extend') extend(found, ttl);
    return { state: 'held', until: held(found).until };
  }

  /** Also takes a ticket out of the queue. */
  release(ownerOrTicket: string): Released {
    this.#queue.delete(ownerOrTicket);
    const found = this.#find(ownerOrTicket);
    this.#leases.delete(ownerOrTicket);
    this.#changed();
    return typeof found === 'string' ? found : 'released';
  }

  /** In place of a release: its part of the lock stays taken before its `minHold` ends. */
  keep(owner: string, { left }: Keep): Released {
    const found = this.#find(owner);
    if (typeof found === 'string') return found;
    this.#leases.delete(owner);
    this.#leases.set(KEPT + owner, { ...found, expiresAt: clock.now() + left });
    this.#watchExpiry();
    return 'released';
  }

  forceUnlock(): void {
    this.expireAndGrant();
    for (const [owner, { expiresAt }] of this.#leases) this.#forced.note(owner, expiresAt);
    this.free();
  }

  /** Nobody holds it from now on, as if its key had been deleted. */
  free(): void {
    this.#leases.clear();
    this.#changed();
  }

  /** This owner has it alone from now on, in place of others. */
  give(owner: string, ttl: number): void {
    this.#leases.clear();
    this.#grant(owner, 'lock', ttl);
    this.#watchExpiry();
  }

  /** Removes leases that have expired, and grants a free lock to those at the head of the queue that may have it. */
  expireAndGrant(): void {
    const now = clock.now();
    for (const [owner, { expiresAt }] of this.#leases) if (expiresAt <= now) this.#leases.delete(owner);
    if (this.#store.isSilent) return;
    for (const first of this.#queue.values()) {
      if (!this.#mayEnter(first, [])) return;
      this.#queue.delete(first.ticket);
      const grant = this.#enter(first);
      first.receive?.(grant);
    }
  }

  /** Wakes those that wait, without the lock. They keep their positions. */
  wakeWaiters(): void {
    for (const { receive } of [...this.#queue.values()]) receive?.('not granted');
  }

  #mayEnter(claim: Claim, front: readonly Claim[]): boolean {
    return mayEnter(claim, [...this.#leases.values()], front, this.#permits);
  }

  #enter({ ticket, kind, ttl }: Claim): Held {
    const lease = this.#grant(ticket, kind, ttl);
    this.#watchExpiry();
    return held(lease);
  }

  #grant(owner: string, kind: StoredKind, ttl: number): StoredLease {
    const lease = { kind, ttl, expiresAt: clock.now() + ttl, token: this.#store.nextToken() };
    this.#leases.set(owner, lease);
    return lease;
  }

  #use(as: string): void {
    if (this.#leases.size === 0 && this.#queue.size === 0) this.#usedAs = undefined;
    this.#usedAs ??= as;
    if (this.#usedAs === as) return;
    // As Redis says it of a key of another type.
    throw new Error(`WRONGTYPE It is ${this.#usedAs} in memory, and it is used as ${as} here`);
  }

  #find(owner: string): StoredLease | 'expired' | 'stolen' {
    this.expireAndGrant();
    const lease = this.#leases.get(owner);
    if (lease !== undefined) return lease;
    // A lock that others share was not taken from one of them.
    const isTaken = [...this.#leases.values()].some(({ kind }) => kind === 'lock');
    return isTaken || this.#forced.has(owner) ? 'stolen' : 'expired';
  }

  /** Those that end first come first. */
  get #byEnd(): [string, StoredLease][] {
    return [...this.#leases].sort(([, one], [, other]) => one.expiresAt - other.expiresAt);
  }

  #changed(): void {
    this.expireAndGrant();
    this.#watchExpiry();
  }

  /** Runs while somebody waits, who has to get the lock when it expires. It keeps the process alive: a caller waits. */
  #watchExpiry(): void {
    clock.clearTimeout(this.#expiry);
    const [, first] = this.#byEnd[0] ?? [];
    if (this.#queue.size === 0 || first === undefined) return;
    const ms = Math.max(1, Math.ceil(first.expiresAt - clock.now()));
    this.#expiry = clock.setTimeout(() => this.#changed(), ms);
  }
}
