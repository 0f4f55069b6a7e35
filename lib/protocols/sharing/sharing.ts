import type { Wait } from '../../core/wait';
import type { Waiting } from '../waiting/waiting';

/** How the processes that contend for one lock share it. One object for each lock. */
export interface Sharing {
  /** True: at the end of a slice, release only if others listen. False: always release. */
  readonly yieldsToListeners: boolean;
  /** This process acquired the lock from Redis at this time: its slice begins. */
  acquired(sentAt: number): void;
  /** Another owner held the lock at an attempt of this process. */
  refused?(): void;
  /** This process has had the lock for its slice: the next hand-over is to give others a chance. */
  isSliceOver(now: number): boolean;
  /** This process handed the lock over to itself at the end of its slice: a new one begins. */
  renewSlice(sentAt: number): void;
  /** This process released the lock. */
  released(release: OwnRelease): void;
  /** The pause in which a free lock is left to other processes; `undefined`: none. */
  standBack(wait: Wait, waiting: Waiting | undefined): Promise<void> | undefined;
  /** Something is remembered that a new object would not know. */
  readonly isActive: boolean;
}

/** A release by this process. Times are on the monotonic clock, in ms. */
export interface OwnRelease {
  readonly sentAt: number;
  readonly answeredAt: number;
  /** Listeners of other processes: at least 1 at the end of a slice; 0 or 1 where they cannot be counted. */
  readonly others: number;
  /** Releases that had been noticed before it was sent. */
  readonly hintsBefore: number;
  /** Local callers were waiting: the lock was released because the slice was over. */
  readonly atSliceEnd: boolean;
}
