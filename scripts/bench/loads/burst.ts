import type { Locks } from '../candidates/candidate';
import type { Observe } from './load';

/** Keeps the measured objects reachable until the process ends. */
const kept: unknown[] = [];

/** Acquisitions of as many keys, all requested at once. Each window has new keys. bytes of heap for each. */
export function burst(locks: Locks, { locks: count }: { readonly locks: number }): Observe {
  let window = 0;
  return async () => {
    const names = Array.from({ length: count }, (_, i) => `burst-${window}-${i}`);
    window++;
    global.gc?.();
    const before = process.memoryUsage().heapUsed;
    const releases = await Promise.all(names.map((key) => locks.acquire(key)));
    const after = process.memoryUsage().heapUsed;
    kept.push(releases);
    global.gc?.();
    const left = process.memoryUsage().heapUsed;
    return { heap: { rightAfter: (after - before) / count, collected: (left - before) / count } };
  };
}
