import type { Sample, WorkerRecord } from '../records';

/** A span of time, from a moment at which the process read that the lease is valid to another one. */
export interface Span {
  readonly from: number;
  to: number;
}

/** What one process could believe of one lease. */
export interface JudgedLease {
  readonly call: string;
  readonly key: string;
  readonly what: string;
  readonly token: number | undefined;
  /** It was valid throughout each of them; in between it read that it was not, or not confirmed. */
  readonly valid: Span[];
  /** Until when `remaining` promised it would be valid, unless the process itself gave it up earlier. */
  promisedUntil: number;
  /** The process stopped relying on it at this time. */
  givenUpAt: number;
  loss: { readonly reason: string; readonly at: number; readonly early: number } | undefined;
}

/** The leases of one process, from the records of its file. */
export function leasesOf(records: readonly WorkerRecord[]): JudgedLease[] {
  const calls = new Map<string, { key: string; what: string }>();
  const leases = new Map<string, JudgedLease>();
  for (const record of records) {
    if (record.event === 'called') calls.set(record.call, record);
    if (record.event === 'granted') {
      const { key, what } = calls.get(record.call) ?? { key: '?', what: '?' };
      const { call, token, sample } = record;
      const lease = { call, key, what, token, valid: [], promisedUntil: 0, givenUpAt: Infinity, loss: undefined };
      leases.set(call, lease);
      observe(lease, sample);
    }
    const lease = 'call' in record ? leases.get(record.call) : undefined;
    if (lease === undefined) continue;
    if (record.event === 'seen' || record.event === 'unlocking') observe(lease, record.sample);
    if (record.event === 'unlocking') giveUp(lease, record.sample.from);
    if (record.event === 'lost') lose(lease, record.reason, record.at);
  }
  return [...leases.values()];
}

function observe(lease: JudgedLease, { from, to, remaining }: Sample): void {
  const open = lease.valid.at(-1);
  if (remaining <= 0) {
    lease.promisedUntil = Math.min(lease.promisedUntil, from);
    return;
  }
  // Not open any more when it has read in between that it is not valid.
  if (open !== undefined && lease.promisedUntil > open.to) open.to = Math.max(open.to, from);
  else lease.valid.push({ from: to, to });
  lease.promisedUntil = from + remaining;
}

function lose(lease: JudgedLease, reason: string, at: number): void {
  // Its promise may have ended already: that is the ordinary end of a lease that is not renewed in time.
  lease.loss = { reason, at, early: Math.min(lease.promisedUntil, lease.givenUpAt) - at };
  giveUp(lease, at);
}

function giveUp(lease: JudgedLease, at: number): void {
  lease.givenUpAt = Math.min(lease.givenUpAt, at);
  lease.promisedUntil = Math.min(lease.promisedUntil, lease.givenUpAt);
}
