import { clock } from '../clock';
import type { LockNames } from '../redis/names';
import type { Wait } from '../wait';

/** One acquisition: who asks, for what, and for how long. Its owner value is never used again. */
export class Claim {
  /** Attempts whose outcome is not known yet, and when it will be known of all of them. */
  pendingDoubts = 0;
  settled: Promise<unknown> | undefined;
  /** Of an attempt it will never be known: its connection was lost before Redis answered. */
  lostTrack = false;

  readonly names: LockNames;
  readonly owner: string;
  /** ms, whole: what Redis is told. */
  readonly ttl: number;
  /** The connection of the first attempt, where the client tells it. */
  readonly epoch: number | undefined;
  /** When this process last gave up the lock to others, and left local callers waiting. */
  readonly lastYield: Yielded | undefined;
  /** When the last attempt was sent, on the monotonic clock, and how far the wall clock was from it. */
  sentAt = 0;
  drift = 0;
  /** Whoever asks is ready to wait. */
  readonly waits: boolean;
  /**
   * Its place in a queue in Redis, from which it has to be taken out again, unless it is granted: when it was first sent,
   * on the monotonic clock, and its rank as Redis gave it.
   */
  place: { readonly sentAt: number; rank: string } | undefined;

  constructor(
    names: LockNames,
    owner: string,
    { ttl, waits }: { readonly ttl: number; readonly waits: boolean },
    epoch: number | undefined,
    lastYield?: Yielded,
  ) {
    this.names = names;
    this.owner = owner;
    this.ttl = Math.ceil(ttl);
    this.waits = waits;
    this.epoch = epoch;
    this.lastYield = lastYield;
  }

  /** It is about to be sent. */
  stamp(): void {
    this.sentAt = clock.now();
    this.drift = clock.wallNow() - this.sentAt;
  }

  /** Every attempt was answered, so that what Redis says of this claim from now on is final. */
  get isCertain(): boolean {
    return this.pendingDoubts === 0 && !this.lostTrack;
  }
}

/** The lock is the claim's. */
export interface Grant {
  readonly granted: true;
  /** Until when it may be relied on, on the monotonic clock. */
  readonly until: number;
  readonly fencingToken: number | undefined;
  /**
   * A grant that stands only for a moment, until it is claimed: the claim is under way, and this is what becomes of it.
   * Never rejects.
   */
  readonly confirmation?: Promise<Ownership>;
}

/** Somebody else holds the lock. */
export interface Refusal {
  readonly granted: false;
  /** ms that the holder's key still has to live; -1: it has no end. */
  readonly remaining: number;
  /** ms that the answer took. */
  readonly roundTrip: number;
}

/** What Redis says of a claim: it is held until then; nobody or another owner has it; or there was no answer, and why. */
export type Ownership =
  | { readonly state: 'held'; readonly until: number }
  | { readonly state: 'expired' | 'stolen' }
  | { readonly state: 'unknown'; readonly cause: unknown };

/** A claim, and how long from now it is to last at least. */
export interface Renewal {
  readonly claim: Claim;
  /** ms, whole. Negative: it is only asked about; a key that has no end is given this life again. */
  readonly ttl: number;
}

/** The lock was given up to other processes, though a local caller was waiting for it. */
export interface Yielded {
  readonly granted: false;
  /** Until when this process leaves the lock to them, on the monotonic clock. */
  readonly standBackUntil: number;
}

/** What a release found: our key, nothing, or another owner's key. */
export type Released = 'released' | 'expired' | 'stolen';

/** How a lock is written in Redis, and how a waiter learns that it is free. Timeouts are in ms. */
export interface LockStrategy {
  /** Where the callers of one process queue: each has to take the local turn first, or each for itself in Redis. */
  readonly queue: 'local' | 'redis';
  /** Default of the option `handOver`: ms for which one process may pass a lock among its own callers. */
  readonly handOver: number;
  /** One attempt, one script. Bears being executed twice: a key that holds the claim's own owner value is the claim's. */
  attempt(claim: Claim, timeout: number): Promise<Grant | Refusal>;
  /** After a refusal: returns when it is time for another attempt, or the wait is over; or with the lock itself. */
  wait(claim: Claim, last: Refusal, wait: Wait): Promise<Grant | undefined>;
  /** Asks of each claim whether it is held, and makes it last at least `ttl` from now: one answer each, in order. Never rejects. */
  renew(renewals: readonly Renewal[], timeout: number): Promise<readonly Ownership[]>;
  /** Deletes what is the claim's own, and nothing else, and tells those who wait. */
  release(claim: Claim, timeout: number): Promise<Released>;
  /**
   * Hands the lock over from one claim of this process to another, in place of a release and an attempt. When this
   * process had the lock for its share of the time (`mayYield`), it is rather given up to others who wait for it.
   */
  transfer(from: Claim, to: Claim, mayYield: boolean, timeout: number): Promise<Grant | Yielded | Released>;
  /** Throws `RangeError` when there is no way to name in Redis what belongs to the lock. */
  assertNames(names: LockNames): void;
  /** Leaves nothing open. */
  close(): Promise<void>;
}
