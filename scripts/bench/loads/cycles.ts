import type { Locks } from '../candidates/candidate';
import type { Observe } from './load';

/** Callers with one key each, which lock and unlock it in a loop, only while they are observed. */
export function cycles(locks: Locks, { callers }: { readonly callers: number }): Observe {
  const keys = Array.from({ length: callers }, (_, i) => `key-${i}`);
  return async (ms) => {
    const durations: number[] = [];
    const end = performance.now() + ms;
    const loop = async (key: string) => {
      for (let startedAt = performance.now(), endedAt = 0; startedAt < end; startedAt = endedAt) {
        const release = await locks.acquire(key);
        await release();
        endedAt = performance.now();
        durations.push(endedAt - startedAt);
      }
    };
    await Promise.all(keys.map(loop));
    return { durations };
  };
}
