/** A child process of the bench: one process of a candidate, a proxy that delays, or one that keeps a CPU awake. */

import { constants, setPriority } from 'node:os';
import { FaultyProxy } from '../../support/proxy';
import type { Address, OpenOptions } from './candidate';
import { candidateNamed } from './libraries';
import { begin, type LoadSpec, type Observation, type Observe, observe } from './loads';
import { countVisits, type Visits } from './visits';

/** Passed in the environment of the process. */
export type Role =
  | (OpenOptions & { readonly role: 'candidate'; readonly id: string })
  | { readonly role: 'proxy'; readonly address: Address; readonly delay: number }
  | { readonly role: 'awake' };

/** To a candidate: start a load, observe it for some ms, or count the functions that a cycle visits. */
export type Request =
  | LoadSpec
  | { readonly observe: number; readonly isWarmUp?: boolean }
  | { readonly count: 'visits' };

/** It has started, or has executed a request. */
export interface Reply {
  readonly fault?: string;
  readonly proxied?: Address;
  readonly observation?: Observation;
  readonly visits?: Visits;
}

function reply(message: Reply): void {
  process.send?.(message);
}

async function candidate({ id, ...options }: Role & { role: 'candidate' }): Promise<void> {
  const locks = await candidateNamed(id).open(options);
  let load: Observe | undefined;
  const execute = async (request: Request): Promise<Reply> => {
    if ('count' in request) return { visits: await countVisits(locks, options.library) };
    if ('load' in request) {
      load = await begin(locks, request);
      return {};
    }
    if (load === undefined) throw new Error('there is no load');
    return { observation: await observe(load, request.observe, request.isWarmUp) };
  };
  process.on('message', (request: Request) => void execute(request).then(reply, fail));
  reply({});
}

async function proxy({ address, delay }: Role & { role: 'proxy' }): Promise<void> {
  const started = await FaultyProxy.start(address);
  started.delay = delay;
  reply({ proxied: started.address });
}

/**
 * A process of the lowest priority that is always ready to run: a sleeping CPU takes longer to wake up than a round trip to
 * Redis on loopback takes, and whether it sleeps is random. In slices of 50 ms, so that `disconnect` is processed.
 */
function keepAwake(): void {
  setPriority(constants.priority.PRIORITY_LOW);
  const spin = () => {
    const end = performance.now() + 50;
    while (performance.now() < end);
    setImmediate(spin);
  };
  spin();
}

function fail(error: unknown): void {
  const fault = error instanceof Error ? error.message : String(error);
  process.send?.({ fault } satisfies Reply, () => process.exit(1));
}

async function main(role: Role): Promise<void> {
  if (role.role === 'candidate') await candidate(role);
  else if (role.role === 'proxy') await proxy(role);
  else keepAwake();
}

process.on('unhandledRejection', fail);
process.on('uncaughtException', fail);
process.on('disconnect', () => process.exit()); // ends with the bench, for any reason
process.on('SIGINT', () => {}); // Ctrl-C reaches the whole process group; the bench handles it
void main(JSON.parse(process.env.BENCH_ROLE as string)).catch(fail);
