import { inspect } from 'node:util';
import type { Lease } from '../api/distributed-lock';
import type { LockLostError } from '../api/errors';
import { inOneLine } from '../internal/validation';
import type { LockNames } from '../redis/names';

/** What the leases of a registry need of its inbox. */
export interface InboxOfLease {
  /** Aborts when somebody asks for the lease. */
  signalOf(lease: object): AbortSignal;
  /** It was lost. Its task may run until `ended`, unless it was unlocked before. */
  lost(lease: object, names: LockNames): void;
  /** It was lost, and its caller has given it back. */
  ended(lease: object, names: LockNames): void;
}

/** Publishes the end of a section whose start was published. Called once. */
export type EndOfSection = (loss?: LockLostError) => void;

/** What the library needs of a lease beside what applications see: of one key, of several, or of a caller that entered again. */
export interface InternalLease extends Lease {
  /** `unlock` was called. */
  readonly isUnlocked: boolean;
  /** Whether it was lost. Ends it first if its deadline has come. */
  checkLost(): boolean;
  /** The owner value in Redis. */
  readonly owner: string;
  /** How many permits of a semaphore it has. Absent: it is that of several keys. */
  readonly permits?: number;
  /** Set for a lease whose section is published, and that was not taken by `run`. */
  publishEnd?: EndOfSection | undefined;
  /** The lease enters again where the lock is held already. */
  readonly isReentry: boolean;
  /** A lease around this one, which entered again, was unlocked. */
  readonly isOutlived?: boolean;
  /** Makes it a fixed lease: it is not renewed any more. Absent where it has no renewal of its own. */
  endRenewal?(): void;
  /** Nobody else gets the lock for `ms` from now on, also when it is unlocked before. */
  holdAtLeast(ms: number): void;
  /** Its caller does nothing under it: the `minHold` of its call does not count. Absent where it is not the only lease. */
  endMinHold?(): void;
  /** `timeout` in ms. */
  renew(ttl?: number, timeout?: number): Promise<void>;
  /** A fresh `LockLostError` that says how it was lost. The task under it returned `result`, or threw the `cause`. */
  lossError(result?: unknown, options?: ErrorOptions): LockLostError;
}

/** What `console.log(lease)` prints: no internals. */
export function leaseText(type: string, { key, remaining }: Lease, more = ''): string {
  return inOneLine(`${type} { key: ${inspect(key)}, remaining: ${Math.round(remaining)}${more} }`);
}

/** @internal Until `settled` aborts, the lease ends if it is lost: nobody works under it, and who took it waits for that. */
export function endWhenLost(lease: InternalLease, settled: AbortSignal): void {
  const end = (): void => void lease[Symbol.asyncDispose]();
  if (lease.signal.aborted) end();
  else lease.signal.addEventListener('abort', end, { signal: settled });
}
