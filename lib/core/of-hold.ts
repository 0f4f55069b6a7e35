import type { LockLostReason } from '../api/distributed-lock';
import type { Attempts } from '../redis/attempts';
import type { Connection } from '../redis/connection';
import type { LossDetails } from './loss';
import type { LockRequest } from './request';

/** What a call asks for with a hold. */
export interface AskedFor extends Pick<LockRequest, 'ttl' | 'minHold' | 'permits'> {
  /** It may get a position in a queue. */
  readonly waits: boolean;
}

/** What the attempts of a hold ask for, and when the last one was sent. */
export interface Asked extends Pick<AskedFor, 'minHold' | 'waits'> {
  // As HoldOfProtocol, but for the fraction of the ms: queues in Redis have the order of the calls.
  since: number;
  sentAt: number;
  /** What became of them; `undefined` before the first one. */
  attempts: Attempts | undefined;
}

/** What a hold has that few of them have at a time. */
export interface Unusual {
  // See Hold
  failure: unknown;
  reading: Promise<void> | undefined;
  evals: number;
  /** Its `minHold`: until when the lock stays taken though it is unlocked; and the same in ms, if it began with the grant. */
  minHoldUntil: number;
  minHold: number;
  /** See HoldOfProtocol: if it is longer than its ttl. */
  longestTtl: number;
}

/** What a hold needs of the lease that relies on it. */
export interface LeaseOfHold {
  /** ms; what its call asked for. */
  readonly ttl: number;
  /** The lease ends then, though the hold may last longer. `undefined`: with its hold. */
  readonly endsAt: number | undefined;
  /** Renewed until this time; `undefined`: as long as it is held. */
  readonly renewUntil: number | undefined;
  /** Redis confirmed the hold. */
  renewed(): void;
  /** Called once: the hold is lost. `details`: how, where this process knows that. */
  lost(reason: LockLostReason, details?: LossDetails): void;
  /** With several leases: ends those whose own ttl is over. Returns false if none is left, or if there is one only. */
  endSome?(now: number): boolean;
  /** The shortest ttl of those that are renewed, where there are several leases: it is renewed at each third of that. */
  readonly renewedTtl?: number;
}

/** What a hold needs of the watchdog that renews it and ends it. */
export interface WatchdogOfHold<Hold> {
  /** When all holds were to be asked about. A hold that was confirmed before that is not passed on. */
  readonly askedAboutAllAt: number;
  /** Watches over it from now on. A renewal of it may be in flight already. */
  add(hold: Hold, now: number): void;
  /** A renewal that was sent at `sentAt` has ended. */
  renewed(hold: Hold, sentAt: number, isConfirmed: boolean): void;
  /** Its deadline has changed. */
  moved(hold: Hold): void;
  /** Nobody relies on it any more. */
  remove(hold: Hold): void;
  /** Asks Redis about it now, or at this time, or after what is in flight. */
  askAbout(hold: Hold, at?: number): void;
  /** Asks Redis now about all holds that must not be relied on. */
  hurry(): void;
}

/** What a hold needs of its registry. */
export interface HoldServices<Hold> {
  readonly connection: Connection;
  readonly watchdog: WatchdogOfHold<Hold>;
}
