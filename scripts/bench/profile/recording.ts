import { Session } from 'node:inspector/promises';
import type { FrameNode } from './frame-tree';

// Runs in the worker processes.

/**
 * µs between two samples. Each sample interrupts the process, and what it does in the kernel; more of them would change
 * what they measure.
 */
const CPU_INTERVAL = 200;

/** Mean bytes between two samples of allocations. */
const ALLOCATION_INTERVAL = 32_768;

/** V8's CPU profiler: `self` counts samples. */
export async function profileCpu<T>(run: () => Promise<T>): Promise<{ result: T; root: FrameNode }> {
  const session = new Session();
  session.connect();
  await session.post('Profiler.enable');
  await session.post('Profiler.setSamplingInterval', { interval: CPU_INTERVAL });
  await session.post('Profiler.start');
  const result = await run();
  const { profile } = await session.post('Profiler.stop');
  session.disconnect();
  const nodes = new Map(profile.nodes.map((node) => [node.id, node]));
  const toTree = (id: number): FrameNode => {
    const { callFrame, hitCount = 0, children = [] } = nodes.get(id) as (typeof profile.nodes)[number];
    return { frame: frameOf(callFrame), self: hitCount, callees: children.map(toTree) };
  };
  return { result, root: toTree(profile.nodes[0]?.id as number) };
}

/** V8's sampling heap profiler: `self` is the bytes that a function allocated, also those that were collected since. */
export async function profileAllocations<T>(run: () => Promise<T>): Promise<{ result: T; root: FrameNode }> {
  const session = new Session();
  session.connect();
  await session.post('HeapProfiler.startSampling', {
    samplingInterval: ALLOCATION_INTERVAL,
    includeObjectsCollectedByMajorGC: true,
    includeObjectsCollectedByMinorGC: true,
  } as { samplingInterval: number }); // the types do not know the others yet
  const result = await run();
  const { profile } = await session.post('HeapProfiler.stopSampling');
  session.disconnect();
  const toTree = ({ callFrame, selfSize, children }: typeof profile.head): FrameNode => ({
    frame: frameOf(callFrame),
    self: selfSize,
    callees: children.map(toTree),
  });
  return { result, root: toTree(profile.head) };
}

function frameOf({ functionName, url, lineNumber, columnNumber }: FrameNode['frame']): FrameNode['frame'] {
  return { functionName, url, lineNumber, columnNumber };
}
