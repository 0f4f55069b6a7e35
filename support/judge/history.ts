import type { Access } from './exclusion';
import type { WorkerRecord } from './records';

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
}

/**
 * What the processes wrote down, as operations. A lease begins between its call and its first reading. It ends at its
 * unlock, between call and answer; without an answer, or without an unlock, at any time after what it was promised last.
 * Calls that got no lease, or one that was over when they learnt of it, are left out: if one took the lock without knowing,
 * its end may follow at once.
 */
export function historyOf(processes: readonly (readonly WorkerRecord[])[]): Step[] {
  const known = processes.flatMap(leasesIn);
  const last = Math.max(0, ...known.flatMap(({ acquiredBy, relied }) => [acquiredBy, relied])) + 1;
  return known.flatMap((lease) => stepsOf(lease, last));
}

function leasesIn(records: readonly WorkerRecord[]): Known[] {
  const calls = new Map<string, Called>();
  const leases = new Map<string, Known>();
  for (const record of records) {
    if (record.event === 'called') calls.set(record.call, record);
    if (!('call' in record)) continue;
    const called = calls.get(record.call);
    if (record.event === 'granted' && called !== undefined) {
      const acquiredBy = record.sample.to;
      const open = { wasValid: false, endedBy: Number.POSITIVE_INFINITY, toldAt: undefined };
      leases.set(record.call, { called, token: record.token, acquiredBy, relied: called.at, ...open });
    }
    const lease = leases.get(record.call);
    if (lease !== undefined) learn(lease, record);
  }
  return [...leases.values()].filter(({ wasValid }) => wasValid);
}

function learn(lease: Known, record: WorkerRecord): void {
  if ('sample' in record) {
    const { from, to, remaining } = record.sample;
    lease.wasValid ||= from + remaining > to;
    lease.relied = remaining > 0 ? from + remaining : Math.min(lease.relied, from);
  }
  if (record.event === 'unlocking' && record.sample.remaining > 0) {
    // Nobody relies on it any more, but it is kept until its `minHold` ends.
    const { at, minHold } = lease.called;
    lease.relied = Math.max(record.sample.from, minHold === undefined ? 0 : at + minHold - READING);
  }
  if (record.event === 'settled' && record.outcome === 'unlocked' && lease.called.minHold === undefined)
    lease.endedBy = record.at;
  if (record.event === 'lost') {
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
