import type { Locks } from '../candidates/candidate';
import { type Observe, quietly } from './load';

const KEY = 'held';

/** Holds the lock that the others wait for. */
export async function holder(locks: Locks): Promise<Observe> {
  await (locks.keep ?? locks.acquire)(KEY);
  return quietly(() => 0);
}

/** Waiters for a lock that is never released. */
export function waiters(locks: Locks, { callers }: { readonly callers: number }): Observe {
  let entered = 0;
  for (let i = 0; i < callers; i++) void locks.acquire(KEY).then(() => entered++);
  return quietly(() => entered);
}
