import { existsSync, readFileSync } from 'node:fs';
import { Session } from 'node:inspector/promises';
import { SourceMap } from 'node:module';
import { dirname, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { type FrameNode, type Shares, sharesOf } from '../../support/cpu-shares';
import type { Locks } from './candidate';
import type { Observation } from './loads';

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

/**
 * µs between two samples. Each sample interrupts the process, and what it does in the kernel; more of them would change
 * what they measure.
 */
const CPU_INTERVAL = 200;

export async function sharesOfCpu(
  run: () => Promise<Observation>,
): Promise<{ observation: Observation; shares: Shares }> {
  return withSession(async (session) => {
    await session.post('Profiler.setSamplingInterval', { interval: CPU_INTERVAL });
    await session.post('Profiler.start');
    const observation = await run();
    const { profile } = await session.post('Profiler.stop');
    const nodes = new Map(profile.nodes.map((node) => [node.id, node]));
    const toTree = (id: number): FrameNode => {
      const { callFrame, hitCount = 0, children = [] } = nodes.get(id) as (typeof profile.nodes)[number];
      const source = sourceOf(callFrame.url, callFrame.lineNumber, callFrame.columnNumber);
      return { name: callFrame.functionName, source, self: hitCount, callees: children.map(toTree) };
    };
    return { observation, shares: sharesOf(toTree(profile.nodes[0]?.id as number)) };
  });
}

const maps = new Map<string, SourceMap | undefined>();

/** The path of the source, by the source map beside a file; of other files their own. */
function sourceOf(url: string, line: number, column: number): string {
  if (!url.startsWith('file:') && !url.startsWith('/')) return url;
  const file = url.startsWith('file:') ? fileURLToPath(url) : url;
  if (!maps.has(file) && existsSync(`${file}.map`))
    maps.set(file, new SourceMap(JSON.parse(readFileSync(`${file}.map`, 'utf8'))));
  const entry = maps.get(file)?.findEntry(line, column);
  return entry !== undefined && 'originalSource' in entry ? resolve(dirname(file), entry.originalSource) : file;
}
