import type { Refusal } from './strategy';

/**
 * ms until the next try: `idle`, or less when the holder's key ends before, but at least 1. The last try of a wait is
 * made a little before its end, so that it can still be answered; when there is no time left for one, the rest is slept.
 */
export function pollingInterval(idle: number, { remaining, roundTrip }: Refusal, left: number): number {
  const pause = Math.max(1, remaining >= 0 ? Math.min(idle, remaining) : idle);
  const lastTry = left - (2 * roundTrip + 1);
  return lastTry < 1 ? left : Math.min(pause, lastTry);
}
