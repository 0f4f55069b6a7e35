import type { Wait } from '../acquire/wait';
import { NOT_GRANTED, type NotGranted, type Refusal } from './protocol';

/** How a waiter learns that a lock may be free. One object for each lock, or one for all if it keeps no state. */
export interface Waiting {
  /** After a refusal: resolves when it is time for another attempt, or the wait is over. */
  wait(refusal: Refusal, wait: Wait): Promise<NotGranted>;
  /** A release would be heard of now. */
  readonly isHearing: boolean;
  /** How often a release was heard of, or may have been missed. It only grows. */
  readonly hints: number;
  /** When that was last, on the monotonic clock. */
  readonly hintedAt: number;
  /** Calls back at every release that is heard of. Returns the function that stops it. */
  onRelease(listener: () => void): () => void;
  /** Connections of this process that a release is published to. */
  readonly ownListeners: number;
  /** Something is remembered that a new object would not know. */
  readonly isActive: boolean;
}

/**
 * ms until the next attempt: `interval`, or less when the holder's key ends before, but at least 1. The last attempt of
 * a wait is made a little before its end, so that it can still be answered. When there is no time left for one, the rest
 * is slept.
 */
export function pollingInterval(interval: number, { remaining, roundTrip }: Refusal, left: number): number {
  const pause = Math.max(1, Math.min(interval, remaining));
  // One slow reply must not put the last attempt off by more than an interval.
  const lastTry = left - (2 * Math.min(roundTrip, interval) + 1);
  return lastTry < 1 ? left : Math.min(pause, lastTry);
}

/** Spring's SPIN_LOCK: while another process holds the key, try again after `idleBetweenTries`. Works with every Redis. */
export class Polling implements Waiting {
  readonly isHearing = false;
  readonly hints = 0;
  readonly hintedAt = 0;
  readonly ownListeners = 0;
  readonly isActive = false;
  readonly #idleBetweenTries: number;

  /** In ms. */
  constructor(idleBetweenTries: number) {
    this.#idleBetweenTries = idleBetweenTries;
  }

  async wait(refusal: Refusal, wait: Wait): Promise<NotGranted> {
    await wait.sleep(pollingInterval(this.#idleBetweenTries, refusal, wait.remaining));
    return NOT_GRANTED;
  }

  onRelease(): () => void {
    return () => undefined;
  }
}
