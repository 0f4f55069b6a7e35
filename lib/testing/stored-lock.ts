import { clock, reliableUntil } from '../internal/clock';
import type { Inspected } from '../lock-backend';
import { KEPT, type Keep } from '../protocols/kept';
import type { Ownership, Released, RenewalMode } from '../protocols/protocol';

/** The owner has the lock. Times are on the monotonic clock, in ms. */
export interface Held {
  readonly granted: true;
  /** Until when its holder may rely on it: a little before it expires. */
  readonly until: number;
  readonly token: number;
}

export type Answer = Held | { readonly granted: false; readonly remaining: number; readonly owner: string };

/** Of a waiting caller: gets the lock, or is woken without it. */
export type Receiver = (held: Held | 'not granted') => void;

interface Position {
  readonly ticket: string;
  /** ms */
  readonly ttl: number;
  receive: Receiver | undefined;
}

/** What the locks have in common. */
export interface Store {
  /** While it is silent, a lock that becomes free is granted to nobody. */
  readonly isSilent: boolean;
  nextToken(): number;
}

/**
 * One lock in memory: its holder and its queue. A lock that is released, expires or is unlocked by force is
 * granted to the first that waits, with its full ttl. Every method takes effect at once, and answers.
 */
export class StoredLock {
  readonly #store: Store;
  readonly #queue = new Map<string, Position>();
  #owner: string | undefined;
  /** ms; the ttl that its life comes from. */
  #ttl = 0;
  #expiresAt = 0;
  #token = 0;
  /** The last owner that it was taken from by force, and when that lease would have expired. */
  #forced: { readonly from: string; readonly until: number } | undefined;
  #expiry: NodeJS.Timeout | undefined;

  constructor(store: Store) {
    this.#store = store;
  }

  /** Nothing has to be remembered of it. */
  get isIdle(): boolean {
    const isForced = this.#forced !== undefined && this.#forced.until > clock.now();
    return this.owner === undefined && this.#queue.size === 0 && !isForced;
  }

  get owner(): string | undefined {
    this.settle();
    return this.#owner;
  }

  get state(): Inspected {
    const { owner } = this;
    return {
      owner,
      remaining: owner === undefined ? 0 : this.#expiresAt - clock.now(),
      fencingToken: owner === undefined ? undefined : this.#token,
      waiting: this.#queue.size,
    };
  }

  /** Takes the lock if it is free. `waits`: else the ticket gets a position, unless it has one. A repetition is harmless. */
  acquire(ticket: string, ttl: number, waits: boolean): Answer {
    const { owner } = this;
    if (owner !== undefined && owner !== ticket) {
      if (waits && !this.#queue.has(ticket)) this.#queue.set(ticket, { ticket, ttl, receive: undefined });
      this.#watchExpiry();
      return { granted: false, remaining: this.#expiresAt - clock.now(), owner };
    }
    if (owner === undefined) this.give(ticket, ttl);
    else this.#extend(ttl);
    return this.#held();
  }

  /** For a caller whose ticket has a position, or has got the lock since. Returns what ends that. */
  await(ticket: string, receive: Receiver): () => void {
    const position = this.#queue.get(ticket);
    if (this.#owner === ticket) receive(this.#held());
    else if (position === undefined || this.#store.isSilent) receive('not granted');
    else position.receive = receive;
    return () => {
      if (position !== undefined) position.receive = undefined;
    };
  }

  /** Never shortens its life. */
  renew(owner: string, ttl: number, mode: RenewalMode): Ownership {
    const found = this.#find(owner);
    if (found !== 'released') return { state: found };
    if (mode === 'extend') this.#extend(ttl);
    return { state: 'held', until: this.#held().until };
  }

  /** Also takes a ticket out of the queue. */
  release(ownerOrTicket: string): Released {
    this.#queue.delete(ownerOrTicket);
    const found = this.#find(ownerOrTicket);
    if (found === 'released') this.free();
    this.#watchExpiry();
    return found;
  }

  /** In place of a release: nobody gets it before its `minHold` ends. */
  keep(owner: string, { left }: Keep): Released {
    const found = this.#find(owner);
    if (found !== 'released') return found;
    this.#owner = KEPT + owner;
    this.#expiresAt = clock.now() + left;
    this.#watchExpiry();
    return found;
  }

  forceUnlock(): void {
    const { owner } = this;
    if (owner !== undefined) this.#forced = { from: owner, until: this.#expiresAt };
    this.free();
  }

  /** Nobody holds it from now on, as if its key had been deleted. */
  free(): void {
    this.#owner = undefined;
    this.settle();
    this.#watchExpiry();
  }

  /** This owner holds it from now on, in place of another one. */
  give(owner: string, ttl: number): void {
    this.#owner = owner;
    this.#ttl = ttl;
    this.#expiresAt = clock.now() + ttl;
    this.#token = this.#store.nextToken();
    this.#watchExpiry();
  }

  /** Ends a life that is over, and grants a free lock to the first that waits. */
  settle(): void {
    if (this.#owner !== undefined && this.#expiresAt <= clock.now()) this.#owner = undefined;
    const [first] = this.#queue.values();
    if (this.#owner !== undefined || first === undefined || this.#store.isSilent) return;
    this.#queue.delete(first.ticket);
    this.give(first.ticket, first.ttl);
    first.receive?.(this.#held());
  }

  /** Wakes those that wait, without the lock. They keep their positions. */
  wakeWaiters(): void {
    for (const { receive } of [...this.#queue.values()]) receive?.('not granted');
  }

  #find(owner: string): Released {
    const current = this.owner;
    if (current === owner) return 'released';
    return current === undefined && this.#forced?.from !== owner ? 'expired' : 'stolen';
  }

  #extend(ttl: number): void {
    const expiresAt = clock.now() + ttl;
    if (expiresAt <= this.#expiresAt) return;
    this.#expiresAt = expiresAt;
    this.#ttl = ttl;
  }

  #held(): Held {
    const until = reliableUntil(this.#expiresAt - this.#ttl, this.#ttl);
    return { granted: true, until, token: this.#token };
  }

  /** Runs while somebody waits, who has to get the lock when it expires. It keeps the process alive: a caller waits. */
  #watchExpiry(): void {
    clock.clearTimeout(this.#expiry);
    if (this.#queue.size === 0 || this.#owner === undefined) return;
    const ms = Math.max(1, Math.ceil(this.#expiresAt - clock.now()));
    this.#expiry = clock.setTimeout(() => {
      this.settle();
      this.#watchExpiry();
    }, ms);
  }
}
