import type { Lease } from '../../lib';
import { until } from '../support/until';

/** ms of allowed delay, for busy cores, garbage collection and the interval between two polls. */
export const SLACK = 400;

/** `remaining` of a lease of `ttl` ms right after a fast acquisition: the drift margin is 0.1 % and 1 ms. */
export function reliable(ttl: number): number {
  return ttl - ttl * 0.001 - 1;
}

/** ms by which a wait may end early: a timer counts from the start of the event loop turn in which it was set. */
export const EARLY = 20;

/** Until more of it is left than a moment ago. */
export async function untilRenewed(lease: Lease): Promise<void> {
  let { remaining } = lease;
  await until(() => {
    const before = remaining;
    remaining = lease.remaining;
    return remaining > before;
  });
}
