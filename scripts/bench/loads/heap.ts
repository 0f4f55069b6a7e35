import { setImmediate as nextTurn } from 'node:timers/promises';
import type { Locks } from '../candidates/candidate';
import type { Observe } from './load';

/** Keeps the measured objects reachable until the process ends. */
const kept: unknown[] = [];

/** bytes of heap for each lock that is idle after use, each held lock, and each waiter (all of them on one held lock). */
export function heap(locks: Locks, { locks: count }: { readonly locks: number }): Observe {
  const { object } = locks;
  const use = async (names: readonly string[]) => {
    const releases = await Promise.all(names.map((key) => locks.acquire(key)));
    await Promise.all(releases.map((release) => release()));
  };
  return async () => {
    // The names belong to the caller: they are allocated first and are not measured.
    const [warm, idle, held, waiting] = ['warm', 'idle', 'held', 'waiting'].map((kind) =>
      Array.from({ length: count }, (_, i) => `${kind}-${i}`),
    ) as [string[], string[], string[], string[]];
    await use(warm);
    await use(warm);
    const bytes: Record<string, number> = {};
    if (object !== undefined) {
      bytes.idle = await heapFor(count, async () => {
        kept.push(idle.map((key) => object(key)));
        await use(idle);
      });
    }
    bytes.held = await heapFor(count, async () => {
      kept.push(await Promise.all(held.map((key) => locks.acquire(key))));
    });
    bytes.waiting = await heapFor(count, async () => {
      for (let i = 0; i < waiting.length; i++) void locks.acquire(held[0] as string);
    });
    return { heap: bytes };
  };
}

async function heapFor(count: number, make: () => Promise<void>): Promise<number> {
  const before = await heapUsed();
  await make();
  return Math.max(0, (await heapUsed()) - before) / count;
}

async function heapUsed(): Promise<number> {
  // Timers, finalizers and settled promises free their memory only after a turn of the event loop.
  for (let i = 0; i < 4; i++) {
    await nextTurn();
    global.gc?.();
  }
  return process.memoryUsage().heapUsed;
}
