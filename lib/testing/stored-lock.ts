import { entersTogether, isExclusive, type StoredKind } from '../api/lock-types';
import { isOfRegistry, KEPT } from '../api/owner-name';
import type { Inspected } from '../core/backend';
import type { Grant, NotGranted, NotHeld, Ownership, Refusal, Released } from '../core/protocol';
import { NOT_GRANTED } from '../core/protocol';
import { clock, drift, MAX_DELAY, reliableUntil } from '../internal/clock';
import { mayEnter, type Sharer, taken } from '../kinds/shared/rules';

/** What a caller uses a lock as: what its key would be in Redis, and what the caller takes it for. */
export interface Use {
  readonly is: string;
  readonly as: string;
  readonly isShared: boolean;
}

/** What a caller asks for. */
interface Claim extends Sharer {
  readonly ticket: string;
  readonly use: Use;
  /** ms */
  readonly ttl: number;
  /** How many may hold a semaphore. The number that was given last counts. */
  readonly permits: { readonly count: number; readonly at: number } | undefined;
  /** When the caller called: the queue has the order of the calls. */
  readonly since: number;
}

/** The function of a waiting caller that gets the lock, or is woken without it. */
type Receiver = (granted: Grant | NotGranted) => void;

/** A caller in the queue. `since`: 0 for a reader that comes first. */
interface Position extends Claim {
  since: number;
  receive: Receiver | undefined;
}

/** Times are on the monotonic clock, in ms. */
interface StoredLease extends Sharer {
  readonly token: number;
  /** ms since 1970 */
  readonly acquiredAt: number;
  /** What its life comes from. */
  ttl: number;
  expiresAt: number;
}

/** What a lock in memory needs of those that are with it in one store. */
interface Store {
  /** While it is, a lock that becomes free is granted to nobody. */
  readonly isSilent: boolean;
  /** The fencing token of a grant. */
  nextToken(): number;
}

/**
 * One lock in memory: its leases and its queue. A lock that is released, expires or is unlocked by force is granted to
 * those at the head of the queue that may have it, with their full ttl. Every method takes effect at once, and answers.
 */
export class StoredLock {
  readonly #store: Store;
  readonly #queue = new Map<string, Position>();
  /** The latest `since` that the queue has had. */
  #lastSince = 0;
  /** By owner. One at most, but for shared locks. */
  readonly #leases = new Map<string, StoredLease>();
  /** What those that hold it or wait for it use it as; `undefined`: nobody does. */
  #use: Use | undefined;
  #permits = { count: 1, at: 0 };
  /** The last lease was a writer's. */
  #isWritten = false;
  #expiry: NodeJS.Timeout | undefined;

  constructor(store: Store) {
    this.#store = store;
  }

  /** Nothing has to be remembered of it. */
  get isIdle(): boolean {
    return this.state.owner === undefined && this.#queue.size === 0;
  }

  /** Somebody waits. */
  get isAwaited(): boolean {
    return this.#queue.size > 0;
  }

  /** Whether a caller of the registry with this id waits. */
  isAwaitedBy(id: string): boolean {
    return [...this.#queue.keys()].some((ticket) => isOfRegistry(ticket, id));
  }

  /** All that hold it. */
  get owners(): string[] {
    return [...this.#leases.keys()];
  }

  /** How many may hold it, as a semaphore. */
  get permits(): number {
    return this.#permits.count;
  }

  /** Its owner is the one whose lease lasts longest, and `kind` is that of this lease. */
  get state(): Inspected & { readonly kind: StoredKind | undefined; readonly holders: number } {
    this.expireAndGrant();
    const [owner, lease] = this.#byEnd.at(-1) ?? [];
    return {
      owner,
      kind: lease?.kind,
      ...(lease !== undefined && { acquiredAt: lease.acquiredAt }),
      remaining: lease === undefined ? 0 : lease.expiresAt - clock.now(),
      fencingToken: lease?.token,
      waiting: this.#queue.size,
      holders: taken([...this.#leases.values()]),
    };
  }

  /**
   * Enters if that is possible now. `waits`: else the ticket gets a position, unless it has one. A repetition is
   * harmless. Throws while it is used as something else.
   */
  acquire(claim: Claim, waits: boolean): Grant | Refusal {
    const { ticket, ttl, permits } = claim;
    this.expireAndGrant();
    this.#assertUse(claim.use);
    if (permits !== undefined && (this.#queue.size === 0 || permits.at >= this.#permits.at)) {
      this.#permits = permits;
      this.expireAndGrant();
    }
    const lease = this.#leases.get(ticket);
    if (lease !== undefined) {
      extend(lease, ttl);
      return grant(ticket, lease);
    }
    const position = this.#queue.get(ticket);
    const front = () => [...this.#queue.values()].filter(({ since }) => since <= claim.since);
    if (position === undefined && this.#mayEnter(claim, front)) return this.#enter(claim);
    if (waits && position === undefined) {
      this.#queue.set(ticket, { ...claim, receive: undefined });
      // Mostly it is the last one.
      if (claim.since < this.#lastSince) this.#sortQueue();
      else this.#lastSince = claim.since;
    }
    this.#watchExpiry();
    const [owner, first] = this.#byEnd[0] ?? [];
    const remaining = first === undefined ? 0 : first.expiresAt - clock.now();
    return { granted: false, remaining, owner, roundTrip: 0 };
  }

  /** For a caller whose ticket has a position, or has got the lock since. It may be called back after it has left. */
  await(ticket: string, receive: Receiver): void {
    const position = this.#queue.get(ticket);
    const lease = this.#leases.get(ticket);
    if (lease !== undefined) receive(grant(ticket, lease));
    else if (position === undefined || this.#store.isSilent) receive(NOT_GRANTED);
    else position.receive = receive;
  }

  /** Renews a lease. Never shortens its ttl. */
  renew(owner: string, ttl: number): Ownership {
    const found = this.#find(owner);
    if (typeof found === 'string') return { state: found };
    extend(found, ttl);
    return { state: 'held', until: grant(owner, found).until };
  }

  /** Ends a lease, or takes a ticket out of the queue. */
  release(ownerOrTicket: string): Released {
    this.#queue.delete(ownerOrTicket);
    const found = this.#find(ownerOrTicket);
    this.#leases.delete(ownerOrTicket);
    this.expireAndGrant();
    return typeof found === 'string' ? found : 'released';
  }

  /** In place of a release: its part of the lock stays taken until then, when its `minHold` ends. */
  keep(owner: string, expiresAt: number): Released {
    const found = this.#find(owner);
    if (typeof found === 'string') return found;
    this.#leases.delete(owner);
    this.#leases.set(KEPT + owner, { ...found, expiresAt });
    this.expireAndGrant();
    return 'released';
  }

  /** Gives a lease another owner value, and at least this ttl. */
  detach(owner: string, to: string, ttl: number): Released {
    this.expireAndGrant();
    const found = this.#leases.get(to) ?? this.#find(owner);
    if (typeof found === 'string') return found;
    this.#leases.delete(owner);
    this.#leases.set(to, found);
    extend(found, ttl);
    this.#watchExpiry();
    return 'released';
  }

  /** Gives a lease that was detached to an owner, as a new acquisition. */
  adopt(from: string, owner: string, ttl: number): Grant | NotHeld {
    this.expireAndGrant();
    const found = this.#leases.get(owner) ?? this.#find(from);
    if (typeof found === 'string') return found;
    if (this.#leases.delete(from)) return this.#enter({ ...found, ticket: owner, ttl });
    extend(found, ttl);
    return grant(owner, found);
  }

  /** Nobody holds it from now on, as if its key had been deleted. */
  free(): void {
    this.#leases.clear();
    this.expireAndGrant();
  }

  /** This owner has it alone from now on, in place of others. */
  give(owner: string, ttl: number): void {
    if (this.isIdle) this.#use = undefined;
    this.#leases.clear();
    this.#enter({ ticket: owner, kind: 'lock', ttl, takes: 1 });
  }

  /** Forgets what has expired, and grants a free lock to those at the head of the queue that may have it. */
  expireAndGrant(): void {
    const now = clock.now();
    for (const [owner, { expiresAt }] of this.#leases) if (expiresAt <= now) this.#leases.delete(owner);
    if (this.#isWritten && this.#leases.size === 0) this.#readersFirst();
    for (const first of this.#store.isSilent ? [] : this.#queue.values()) {
      if (!this.#mayEnter(first, () => [])) break;
      this.#queue.delete(first.ticket);
      const granted = this.#enter(first);
      first.receive?.(granted);
    }
    this.#watchExpiry();
  }

  /** A writer has left: all readers that wait by now enter before the next one. */
  #readersFirst(): void {
    this.#isWritten = false;
    for (const position of this.#queue.values()) if (entersTogether(position.kind)) position.since = 0;
    this.#sortQueue();
  }

  #sortQueue(): void {
    const waiting = [...this.#queue.values()].sort((one, other) => one.since - other.since);
    this.#queue.clear();
    for (const position of waiting) this.#queue.set(position.ticket, position);
  }

  /** A silence begins: wakes those that wait, without the lock. They keep their positions. */
  wakeWaiters(): void {
    this.#watchExpiry();
    for (const { receive } of [...this.#queue.values()]) receive?.(NOT_GRANTED);
  }

  /** Whether a caller may enter beside the leases, and those that come first. */
  #mayEnter(claim: Claim, front: () => readonly Claim[]): boolean {
    const leases = [...this.#leases.values()];
    const { count } = this.#permits;
    return mayEnter(claim, leases, count) && mayEnter(claim, [...leases, ...front()], count);
  }

  #enter({ ticket, kind, takes, ttl }: Pick<Claim, 'ticket' | 'kind' | 'takes' | 'ttl'>): Grant {
    // The clock here is monotonic.
    const acquiredAt = Date.now();
    const lease = { kind, takes, ttl, acquiredAt, expiresAt: clock.now() + ttl, token: this.#store.nextToken() };
    this.#leases.set(ticket, lease);
    this.#isWritten = kind !== 'lock' && isExclusive(kind);
    this.#watchExpiry();
    return grant(ticket, lease);
  }

  /** Throws for a lock that is held, and that is not seen as this: a shared lock is seen as any. */
  assertSeenAs(use: Use): void {
    if (this.state.owner === undefined || this.#use === undefined || this.#use.isShared) return;
    if (use.isShared || this.#use.is !== use.is) throw usedWrong(this.#use, use);
  }

  #assertUse(use: Use): void {
    if (this.#use === undefined || (this.#leases.size === 0 && this.#queue.size === 0)) this.#use = use;
    if (this.#use.is !== use.is) throw usedWrong(this.#use, use);
  }

  #find(owner: string): StoredLease | NotHeld {
    this.expireAndGrant();
    const lease = this.#leases.get(owner);
    if (lease !== undefined) return lease;
    // A lock that others share was not taken from one of them.
    const isTaken = [...this.#leases.values()].some(({ kind }) => kind === 'lock');
    return isTaken ? 'stolen' : 'expired';
  }

  /** Leases that end first come first. */
  get #byEnd(): [string, StoredLease][] {
    return [...this.#leases].sort(([, one], [, other]) => one.expiresAt - other.expiresAt);
  }

  /** Runs while somebody waits, who has to get the lock when it expires. It keeps the process alive: a caller waits. */
  #watchExpiry(): void {
    clock.clearTimeout(this.#expiry);
    const isOfUse = this.#queue.size > 0 && !this.#store.isSilent;
    const [, first] = (isOfUse && this.#byEnd[0]) || [];
    if (first === undefined) return;
    const ms = Math.max(1, Math.min(Math.ceil(first.expiresAt - clock.now()), MAX_DELAY));
    this.#expiry = clock.setTimeout(() => this.expireAndGrant(), ms);
  }
}

/** The words are those of Redis for a key of another type, and our scripts of another kind of shared lock. */
function usedWrong(there: Use, here: Use): Error {
  const code = there.isShared && here.isShared ? 'WRONGKIND' : 'WRONGTYPE';
  return new Error(`${code} It is ${there.is} in memory, and it is used as ${here.as} here`);
}

function extend(lease: StoredLease, ttl: number): void {
  const expiresAt = clock.now() + ttl;
  if (expiresAt <= lease.expiresAt) return;
  lease.expiresAt = expiresAt;
  lease.ttl = ttl;
}

/** What its holder learns of a lease: it may be relied on until a little before it expires. */
function grant(owner: string, { expiresAt, ttl, token }: StoredLease): Grant {
  return { granted: true, owner, until: reliableUntil(expiresAt - ttl, ttl), fencingToken: token, drift: drift() };
}
