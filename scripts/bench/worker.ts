/** One process of a candidate: opens it, begins a load, and observes it whenever it is told to. */

import { candidate } from './candidates';
import type { OpenOptions } from './candidates/candidate';
import { begin, type LoadOrder } from './loads';
import { type Observation, type Observe, observe } from './loads/load';

/** In the environment of the process. */
export interface Engagement extends OpenOptions {
  readonly candidate: string;
}

/** What the bench sends. */
export type Order = LoadOrder | { readonly observe: number } | 'end';

/** What comes back: that it is ready for an order, or has carried it out. */
export type Report = { readonly observation?: Observation } | { readonly fault: string };

const engagement = JSON.parse(process.env.BENCH_ENGAGEMENT ?? '{}') as Engagement;
const opened = candidate(engagement.candidate).open(engagement);
let load: Observe | undefined;

async function carryOut(order: Order): Promise<void> {
  if (order === 'end') process.exit();
  if ('load' in order) {
    load = await begin(await opened, order);
    report({});
  } else if (load !== undefined) {
    report({ observation: await observe(load, order.observe) });
  }
}

function report(message: Report): void {
  process.send?.(message);
}

function fail(error: unknown): void {
  process.send?.({ fault: error instanceof Error ? error.message : String(error) } satisfies Report, () =>
    process.exit(1),
  );
}

process.on('unhandledRejection', fail);
process.on('uncaughtException', fail);
process.on('disconnect', () => process.exit()); // never outlive the bench, however it ended
process.on('SIGINT', () => {}); // Ctrl-C reaches the whole process group: the bench decides
process.on('message', (order: Order) => void carryOut(order).catch(fail));
opened.then(() => report({}), fail);
