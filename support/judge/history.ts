import type { Access } from './exclusion';
import type { WorkerRecord } from './records';
import { type Replaced, replacedIn } from './replaced';

/** One operation for Porcupine. Times in whole ns. */
export interface Step {
  readonly do: 'acquire' | 'end' | 'told';
  readonly key: string;
  readonly call: string;
  readonly access: Access;
  readonly permits: number;
  readonly token: number;
  readonly from: number;
  readonly to: number;
}

/** ms by which the end of a promise and a loss, or the end of a `minHold`, may differ: as for the soak's own judge. */
const READING = 2;

type Called = Extract<WorkerRecord, { event: 'called' }>;

/** What is known of one lease: it was acquired between two times, and it ends between two times. */
interface Known {
  readonly called: Called;
  readonly token: number | undefined;
  readonly acquiredBy: number;
  /** Until then its caller may rely on it. */
  relied: number;
  /** It was valid after it was read, at least once. */
  wasValid: boolean;
  endedBy: number;
  toldAt: number | undefined;
  /** It was taken by a call that replaces, or may have been. */
  readonly replaced: Replaced | undefined;
  isTaken: boolean;
}

/**
 * What the processes wrote down, as operations. A lease begins between its call and its first reading. It ends at its
 * unlock, between call and answer; without an answer, or without an unlock, at any time after what it was promised last.
 * Calls that got no lease, or one that was over when they learnt of it, are left out: if one took the lock without knowing,
 * its end may follow at once. A lease that was replaced is an operation like the others: it ends with its task, or when the
 * grace is over, and not when its caller is told.
 */
export function historyOf(processes: readonly (readonly WorkerRecord[])[]): Step[] {
  const replaced = replacedIn(processes);
  const known = processes.flatMap((records) => leasesIn(records, replaced));
  const last = Math.max(0, ...known.flatMap(({ acquiredBy, relied }) => [acquiredBy, relied])) + 1;
  return known.flatMap((lease) => stepsOf(lease, last));
}

function leasesIn(records: readonly WorkerRecord[], replaced: ReadonlyMap<string, Replaced>): Known[] {
  const calls = new Map<string, Called>();
  const leases = new Map<string, Known>();
  for (const record of records) {
    if (record.event === 'called') calls.set(record.call, record);
    if (!('call' in record)) continue;
    const called = calls.get(record.call);
    if (record.event === 'granted' && called !== undefined) {
      const acquiredBy = record.sample.to;
      const open = { wasValid: false, endedBy: Number.POSITIVE_INFINITY, toldAt: undefined, isTaken: false };
      const its = { called, token: record.token, acquiredBy, relied: called.at, replaced: replaced.get(record.call) };
      leases.set(record.call, { ...its, ...open });
    }
    const lease = leases.get(record.call);
    if (lease !== undefined) learn(lease, record);
  }
  for (const lease of leases.values()) {
    const { graceOver } = lease.replaced ?? {};
    if (graceOver === undefined) continue;
    lease.relied = Math.min(lease.relied, graceOver);
    lease.wasValid &&= lease.acquiredBy <= graceOver;
  }
  return [...leases.values()].filter(({ wasValid }) => wasValid);
}

function learn(lease: Known, record: WorkerRecord): void {
  if ('sample' in record) {
    const { from, to, remaining } = record.sample;
    lease.wasValid ||= from + remaining > to;
    if (lease.isTaken && lease.replaced?.isFollowed) lease.relied = from;
    else lease.relied = remaining > 0 ? from + remaining : Math.min(lease.relied, from);
  }
  if (record.event === 'unlocking' && record.sample.remaining > 0) {
    // Nobody relies on it any more, but it is kept until its `minHold` ends.
    const { at, minHold } = lease.called;
    const isKept = minHold !== undefined && lease.replaced === undefined;
    lease.relied = Math.max(record.sample.from, isKept ? at + minHold - READING : 0);
  }
  if (record.event === 'settled' && record.outcome === 'unlocked' && lease.called.minHold === undefined)
    lease.endedBy = record.at;
  // What a release finds is no news for its caller, who does not rely on it any more.
  if (record.event === 'lost' && record.early === undefined) {
    const isEarly = lease.relied > record.at;
    lease.isTaken =
      isEarly && (record.reason === 'stolen' || record.reason === 'expired') && lease.replaced?.isExplained === true;
    if (lease.isTaken) {
      lease.relied = record.at;
      return;
    }
    const isTold = record.reason === 'stolen' || record.reason === 'expired';
    if (isTold) lease.toldAt = record.at + READING;
    // One that is lost long before the time that it was promised is one too many.
    if (!isTold || lease.relied <= record.at + READING) lease.relied = Math.min(lease.relied, record.at);
  }
}

const ns = (ms: number) => Math.round(ms * 1e6);

function stepsOf({ called, token = 0, acquiredBy, relied, endedBy, toldAt }: Known, last: number): Step[] {
  const { key, call, access = 'exclusive', permits = 1 } = called;
  const step = (kind: Step['do'], from: number, to: number): Step => {
    const hasToken = kind === 'acquire' && (access === 'exclusive' || access === 'write');
    return { do: kind, key, call, access, permits, token: hasToken ? token : 0, from: ns(from), to: ns(to) };
  };
  return [
    step('acquire', called.at, acquiredBy),
    step('end', relied, Math.max(relied, Math.min(endedBy, last))),
    ...(toldAt === undefined ? [] : [step('told', toldAt, toldAt)]),
  ];
}
