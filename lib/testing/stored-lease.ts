import { clock, reliableUntil } from '../internal/clock';
import { describeKind, type SharedKind } from '../protocols/semaphore-read-write/shared-kinds';

/** The owner has a lease. Times are on the monotonic clock, in ms. */
export interface Held {
  readonly granted: true;
  /** Until when its holder may rely on it: a little before it expires. */
  readonly until: number;
  readonly token: number;
}

export type Answer = Held | { readonly granted: false; readonly remaining: number; readonly owner: string };

/** Of a waiting caller: gets the lock, or is woken without it. */
export type Receiver = (held: Held | 'not granted') => void;

/** What a caller asks for: a lock of its own, or a share of one. */
export type StoredKind = 'lock' | SharedKind;

/** What a caller asks for. */
export interface Claim {
  readonly ticket: string;
  readonly kind: StoredKind;
  /** ms */
  readonly ttl: number;
  /** How many may hold a semaphore. The number that was given last counts. */
  readonly permits: number | undefined;
}

/** A caller in the queue. */
export interface Position extends Claim {
  receive: Receiver | undefined;
}

/** What the locks have in common. */
export interface Store {
  /** While it is silent, a lock that becomes free is granted to nobody. */
  readonly isSilent: boolean;
  nextToken(): number;
}

/** Times are in ms. */
export interface StoredLease {
  readonly kind: StoredKind;
  readonly token: number;
  /** What its life comes from. */
  ttl: number;
  expiresAt: number;
}

/**
 * Whether a caller may enter beside these leases. A claim in front counts as entered, so nobody overtakes.
 */
export function mayEnter(
  { kind }: Claim,
  leases: readonly StoredLease[],
  front: readonly Claim[],
  permits: number,
): boolean {
  // What was given by hand is of kind `lock`, and excludes everybody, whatever the lock is used as.
  if (leases.some((lease) => lease.kind === 'lock' || lease.kind === 'write')) return false;
  if (kind === 'semaphore') return leases.length + front.length < permits;
  if (kind === 'read') return front.every((other) => other.kind === 'read');
  return leases.length + front.length === 0;
}

export function extend(lease: StoredLease, ttl: number): void {
  const expiresAt = clock.now() + ttl;
  if (expiresAt <= lease.expiresAt) return;
  lease.expiresAt = expiresAt;
  lease.ttl = ttl;
}

export function held({ expiresAt, ttl, token }: StoredLease): Held {
  return { granted: true, until: reliableUntil(expiresAt - ttl, ttl), token };
}

/** What messages call a lock that is used in this way. */
export function useOf(kind: StoredKind): string {
  return kind === 'lock' ? 'a lock' : describeKind(kind);
}
