import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { TraceEvent } from '../../support/simulation/trace';
import { moduleText } from './modules';
import { runTlc } from './tlc';

/** What happened to one lock in one simulation. */
export interface NamedTrace {
  readonly name: string;
  readonly events: readonly TraceEvent[];
}

/** Events of one run of TLC. Its start takes as long as some thousands of them. */
const BATCH = 100_000;

/** The traces that the specification does not allow, each with the event after which nothing goes on, and what TLC says. */
export async function refusedTraces(traces: readonly NamedTrace[]): Promise<string[]> {
  const refused: string[] = [];
  for (const batch of batches(traces)) {
    const text = await refusedOf(batch);
    if (text !== undefined) refused.push(text);
  }
  return refused;
}

function batches(traces: readonly NamedTrace[]): NamedTrace[][] {
  const all: NamedTrace[][] = [];
  let size = BATCH;
  for (const trace of traces) {
    if (size + trace.events.length > BATCH) {
      all.push([]);
      size = 0;
    }
    all.at(-1)?.push(trace);
    size += trace.events.length;
  }
  return all;
}

/** TLC ends at the first one of a batch. */
async function refusedOf(batch: readonly NamedTrace[]): Promise<string | undefined> {
  const events = `---- MODULE Traces ----
Traces == <<${batch.map(({ events }) => `<<${events.map(literal).join(',\n')}>>`).join(',\n')}>>
====
`;
  const configuration = `SPECIFICATION TraceSpec
CONSTANTS
  Process = {1, 2, 3, 4}
  Ttl = 0
  Margin = 0
  Owners = 0
  InFlight = 0
  Travels = FALSE
INVARIANT KeptUnlessLost
INVARIANT ExclusionUnlessLost`;
  const trace = readFileSync(join(__dirname, 'Trace.tla'), 'utf8');
  const modules = { Lease: moduleText('Lease'), Trace: trace, Traces: events };
  const { refuted, output } = await runTlc({ modules, main: 'Trace', configuration, checksDeadlock: true });
  if (refuted === undefined) return undefined;
  const last = (name: string) => [...output.matchAll(new RegExp(`/\\\\ ${name} = (.*)`, 'g'))].at(-1)?.[1];
  const which = batch[Number(last('trace')) - 1];
  const at = Number(last('at'));
  const around = which?.events.slice(Math.max(0, at - 6), at).map((event) => `  ${JSON.stringify(event)}`) ?? [];
  const what = refuted === 'Deadlock' ? 'the specification does not allow the last event' : `${refuted} does not hold`;
  return `${which?.name}, event ${at}: ${what}\n${around.join('\n')}`;
}

/** A lock that is free has no owner. */
function literal(event: TraceEvent): string {
  const parts = event.map((part) => (typeof part === 'object' ? `<<${part}>>` : JSON.stringify(part ?? null)));
  return `<<${parts.join(',').replace('null', '<<>>')}>>`;
}
