import type { NotReplicatedError } from '../api/errors';
import type { Availability } from './availability';
import type { LockRequest } from './request';
import type { Wait } from './wait';

/** The tokens that Redis has given to a hold, for leases that follow each other. */
export interface Tokens {
  /** The token of the first lease. `undefined`: without fencing. */
  readonly fencingToken: number | undefined;
  /** How many more there are, each one higher than the one before. Those that are left when the hold ends are not used. */
  readonly moreTokens?: number;
}

/** The lock is the hold's. */
export interface Grant extends Tokens {
  readonly granted: true;
  /** The value in Redis that says so. No other grant ever has it. */
  readonly owner: string;
  /** Until when it may be relied on, on the monotonic clock. */
  readonly until: number;
  /** The drift between the clocks when `until` was measured. */
  readonly drift: number;
  /** When that was sent which `until` counts from, if it was no attempt of the hold. */
  readonly sentAt?: number;
  /** For a grant that lasts only for the claim window: its first renewal, which is in flight. Never rejects. */
  readonly renewal?: Promise<Ownership>;
}

/** Another owner holds the lock. */
export interface Refusal {
  readonly granted: false;
  /** ms that are left of the holder's key; `Infinity` when it has no expiry. */
  readonly remaining: number;
  /** The holder's owner value, where the answer said it. */
  readonly owner?: string | undefined;
  /** ms that the answer took. */
  readonly roundTrip: number;
  /** How many releases had been noticed before the attempt was sent, where a protocol listens for them. */
  readonly hintsBefore?: number | undefined;
}

/** A wait ended without a grant: it is time for another attempt, or the caller's time is over. */
export interface NotGranted {
  readonly granted: false;
}

export const NOT_GRANTED: NotGranted = { granted: false };

/** What Redis says of an owner: it holds the lock until then; nobody or another owner does; or there was no answer. */
export type Ownership =
  | { readonly state: 'held'; readonly until: number }
  | { readonly state: NotHeld }
  /** `late`: the answer, where it may still come. It never rejects. */
  | { readonly state: 'unknown'; readonly cause: unknown; readonly late?: Promise<Ownership> };

/** A lock is not the owner's: there is no key, or the key of another owner. */
export type NotHeld = 'expired' | 'stolen';

/** What a release found: our key, or that the lock is not ours. */
export type Released = 'released' | NotHeld;

/** A hold that the process keeps, for its next callers: until when, and their tokens. */
export interface Confirmed extends Tokens {
  readonly until: number;
}

/** A hold that is to be confirmed for the next caller. Times are in ms. */
export interface Confirmation {
  readonly owner: string;
  /** The key lives for so long at least. */
  readonly ttl: number;
  readonly timeout: number;
  /** When the clock was read last. */
  readonly now: number;
  /** How many wait here: as many tokens are taken. */
  readonly callers: number;
}

/**
 * What became of a hold, and of the first attempt of the next local caller; `undefined`: it has to make another one. An
 * error: too few replicas have its grant.
 */
export interface Exchange {
  readonly found: Released;
  readonly answer: Grant | Refusal | NotReplicatedError | undefined;
}

/** How long a lock is to stay taken after it was unlocked before its `minHold` ended; in whole ms. */
export interface Keep {
  /** By the local clock, from when the script is sent. */
  readonly left: number;
  /** From the acquisition, endless where it began later; and the ttl that the key was given then. */
  readonly minHold: number;
  readonly ttl: number;
}

/**
 * What a protocol needs of a hold: what to ask for, the names under which something of it may be in Redis, and what Redis
 * has said of it. It changes the names and `sentAt` where an answer says so.
 */
export interface HoldOfProtocol extends Pick<LockRequest, 'permits'> {
  /** Its position in a queue is under this owner value, and that of `fair` and of locks in memory is derived from it. */
  ticket: string;
  /** What its next or last attempt writes, or (granted) what is in Redis. */
  owner: string;
  /** ms, whole: the ttl of the lease. */
  readonly ttl: number;
  /**
   * ms, whole: the longest ttl that was asked for, by an attempt, for the next caller, or by a renewal. Its key may live
   * for so long, though no answer said so.
   */
  readonly longestTtl: number;
  /** ms for which its key has to live from the grant on, even if its process dies: the `minHold` of the call. */
  readonly leastLife: number;
  /** Its caller waits. */
  readonly waits: boolean;
  /** It may have a position in a queue in Redis. */
  readonly isEnqueued: boolean;
  /** When the caller called that the last attempt was sent for: queues in Redis have the order of the calls. */
  readonly since: number;
  /** µs from the call until its last attempt, for a position in a queue in Redis. Exact: callers may follow within a ms. */
  readonly waited: string;
  /** When the last attempt was sent, and the drift between the clocks then; from the grant on, of the last confirmation. */
  sentAt: number;
  readonly drift: number;
  readonly attempts: { readonly wereNeverInDoubt: boolean };
  /** When its acquisition was sent, or a little earlier. */
  readonly acquiredAt: number;
  /** A lease relies on it. */
  readonly isHeld: boolean;
  /** How long it is to be kept when it is released now; `undefined`: not at all. */
  readonly keep: Keep | undefined;
  /** A message says that the lock was released: asks Redis about the hold soon. */
  confirmSoon(): void;
}

/** What is asked of a lock where it is written, in Redis or in memory. Every call is idempotent. Timeouts are in ms. */
export interface LockCommands {
  /** An attempt of a caller that waits may leave a position in a queue. */
  readonly hasQueue?: boolean;
  /** ms to ask for, where a lease may begin later than its hold; else that of the lease. */
  ttlFor?(request: LockRequest): number;
  /** One attempt, one script: a key that holds the hold's ticket is the hold's. */
  attempt(hold: HoldOfProtocol, timeout: number): Promise<Grant | Refusal>;
  /** Calls `settle` once, and never throws. A renewal never shortens the ttl of the key. */
  renew(owner: string, ttl: number, timeout: number, settle: (ownership: Ownership) => void): void;
  /**
   * Deletes the key if it is the owner's, or removes the owner from those of a shared lock, and notifies waiters.
   * `fair` hands the lock over to the next ticket instead. Also takes the owner out of a queue.
   *
   * `keep`: it only leaves the queue, and nobody else gets the lock before its `minHold` ends. Then its key ends by
   * itself, and waiters know when. Repeated calls, and a release after it, change nothing. `now`: for a caller that has
   * read the clock just now.
   */
  release(owner: string, timeout: number, keep?: Keep, now?: number): Promise<Released>;
  /** Absent: its leases do not travel. */
  readonly travel?: Travel | undefined;
  /** ms after which the key of a hold whose caller gave up, and its position at the head, have ended anyway. */
  orphanLife(hold: HoldOfProtocol): number;
}

/** How processes contend for a lock: how a waiter learns that it is free, and when its holder leaves it to others. */
export interface LockContention {
  /** Callers of one process queue each for itself where the lock is (in memory), and not for a turn: none passes a hold on. */
  readonly queuesItself?: boolean;
  /** The pause in which this process leaves a free lock to other processes; `undefined`: none. */
  standBack(wait: Wait): Promise<void> | undefined;
  /** After a refusal: resolves when it is time for another attempt, with the lock itself, or when the wait is over. */
  wait(hold: HoldOfProtocol, refusal: Refusal, wait: Wait): Promise<Grant | NotGranted>;
  /**
   * A lease ended, and a local caller waits: whether the hold may be passed on to it without a command, since nobody else
   * is to have the lock now, as far as this process knows.
   */
  mayPassOn(now: number, hold: HoldOfProtocol): boolean;
  /** Asks Redis where that is not known, and releases the hold where others are to have it. Absent: it is released. */
  confirmOrRelease?(asked: Confirmation): Promise<Confirmed | Released>;
  /**
   * In its place: ends the hold by the next attempt of the next local caller. The queue in Redis decides. `keep`: as for
   * `release`.
   */
  exchange?(owner: string, to: HoldOfProtocol, timeout: number, keep: Keep | undefined): Promise<Exchange>;
  /**
   * For calls that hold nothing while they wait: listens for releases, until the function that it returns is called. Absent:
   * they have no way to know.
   */
  watch?(onHint: () => void): () => void;
  /** Where releases are listened for: how many were noticed. */
  readonly hints?: number | undefined;
  /** ms until a call that is listening asks again. */
  readonly pollingInterval?: number;
  /** The next attempt tells Redis a new number of permits: what the last one was answered may not hold for it. */
  readonly hasNews?: boolean;
  /** A lease of this process was lost, or detached: the lock may be free. */
  leaseLost?(): void;
}

/**
 * One lock: its commands, and how processes contend for it. There is one object for each lock that is in use. After that it stays
 * only where it has learnt something.
 */
export interface LockProtocol extends LockCommands, LockContention {
  readonly availability: Availability;
  /** It knows of the lock, or of those that share it, what the next caller is to know. */
  readonly hasLearnt: boolean;
  /** Nobody here asks for the lock any more. An error is forgotten: it keeps what its stack refers to. */
  callersLeft(): void;
  /** Another object replaces this one. From now on this one only gives back its own grants, and ignores all other messages. */
  retire?(): void;
  /** The hold of this process, set by its `Passing`: a message may be about it. */
  holder?: HoldOfProtocol | undefined;
}

/** How a lock goes from one process to another: it gets another owner value. Idempotent, and never makes a key. */
export interface Travel {
  /** From its owner to the value under which it can be adopted. It lives for at least `ttl` ms then. */
  detach(owner: string, to: string, ttl: number, timeout: number): Promise<Released>;
  /** From that value to the owner of the hold. It lives for the ttl of the hold then. */
  adopt(from: string, hold: HoldOfProtocol, timeout: number): Promise<Grant | NotHeld>;
  /**
   * From an owner that has it to the owner of the hold: the process of that owner is sent `message` first. Nothing is taken
   * where fewer than `least` heard that.
   */
  replace(
    from: string,
    hold: HoldOfProtocol,
    message: string,
    least: number,
    timeout: number,
  ): Promise<Grant | NotTaken>;
}

/** The lock is not that of the owner from which it was to be taken; or nobody heard that it was to be. */
export type NotTaken = NotHeld | 'unheard';
