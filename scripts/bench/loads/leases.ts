import type { Locks } from '../candidates/candidate';
import { type Observe, quietly } from './load';

/** Locks that are held for long, and kept from expiring. */
export async function leases(locks: Locks, { keys }: { readonly keys: number }): Promise<Observe> {
  const keep = locks.keep;
  if (keep === undefined) throw new Error('It cannot keep a lock from expiring');
  await Promise.all(Array.from({ length: keys }, (_, i) => keep(`lease-${i}`)));
  return quietly(() => 0);
}
