import { setImmediate as nextTurn } from 'node:timers/promises';
import type { Locks } from '../candidates/candidate';
import type { Observe } from './load';

/** What is weighed stays reachable until the process ends. */
const kept: unknown[] = [];

/** bytes of heap for each lock that was used and is idle, that is held, and that is waited for (all behind one holder). */
export function heap(locks: Locks, { locks: count }: { readonly locks: number }): Observe {
  const { object } = locks;
  const use = async (names: readonly string[]) => {
    const releases = await Promise.all(names.map((key) => locks.acquire(key)));
    await Promise.all(releases.map((release) => release()));
  };
  return async () => {
    // The names are the caller's: they are there before, and are not weighed.
    const [warm, idle, held, waiting] = ['warm', 'idle', 'held', 'waiting'].map((kind) =>
      Array.from({ length: count }, (_, i) => `${kind}-${i}`),
    ) as [string[], string[], string[], string[]];
    await use(warm);
    await use(warm);
    const weighed: Record<string, number> = {};
    if (object !== undefined) {
      weighed.idle = await weigh(count, async () => {
        kept.push(idle.map((key) => object(key)));
        await use(idle);
      });
    }
    weighed.held = await weigh(count, async () => {
      kept.push(await Promise.all(held.map((key) => locks.acquire(key))));
    });
    weighed.waiting = await weigh(count, async () => {
      for (let i = 0; i < waiting.length; i++) void locks.acquire(held[0] as string);
    });
    return { heap: weighed };
  };
}

async function weigh(count: number, make: () => Promise<void>): Promise<number> {
  const before = await heapUsed();
  await make();
  return Math.max(0, (await heapUsed()) - before) / count;
}

async function heapUsed(): Promise<number> {
  // What hangs on timers, finalizers and settled promises goes only after a turn.
  for (let i = 0; i < 4; i++) {
    await nextTurn();
    global.gc?.();
  }
  return process.memoryUsage().heapUsed;
}
