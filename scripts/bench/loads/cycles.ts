import type { Locks } from '../candidates/candidate';
import type { Observe } from './load';

export interface CyclesSettings {
  readonly callers: number;
  /** Keys of each caller, which locks them in turn; 1 by default. No other caller has them. */
  readonly keysEach?: number;
  /** Locks that many of its keys at a time, all or nothing. By default one, as a lock of a single key. */
  readonly together?: number;
}

/** Callers that lock and unlock keys of their own in a loop, only while they are observed. */
export function cycles(locks: Locks, { callers, keysEach = 1, together }: CyclesSettings): Observe {
  const acquire = together === undefined ? locks.acquire : locks.acquireAll;
  if (acquire === undefined) throw new Error('it cannot lock several keys');
  const keysOf = Array.from({ length: callers }, (_, caller) =>
    Array.from({ length: keysEach }, (_, i) => {
      const name = `key-${caller * keysEach + i}`;
      return together === undefined ? name : Array.from({ length: together }, (_, part) => `${name}-${part}`);
    }),
  );
  /** Continues where the window before ended. */
  const cyclesOf = new Uint32Array(callers);

  return async (ms) => {
    const durations: number[] = [];
    const end = performance.now() + ms;
    const loop = async (keys: readonly (string | string[])[], caller: number) => {
      let cycle = cyclesOf[caller] ?? 0;
      for (let startedAt = performance.now(), endedAt = 0; startedAt < end; startedAt = endedAt) {
        const release = await acquire(keys[cycle++ % keys.length] as string & string[]);
        await release();
        endedAt = performance.now();
        durations.push(endedAt - startedAt);
      }
      cyclesOf[caller] = cycle;
    };
    await Promise.all(keysOf.map(loop));
    return { durations };
  };
}
