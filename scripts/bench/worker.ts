/** A worker process of the bench in Node: opens one candidate, starts a load on it, and observes the load on request. */

import { nodeCandidate } from './candidates';
import type { OpenOptions } from './candidates/candidate';
import { begin, type LoadSpec } from './loads';
import { type Observation, type Observe, observe } from './loads/load';
import type { FrameNode } from './profile/frame-tree';
import { profileAllocations, profileCpu } from './profile/recording';

/** Passed in the environment of the process. */
export interface WorkerOptions extends OpenOptions {
  readonly candidate: string;
}

/** Message from the bench to a worker: start a load, or observe it for some ms, with a profiler of V8 where one is named. */
export type WorkerRequest =
  | LoadSpec
  | { readonly observe: number; readonly isWarmUp?: boolean; readonly profile?: ProfileKind };

export type ProfileKind = keyof typeof profilers;

/** Message from a worker: it has started, or has executed a request. */
export type WorkerReply =
  | { readonly observation?: Observation; readonly profile?: FrameNode }
  | { readonly fault: string };

const profilers = { cpu: profileCpu, allocations: profileAllocations };

const options = JSON.parse(process.env.BENCH_WORKER ?? '{}') as WorkerOptions;
const opened = nodeCandidate(options.candidate).open(options);
let load: Observe | undefined;

async function execute(request: WorkerRequest): Promise<void> {
  if ('load' in request) {
    load = await begin(await opened, request);
    reply({});
  } else if (load !== undefined) {
    const run = observe.bind(undefined, load, request.observe, request.isWarmUp);
    if (request.profile === undefined) return reply({ observation: await run() });
    const { result, root } = await profilers[request.profile](run);
    reply({ observation: result, profile: root });
  }
}

function reply(message: WorkerReply): void {
  process.send?.(message);
}

function fail(error: unknown): void {
  process.send?.({ fault: error instanceof Error ? error.message : String(error) } satisfies WorkerReply, () =>
    process.exit(1),
  );
}

process.on('unhandledRejection', fail);
process.on('uncaughtException', fail);
process.on('disconnect', () => process.exit()); // ends with the bench, for any reason
process.on('SIGINT', () => {}); // Ctrl-C reaches the whole process group; the bench handles it
process.on('message', (request: WorkerRequest) => void execute(request).catch(fail));
opened.then(() => reply({}), fail);
