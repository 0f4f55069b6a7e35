/** A child process of the bench: one process of a candidate. */

import type { OpenOptions } from './candidate';
import { candidateNamed } from './libraries';
import { begin, type LoadSpec, type Observation, type Observe, observe } from './loads';
import { countVisits, type Visits } from './visits';

/** Passed in the environment of the process. */
export type Opening = OpenOptions & { readonly id: string };

/** Start a load, observe it for some ms, or count the functions that a cycle visits. */
export type Request =
  | LoadSpec
  | { readonly observe: number; readonly isWarmUp?: boolean }
  | { readonly count: 'visits' };

/** It has started, or has executed a request. */
export interface Reply {
  readonly fault?: string;
  readonly observation?: Observation;
  readonly visits?: Visits;
}

const reply = (message: Reply) => void process.send?.(message);

function fail(error: unknown): void {
  const fault = error instanceof Error ? error.message : String(error);
  process.send?.({ fault } satisfies Reply, () => process.exit(1));
}

async function main({ id, ...options }: Opening): Promise<void> {
  const locks = await candidateNamed(id).open(options);
  let load: Observe | undefined;
  const execute = async (request: Request): Promise<Reply> => {
    if ('count' in request) return { visits: await countVisits(locks, options.library) };
    if ('observe' in request) {
      if (load === undefined) throw new Error('there is no load');
      return { observation: await observe(load, request.observe, request.isWarmUp) };
    }
    load = await begin(locks, request);
    return {};
  };
  process.on('message', (request: Request) => void execute(request).then(reply, fail));
  reply({});
}

process.on('unhandledRejection', fail);
process.on('uncaughtException', fail);
process.on('disconnect', () => process.exit()); // ends with the bench, for any reason
process.on('SIGINT', () => {}); // Ctrl-C reaches the whole process group; the bench handles it
void main(JSON.parse(process.env.BENCH_CANDIDATE as string)).catch(fail);
