import type { Access } from './exclusion';
import type { Sample, WorkerRecord } from './records';
import { type Replaced, replacedIn } from './replaced';

/** A span of time, from a moment at which the process read that the lease is valid to another one. */
export interface Span {
  readonly from: number;
  to: number;
  /**
   * Until when `remaining` promised the last time that it would be valid, unless the process gave it up earlier; with a
   * `minHold`, at least until that ends.
   */
  promisedUntil: number;
}

type CalledRecord = Extract<WorkerRecord, { event: 'called' }>;

const UNKNOWN: CalledRecord = { event: 'called', call: '?', key: '?', others: [], what: '?', at: 0 };

/** ms by which the end of a `minHold` may differ: Redis counts in whole ms. */
const ROUNDING = 2;

/** What one process could believe of one lease. */
export interface JudgedLease {
  readonly call: string;
  readonly key: string;
  readonly access: Access;
  /** How many permits of a semaphore it has. */
  readonly permits: number;
  readonly what: string;
  readonly token: number | undefined;
  /** It was valid throughout each of them; in between it read that it was not, or not confirmed. */
  valid: Span[];
  /** Nobody else may have it before, also when it is unlocked earlier; 0: no `minHold`. */
  readonly heldUntil: number;
  /** What it read last. */
  isValid: boolean;
  loss: { readonly reason: string; readonly at: number; readonly early: number } | undefined;
  /** It was taken by a call that replaces, or may have been. */
  readonly replaced: Replaced | undefined;
}

/** The leases of each process of one history. */
export function leasesIn(processes: readonly (readonly WorkerRecord[])[]): JudgedLease[] {
  const replaced = replacedIn(processes);
  return processes.flatMap((records) => leasesOf(records, replaced));
}

function leasesOf(records: readonly WorkerRecord[], replaced: ReadonlyMap<string, Replaced>): JudgedLease[] {
  const calls = new Map<string, CalledRecord>();
  const leases = new Map<string, JudgedLease>();
  for (const record of records) {
    if (record.event === 'called') calls.set(record.call, record);
    if (record.event === 'granted') {
      const { key, access = 'exclusive', permits = 1, what, minHold, at } = calls.get(record.call) ?? UNKNOWN;
      const { call, token, sample } = record;
      const lease = {
        call,
        key,
        access,
        permits,
        what,
        token,
        valid: [],
        isValid: false,
        // It was not granted before its call.
        heldUntil: minHold === undefined ? 0 : at + minHold - ROUNDING,
        loss: undefined,
        replaced: replaced.get(call),
      };
      leases.set(call, lease);
      observe(lease, sample);
    }
    const lease = 'call' in record ? leases.get(record.call) : undefined;
    if (lease === undefined) continue;
    if (record.event === 'seen' || record.event === 'unlocking') observe(lease, record.sample);
    if (record.event === 'unlocking') unlock(lease, record.sample.from);
    if (record.event === 'lost') lose(lease, record);
  }
  for (const lease of leases.values()) {
    const { graceOver } = lease.replaced ?? {};
    if (graceOver !== undefined) lease.valid = lease.valid.flatMap((span) => spanBefore(graceOver, span));
  }
  return [...leases.values()];
}

/** A process that stands still for longer than a grace may learn of its grant when others had the lock. */
function spanBefore(end: number, { from, to, promisedUntil }: Span): Span[] {
  return from > end ? [] : [{ from, to: Math.min(to, end), promisedUntil: Math.min(promisedUntil, end) }];
}

/** The end of what the process was promised last. */
export function promisedUntil(lease: JudgedLease): number {
  return lease.valid.at(-1)?.promisedUntil ?? 0;
}

function observe(lease: JudgedLease, { from, to, remaining }: Sample): void {
  const wasValid = lease.isValid;
  lease.isValid = remaining > 0;
  if (!lease.isValid) {
    // While its task runs nobody may follow it.
    if (isTaken(lease) && lease.replaced?.isFollowed) prolong(lease, from);
    else withdraw(lease, from);
    return;
  }
  const last = lease.valid.at(-1);
  if (wasValid && last !== undefined) {
    last.to = Math.max(last.to, from);
    last.promisedUntil = from + remaining;
  } else if (from + remaining <= to) {
    lease.isValid = false; // it may have been over before its process could use it
  } else {
    lease.valid.push({ from: to, to, promisedUntil: from + remaining });
  }
}

function lose(lease: JudgedLease, { reason, at, early }: Extract<WorkerRecord, { event: 'lost' }>): void {
  // Its promise may have ended already: that is the ordinary end of a lease that is not renewed in time.
  lease.loss = { reason, at, early: early ?? promisedUntil(lease) - at };
  withdraw(lease, at);
}

/** Its loss before its time is the work of a call that replaces. */
export function isTaken({ loss, replaced }: Pick<JudgedLease, 'loss' | 'replaced'>): boolean {
  const isOfRedis = loss?.reason === 'stolen' || loss?.reason === 'expired';
  return isOfRedis && loss.early > 0 && replaced?.isExplained === true;
}

/** Its task runs at this time. */
function prolong(lease: JudgedLease, at: number): void {
  const last = lease.valid.at(-1);
  if (last !== undefined) last.promisedUntil = Math.max(last.promisedUntil, at);
}

/** The process does not rely on it any more, but the key is kept until its `minHold` ends. */
function unlock(lease: JudgedLease, at: number): void {
  if (isTaken(lease)) return;
  withdraw(lease, at);
  const last = lease.valid.at(-1);
  // It may have been taken from it before, and the release has not said so.
  if (last !== undefined && lease.isValid && lease.replaced === undefined)
    last.promisedUntil = Math.max(last.promisedUntil, lease.heldUntil);
}

/** From now on the process does not rely on it. */
function withdraw(lease: JudgedLease, at: number): void {
  const last = lease.valid.at(-1);
  if (last !== undefined) last.promisedUntil = Math.min(last.promisedUntil, at);
}
