import type { Locks } from '../candidates/candidate';
import { type Observe, reportViolations } from './load';

/** Locks that are held for the whole window and renewed by the library. */
export async function leases(locks: Locks, { keys }: { readonly keys: number }): Promise<Observe> {
  const keep = locks.keep;
  if (keep === undefined) throw new Error('it cannot renew a lock');
  await Promise.all(Array.from({ length: keys }, (_, i) => keep(`lease-${i}`)));
  return reportViolations(() => 0);
}
