import { afterAll, expect } from '@jest/globals';
import Table from 'cli-table3';
import type { RedisClient } from '../../lib';
import { machineDelay } from '../support/machine-delay';
import type { Node } from '../support/node';
import { until } from '../support/until';
import { loads, type Outcome } from './load';

/** ms; a busy lock pauses for less, in every fault that is made here. */
const LONGEST_PAUSE = 30_000;

/** ms between the fault and the end of the run, after the load has recovered. */
const AFTERWARDS = 1_000;

const rows: { readonly fault: string; readonly outcome: Outcome }[] = [];

afterAll(() => {
  const head = [
    'fault',
    'lock type',
    'entries',
    'longest pause',
    'double holding',
    'lost',
    'learned after',
    'rejected',
  ];
  const table = new Table({ head, style: { head: [], border: [] } });
  for (const { fault, outcome } of rows.splice(0)) {
    const { lockType, entries, pause, double, lost, learned, rejected } = outcome;
    table.push([
      fault,
      lockType,
      entries,
      `${pause} ms`,
      `${double} ms`,
      `${lost} of 2`,
      learned === undefined ? '-' : `${learned} ms`,
      rejected,
    ]);
  }
  process.stdout.write(`${table}\n`);
});

/** What a run of all lock types must keep. */
export interface Bounds {
  /** ms for which two callers may rely on one lock; 0 where nothing is forgotten. */
  readonly double: number;
}

/**
 * Runs all lock types on `clients`, makes the fault, and waits until all of them go on. `nodes` are those that may have
 * keys in the end.
 */
export async function measure(
  fault: string,
  clients: readonly RedisClient[],
  tag: string,
  bounds: Bounds,
  make: () => Promise<void>,
  nodes: readonly Node[],
): Promise<void> {
  const all = loads(clients, tag);
  await Promise.all(all.map((load) => load.start()));
  for (const load of all) load.faultBegins();
  await make();
  await Promise.all(all.map((load) => load.recovered()));
  await new Promise((resolve) => setTimeout(resolve, AFTERWARDS));
  await Promise.all(all.map((load) => load.stop()));
  for (const load of all) {
    // What was given up while Redis was away is removed in the background, or ends with its ttl.
    const isClean = async () => (await keysOf(load.id, nodes)).length === 0;
    await until(isClean, { within: 30_000 }).catch(() => undefined);
    const left = await keysOf(load.id, nodes);
    const outcome = load.outcome(left);
    rows.push({ fault, outcome });
    expect({ lockType: load.lockType, left }).toEqual({ lockType: load.lockType, left: [] });
  }
  for (const { outcome } of rows.filter((row) => row.fault === fault)) {
    expect(outcome.pause).toBeLessThan(LONGEST_PAUSE + machineDelay());
    if (outcome.double > bounds.double + machineDelay())
      expect(outcome).toEqual({ double: `at most ${bounds.double} ms` });
  }
}

async function keysOf(id: string, nodes: readonly Node[]): Promise<string[]> {
  const found = await Promise.all(
    nodes.map((node) => node.send('KEYS', `*${id}*`).catch(() => []) as Promise<string[]>),
  );
  // A fencing counter or the like outlives its lock on purpose: there is none here.
  return found.flat();
}
