import { Session } from 'node:inspector/promises';
import { dirname } from 'node:path';
import type { Locks } from './candidate';

/** How many functions of the library an uncontended call visits; and how many it may. */
export interface Visits {
  readonly lock: number;
  readonly unlock: number;
}

export const MOST_VISITS: Visits = { lock: 60, unlock: 30 };

/** Cycles before the one that is counted: what happens once only is over then. */
const CYCLES_BEFORE = 20;

/** Counted by V8, in the process of a candidate. `library`: the entry file of the build. */
export async function countVisits(locks: Locks, library: string): Promise<Visits> {
  for (let i = 0; i < CYCLES_BEFORE; i++) await (await locks.acquire('counted'))();
  const session = new Session();
  session.connect();
  await session.post('Profiler.enable');
  await session.post('Profiler.startPreciseCoverage', { callCount: true, detailed: false });
  const visited = async (): Promise<number> => {
    const { result } = await session.post('Profiler.takePreciseCoverage');
    const own = result.filter(({ url }) => url.includes(dirname(library)));
    return own.flatMap(({ functions }) => functions.filter(({ ranges: [range] }) => range && range.count > 0)).length;
  };
  await visited();
  const release = await locks.acquire('counted');
  const lock = await visited();
  await release();
  return { lock, unlock: await visited() };
}
