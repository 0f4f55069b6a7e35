/**
 * ms by which anything may come later than it should: two busy cores, a garbage collection, a poll between two looks.
 */
export const SLACK = 400;

/** What a lease of `ttl` ms is good for at least, right after a quick acquisition: 0.1 % and 1 ms are the margin for drift. */
export function reliable(ttl: number): number {
  return ttl - ttl * 0.001 - 1;
}

/** ms by which a wait may end early: a timer counts from the beginning of the turn of the event loop in which it was set. */
export const EARLY = 20;
