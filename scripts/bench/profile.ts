import { Session } from 'node:inspector/promises';
import { dirname } from 'node:path';
import type { Locks } from './candidate';

// Runs in the processes of the candidates.

async function withSession<T>(use: (session: Session) => Promise<T>): Promise<T> {
  const session = new Session();
  session.connect();
  await session.post('Profiler.enable');
  try {
    return await use(session);
  } finally {
    session.disconnect();
  }
}

/** How many functions of the library an uncontended cycle visits. */
export interface FunctionCounts {
  readonly lock: number;
  readonly unlock: number;
}

/** Cycles before the one that is counted: what happens once only is over then. */
const CYCLES_BEFORE = 20;

/** Counted by V8. `library`: the entry file of the build. */
export async function functionCounts(locks: Locks, library: string): Promise<FunctionCounts> {
  for (let i = 0; i < CYCLES_BEFORE; i++) await (await locks.acquire('counted'))();
  return withSession(async (session) => {
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
  });
}

/** µs between two samples. Each interrupts the process: more of them would change what they measure. */
const CPU_INTERVAL = 200;

/** A profile of V8's, as the developer tools of browsers read it. */
export function cpuProfile(run: () => Promise<unknown>): Promise<string> {
  return withSession(async (session) => {
    await session.post('Profiler.setSamplingInterval', { interval: CPU_INTERVAL });
    await session.post('Profiler.start');
    await run();
    return JSON.stringify((await session.post('Profiler.stop')).profile);
  });
}
