import type { NotReplicatedError } from '../api/errors';
import type { KindSettings } from '../api/options';
import type { Connection } from '../redis/connection';
import type { LockNames } from '../redis/names';
import type { GivingBack } from './give-back';
import type { Hold } from './hold';
import type { RedisLease } from './lease';
import type { Turn } from './local-queue';
import type { WatchdogOfHold } from './of-hold';
import type { OpenWaits } from './open-waits';
import type { Grant, LockProtocol } from './protocol';
import type { LockRequest } from './request';
import type { Unconnected } from './unconnected';
import type { Wait } from './wait';

/** What comes with the turn: the right to contend, or a lease at once, where the holder before passed its hold on. */
export type Entry = Turn | RedisLease;

/** What the calls of a registry share. */
export interface CallServices {
  readonly settings: KindSettings;
  readonly connection: Connection;
  readonly watchdog: WatchdogOfHold<Hold>;
  readonly givingBack: GivingBack;
  readonly unconnected: Unconnected;
  readonly waits: OpenWaits;
  /** See `leastTimeout` in wait. */
  readonly leastTimeout: number;
  /** An owner value that was never used before. */
  nextOwner(): string;
  /** For an error about a key of the wrong type: an error that says more. `timeout` in ms. */
  explainWrongType(error: unknown, names: LockNames, timeout: number): Promise<unknown>;
  warnNotReplicated(cause: NotReplicatedError, key: string): void;
}

/** What a call needs of its lock. `Caller` is the call. */
export interface LockOfCall<Caller = never> {
  readonly names: LockNames;
  readonly services: CallServices;
  /** Callers that wait while another one has the lock, here or elsewhere. */
  waiting: number;
  /** Several callers of this process may have leases of it. */
  readonly isShared: boolean;
  /** A lease of this process is known to be held now. */
  readonly isHeldHere: boolean;
  /** Redis has refused the caller of this process that waits there. */
  readonly isWaiterRefused: boolean;
  /** ms for which Redis has not answered a release of this process. */
  readonly releasingFor: number;
  /** See `Availability.isSilent`. An unlock of this process that is not answered is silence too. */
  readonly isSilent: boolean;
  /** The turn, if it is free or not needed; or a lease of a hold that other callers of this process have. */
  entryFor(call: Caller, protocol: LockProtocol): Entry | undefined;
  /**
   * Waits for the turn, which may come with a lease already; `undefined` when the caller's waitTime is over first, and for
   * one that does not wait.
   */
  waitForTurn(call: Caller): Promise<Entry | undefined>;
  /** Of a shared lock, the caller that has the turn may be woken from now on (see `Call.mayBeWoken`), or not any more. */
  suspended(call: Caller, isSuspended: boolean): void;
  /** Redis granted the lock to the caller that has the turn. */
  acquired(hold: Hold, grant: Grant, request: LockRequest, turn: Turn): RedisLease;
  /** Resolves when the next lease has ended. */
  nextLeaseOver(): Promise<void>;
  /** A caller has its result. */
  left(wait: Wait): void;
}
