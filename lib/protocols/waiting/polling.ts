import type { Wait } from '../../acquire/wait';
import type { Pollers } from '../pollers/pollers';
import { NOT_GRANTED, type NotGranted, type Refusal } from '../protocol';
import type { Waiting } from './waiting';

/**
 * ms until the next attempt: `interval`, or less when the holder's key ends before, but at least 1. The last attempt of
 * a wait is made a little before its end, so that it can still be answered. When there is no time left for one, the
 * rest is slept.
 */
export function pauseBeforeNextAttempt(interval: number, { remaining, roundTrip }: Refusal, left: number): number {
  const pause = Math.max(1, Math.min(interval, remaining));
  // One slow reply must not put the last attempt off by more than an interval.
  const lastAttempt = left - (2 * Math.min(roundTrip, interval) + 1);
  return lastAttempt < 1 ? left : Math.min(pause, lastAttempt);
}

/**
 * Spring's SPIN_LOCK: while another process holds the key, makes another attempt after `idleBetweenTries`, or sooner
 * while pollers are seen. Works with every Redis.
 */
export class Polling implements Waiting {
  readonly isSubscribed = false;
  readonly hints = 0;
  readonly hintedAt = 0;
  readonly ownListeners = 0;
  readonly isActive = false;
  readonly #idleBetweenTries: number;
  readonly #pollers: Pollers;

  /** In ms. */
  constructor(idleBetweenTries: number, pollers: Pollers) {
    this.#idleBetweenTries = idleBetweenTries;
    this.#pollers = pollers;
  }

  async wait(refusal: Refusal, wait: Wait): Promise<NotGranted> {
    const interval = this.#pollers.pollingInterval(this.#idleBetweenTries);
    await wait.sleep(pauseBeforeNextAttempt(interval, refusal, wait.remaining));
    return NOT_GRANTED;
  }

  expectEcho(): void {}

  onRelease(): () => void {
    return () => undefined;
  }
}
