import type { Locks } from '../candidates/candidate';
import { type Observe, reportViolations } from './load';

const KEY = 'held';

/** Holds the lock of the waiters. */
export async function holder(locks: Locks): Promise<Observe> {
  await (locks.keep ?? locks.acquire)(KEY);
  return reportViolations(() => 0);
}

/** Waiters for a lock that is never released. */
export function waiters(locks: Locks, { callers }: { readonly callers: number }): Observe {
  let enteredAt = 0;
  for (let i = 0; i < callers; i++) void locks.acquire(KEY).then(() => enteredAt++);
  return reportViolations(() => enteredAt);
}
