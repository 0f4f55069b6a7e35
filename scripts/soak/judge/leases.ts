import type { Access, Sample, WorkerRecord } from '../records';

/** A span of time, from a moment at which the process read that the lease is valid to another one. */
export interface Span {
  readonly from: number;
  to: number;
  /** Until when `remaining` promised the last time that it would be valid, unless the process gave it up earlier. */
  promisedUntil: number;
}

/** What one process could believe of one lease. */
export interface JudgedLease {
  readonly call: string;
  readonly key: string;
  readonly access: Access;
  readonly what: string;
  readonly token: number | undefined;
  /** It was valid throughout each of them; in between it read that it was not, or not confirmed. */
  readonly valid: Span[];
  /** What it read last. */
  isValid: boolean;
  loss: { readonly reason: string; readonly at: number; readonly early: number } | undefined;
}

/** The leases of one process, from the records of its file. */
export function leasesOf(records: readonly WorkerRecord[]): JudgedLease[] {
  const calls = new Map<string, { key: string; access?: Access; what: string }>();
  const leases = new Map<string, JudgedLease>();
  for (const record of records) {
    if (record.event === 'called') calls.set(record.call, record);
    if (record.event === 'granted') {
      const { key, access = 'exclusive', what } = calls.get(record.call) ?? { key: '?', what: '?' };
      const { call, token, sample } = record;
      const lease = {
        call,
        key,
        access,
        what,
        token,
        valid: [],
        isValid: false,
        promisedUntil: 0,

        loss: undefined,
      };
      leases.set(call, lease);
      observe(lease, sample);
    }
    const lease = 'call' in record ? leases.get(record.call) : undefined;
    if (lease === undefined) continue;
    if (record.event === 'seen' || record.event === 'unlocking') observe(lease, record.sample);
    if (record.event === 'unlocking') withdraw(lease, record.sample.from);
    if (record.event === 'lost') lose(lease, record.reason, record.at);
  }
  return [...leases.values()];
}

/** The end of what the process was promised last. */
export function promisedUntil(lease: JudgedLease): number {
  return lease.valid.at(-1)?.promisedUntil ?? 0;
}

function observe(lease: JudgedLease, { from, to, remaining }: Sample): void {
  const wasValid = lease.isValid;
  lease.isValid = remaining > 0;
  if (!lease.isValid) {
    withdraw(lease, from);
    return;
  }
  const last = lease.valid.at(-1);
  if (wasValid && last !== undefined) {
    last.to = Math.max(last.to, from);
    last.promisedUntil = from + remaining;
  } else {
    lease.valid.push({ from: to, to, promisedUntil: from + remaining });
  }
}

function lose(lease: JudgedLease, reason: string, at: number): void {
  // Its promise may have ended already: that is the ordinary end of a lease that is not renewed in time.
  lease.loss = { reason, at, early: promisedUntil(lease) - at };
  withdraw(lease, at);
}

/** From now on the process does not rely on it. */
function withdraw(lease: JudgedLease, at: number): void {
  const last = lease.valid.at(-1);
  if (last !== undefined) last.promisedUntil = Math.min(last.promisedUntil, at);
}
