import type { NotGranted, Refusal } from '../../core/protocol';
import type { Wait } from '../../core/wait';

/** How a waiter learns that a lock may be free. One object for each lock. */
export interface Waiting {
  /** After a refusal: resolves when it is time for another attempt, or the wait is over. */
  wait(refusal: Refusal, wait: Wait): Promise<NotGranted>;
  /** Notifications of releases arrive now. */
  readonly isSubscribed: boolean;
  /** How many releases it was notified of, or may have missed. It only grows. */
  readonly hints: number;
  /** When that was last, on the monotonic clock. */
  readonly hintedAt: number;
  /** Calls back at every notification of a release. Returns the function that stops it. */
  onRelease(listener: () => void): () => void;
  /**
   * This process publishes a release at this time. It also receives this message, and must not take it for another's.
   */
  expectEcho(sentAt: number): void;
  /** Connections of this process that a release is published to. */
  readonly ownListeners: number;
  /** Something is remembered that a new object would not know. */
  readonly isActive: boolean;
}
