/** A child process of the bench: one process of a candidate, which makes the calls that the bench sends. */

import type { Locks, OpenOptions } from './candidate';
import { candidateNamed } from './libraries';
import { begin, type LoadSpec, type Observe, observe } from './loads';
import { countVisits } from './visits';

let locks: Locks;
let load: Observe;

const calls = {
  async open(id: string, options: OpenOptions): Promise<void> {
    locks = await candidateNamed(id).open(options);
  },
  async begin(spec: LoadSpec): Promise<void> {
    load = await begin(locks, spec);
  },
  observe: (ms: number, isWarmUp: boolean) => observe(load, ms, isWarmUp),
  /** `library`: the entry file of the build. */
  countVisits: (library: string) => countVisits(locks, library),
};
export type Calls = typeof calls;

export type Call = { [Name in keyof Calls]: readonly [Name, ...Parameters<Calls[Name]>] }[keyof Calls];

async function make([name, ...args]: Call): Promise<void> {
  const result = await (calls[name] as (...args: unknown[]) => unknown)(...args);
  process.send?.({ result });
}

function fail(error: unknown): void {
  const fault = error instanceof Error ? error.message : String(error);
  process.send?.({ fault }, () => process.exit(1));
}

process.on('message', (call: Call) => void make(call).catch(fail));
process.on('unhandledRejection', fail);
process.on('uncaughtException', fail);
process.on('disconnect', () => process.exit()); // ends with the bench, for any reason
process.on('SIGINT', () => {}); // Ctrl-C reaches the whole process group; the bench handles it
