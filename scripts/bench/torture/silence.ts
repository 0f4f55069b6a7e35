// A holder of each library, and a Redis that is frozen under it: when does the library say by itself that the lease is
// lost? Started by main.ts in a process of its own for each library.

import { once } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Address } from '../candidate';
import { LIBRARIES } from './libraries';
import type { Held } from './library';
import { Pair } from './pair';

/** ms for which Redis is frozen, several leases; and for which a holder is watched after that. */
const FROZEN = 8_000;
const AFTER = 4_000;
const EVERY = 20;

export interface Silence {
  readonly library: string;
  /** ms from the freeze to the signal; `undefined`: there was none. */
  readonly told: number | undefined;
  /** Redis had not run again by then. */
  readonly isInTime: boolean;
}

export function answerOf({ told, isInTime }: Silence): string {
  if (told === undefined) return 'never';
  const seconds = `${(told / 1_000).toFixed(1)} s`;
  return isInTime ? `after ${seconds}` : `after ${seconds}, when Redis ran again`;
}

export async function watchSilence(library: string): Promise<Silence> {
  const pair = await Pair.start();
  const { server } = pair;
  try {
    const lease = (await (await LIBRARIES[library]?.open(server.address as Address, []))?.lock('a')) as Held;
    await sleep(1_500); // it is renewed meanwhile
    if (lease.isTold?.()) throw new Error(`${library} lost its lease before Redis was frozen`);
    server.kill('SIGSTOP');
    const frozen = performance.now();
    const watched = () => performance.now() - frozen;
    const toldWithin = async (ms: number): Promise<boolean> => {
      while (!lease.isTold?.() && watched() < ms) await sleep(EVERY);
      return lease.isTold?.() === true;
    };
    const isInTime = await toldWithin(FROZEN);
    if (isInTime) return { library, told: watched(), isInTime };
    server.kill('SIGCONT');
    return { library, told: (await toldWithin(FROZEN + AFTER)) ? watched() : undefined, isInTime };
  } finally {
    await pair.stop();
  }
}

async function main(): Promise<void> {
  process.on('unhandledRejection', () => undefined);
  process.on('uncaughtException', () => undefined); // redis-semaphore throws a loss that nobody handles
  process.send?.(await watchSilence(process.argv[2] ?? ''));
  await once(process, 'disconnect');
  process.exit();
}

if (require.main === module) {
  void main().catch((error: unknown) => {
    console.error(error);
    process.exit(1);
  });
}
