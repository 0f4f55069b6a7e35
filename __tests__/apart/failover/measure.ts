import { join } from 'node:path';
import { afterAll, expect } from '@jest/globals';
import Table from 'cli-table3';
import { machineDelay } from '../../support/machine-delay';
import type { Node } from '../../support/node';
import { until } from '../../support/until';
import { type Load, loads, type Outcome } from './load';
import type { Topology } from './topologies';

/** ms; a busy lock pauses for less, in every fault that is made here. */
const LONGEST_PAUSE = 30_000;

/** ms between the fault and the end of the run, after the load has recovered. */
const AFTERWARDS = 1_000;

/** ms; what is given up while Redis is away is removed in the background, or ends with its ttl. */
const CLEAN_WITHIN = 40_000;

/** What a run of all loads must keep. */
export interface Bounds {
  /** ms for which two callers may rely on one lock; 0 where nothing is forgotten. */
  readonly double: number;
  /** ms for which a call may wait. */
  readonly wait?: number;
  /** Calls may reject: the server refuses them. */
  readonly mayReject?: boolean;
  /** Leases may be lost: the server forgets them. */
  readonly mayLose?: boolean;
  /** `double` with `minReplicas`; by default the same: a replaced master still renews leases, and no replica is asked. */
  readonly replicated?: number;
}

/**
 * Runs all loads on the clients, makes the fault, and waits until all of them go on. `nodes` are those that may
 * have keys in the end: all but dead ones. `make` may have the loads ask for another lock, in the middle of the fault.
 */
export async function measure(
  fault: string,
  topology: Topology,
  bounds: Bounds,
  make: (callLate: () => void) => Promise<void>,
  nodes: readonly Node[] = topology.nodes,
): Promise<void> {
  const all = loads(topology);
  try {
    await Promise.all(all.map((load) => load.start()));
    for (const load of all) load.faultBegins();
    await make(() => all.map((load) => load.callLate()));
    await Promise.all(all.map((load) => load.recovered()));
    await new Promise((resolve) => setTimeout(resolve, AFTERWARDS));
    await Promise.all(all.map((load) => load.stop()));
    await Promise.all(all.map((load) => finish(`${topology.name}: ${fault}`, load, bounds, nodes)));
  } finally {
    await Promise.all(all.map((load) => load.abandon()));
  }
}

async function finish(fault: string, load: Load, bounds: Bounds, nodes: readonly Node[]): Promise<void> {
  const isClean = async () => (await keysOf(load.id, nodes))?.length === 0;
  const { RECORDS } = process.env;
  if (RECORDS !== undefined)
    load.keepRecords(join(RECORDS, ...[fault, load.name].map((name) => name.replaceAll(/\W+/g, '-'))));
  await until(isClean, { within: CLEAN_WITHIN }).catch(() => undefined);
  const left = (await keysOf(load.id, nodes)) ?? ['a node does not answer'];
  const outcome = load.outcome(left);
  rows.push({ fault, load: load.name, outcome });
  const delay = machineDelay();
  const double = load.isReplicated ? (bounds.replicated ?? bounds.double) : bounds.double;
  const { wait = Number.POSITIVE_INFINITY, mayLose = double > 0 } = bounds;
  const kept = {
    'nothing is left': left,
    'goes on in time': outcome.pause < LONGEST_PAUSE + delay,
    'double holding': outcome.double <= double + delay || outcome.double,
    'longest wait': outcome.wait <= wait + delay || outcome.wait,
    'leases lost': mayLose ? 0 : outcome.lost,
    'calls rejected': bounds.mayReject ? [] : outcome.rejected,
  };
  expect({ load: load.name, ...kept }).toEqual({
    load: load.name,
    'nothing is left': [],
    'goes on in time': true,
    'double holding': true,
    'longest wait': true,
    'leases lost': 0,
    'calls rejected': [],
  });
}

/** `undefined` when a node does not say. A node that follows a new master may still have what that one does not. */
async function keysOf(id: string, nodes: readonly Node[]): Promise<string[] | undefined> {
  try {
    return (await Promise.all(nodes.map((node) => node.send('KEYS', `*${id}*`) as Promise<string[]>))).flat();
  } catch {
    return undefined;
  }
}

const HEAD = [
  'fault',
  'load',
  'entries',
  'longest pause',
  'longest wait',
  'double holding',
  'lost',
  'learned after',
  'lock rejected',
  'unlock rejected',
  'keys left',
];

const rows: { readonly fault: string; readonly load: string; readonly outcome: Outcome }[] = [];

/** Printed at the end of the file's tests. */
afterAll(() => {
  const cells = rows.splice(0).map(({ fault, load, outcome }) => {
    const { entries, pause, wait, double, lost, lasting, learned, rejected, unlocks, left } = outcome;
    const learnedAfter = learned === undefined ? '-' : `${learned} ms`;
    const times = [`${pause} ms`, `${wait} ms`, `${double} ms`];
    return [
      fault,
      load,
      entries,
      ...times,
      `${lost} of ${lasting}`,
      learnedAfter,
      rejected.length,
      unlocks,
      left.length,
    ];
  });
  if (cells.length === 0) return;
  const table = new Table({ head: HEAD, style: { head: [], border: [], compact: true } });
  table.push(...cells);
  process.stdout.write(`${table}\n`);
});
