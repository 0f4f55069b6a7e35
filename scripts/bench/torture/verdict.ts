import { quantile } from 'simple-statistics';
import { judgeByBoth } from '../../../support/judge/both';
import { conflicts } from '../../../support/judge/exclusion';
import { leasesIn } from '../../../support/judge/leases';
import type { WorkerRecord } from '../../../support/judge/records';
import type { Inflicted } from './faults';
import { TTL } from './library';

/** What came of one library. Times in ms. */
export interface Verdict {
  readonly calls: number;
  readonly leases: number;
  /** How often a caller entered while the library told another one that it holds the lock; the longest such time. */
  readonly double: number;
  /** The same while leases were there that a failover may have taken. Not in the other numbers. */
  readonly failedOver: number;
  readonly longest: number;
  /** Leases that another caller had joined, and of which the library never said a word, not even at the release. */
  readonly untold: number;
  readonly porcupineRejects: readonly string[];
  /** Calls that did not settle. */
  readonly pending: number;
  readonly median: number;
  readonly p99: number;
}

export function verdictOf(
  processes: readonly (readonly WorkerRecord[])[],
  faults: readonly Inflicted[],
  html: string,
): Verdict {
  const records = processes.flat();
  const called = new Map(records.flatMap((one) => (one.event === 'called' ? [[one.call, one.at] as const] : [])));
  const settled = new Map(records.flatMap((one) => (one.event === 'settled' ? [[one.call, one] as const] : [])));
  const waits = records.flatMap((one) =>
    one.event === 'granted' ? [one.sample.from - (called.get(one.call) ?? one.sample.from)] : [],
  );
  const told = new Set(records.flatMap((one) => ('sample' in one && one.sample.remaining <= 0 ? [one.call] : [])));
  // What was read, and not what was promised for later.
  const stays = leasesIn(processes).flatMap(({ call, key, valid }) =>
    valid.map(({ from, to }) => ({ call, key, from, to })),
  );
  const failovers = faults.filter(({ kind }) => kind === 'failover');
  const isFailedOver = (at: number) => failovers.some(({ from, to }) => at >= from && at <= to + 2 * TTL);
  const all = conflicts(stays);
  const overlaps = all.filter(({ entering }) => !isFailedOver(entering.from));
  const joined = new Set(overlaps.flatMap(({ others }) => others.map(({ call }) => call)));
  const isUntold = (call: string) => !told.has(call) && settled.get(call)?.outcome === 'unlocked';
  const at = (part: number) => (waits.length === 0 ? 0 : Math.round(quantile(waits, part)));
  return {
    calls: called.size,
    leases: waits.length,
    double: overlaps.length,
    failedOver: all.length - overlaps.length,
    longest: Math.round(Math.max(0, ...overlaps.map(({ together }) => together))),
    untold: [...joined].filter(isUntold).length,
    porcupineRejects: judgeByBoth(processes, html).porcupineKeys,
    pending: [...called.keys()].filter((call) => !settled.has(call)).length,
    median: at(0.5),
    p99: at(0.99),
  };
}
