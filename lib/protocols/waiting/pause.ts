import type { Refusal } from '../../core/protocol';

/**
 * ms until the next attempt: `interval`, or less when the holder's key ends before, but at least 1. The last attempt of
 * a wait is made a little before its end, so that it can still be answered. When there is no time left for one, the rest
 * is slept.
 */
export function pauseBeforeNextAttempt(interval: number, { remaining, roundTrip }: Refusal, left: number): number {
  const pause = Math.max(1, Math.min(interval, remaining));
  // One slow reply must not put the last attempt off by more than an interval.
  const lastAttempt = left - (2 * Math.min(roundTrip, interval) + 1);
  return lastAttempt < 1 ? left : Math.min(pause, lastAttempt);
}
