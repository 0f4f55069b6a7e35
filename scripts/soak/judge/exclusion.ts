import type { JudgedLease } from './leases';
import { sharingViolations } from './sharing';
import type { Violation } from './violation';

/** ms by which a loss may precede the end of a promise: readings of the clock are not made at one moment. */
const READING = 2;

/** Leases of one key that must not be valid at one time, and leases that ended before what they promised. */
export function exclusionViolations(leases: readonly JudgedLease[]): Violation[] {
  return [...byKey(leases).values()].flatMap((ofKey) => {
    const isShared = ofKey[0]?.access !== 'exclusive';
    return [...(isShared ? sharingViolations(ofKey) : overlaps(ofKey)), ...ofKey.flatMap(brokenPromise)];
  });
}

export function byKey(leases: readonly JudgedLease[]): Map<string, JudgedLease[]> {
  const keys = new Map<string, JudgedLease[]>();
  for (const lease of leases) {
    const ofKey = keys.get(lease.key);
    if (ofKey === undefined) keys.set(lease.key, [lease]);
    else ofKey.push(lease);
  }
  return keys;
}

function overlaps(leases: readonly JudgedLease[]): Violation[] {
  const spans = leases
    .flatMap((lease) => lease.valid.map((span) => ({ lease, ...span })))
    .sort((a, b) => a.from - b.from);
  const violations: Violation[] = [];
  let longest: (typeof spans)[number] | undefined;
  let promised: (typeof spans)[number] | undefined;
  for (const span of spans) {
    const { lease } = span;
    const about = (other: JudgedLease) => ({ at: span.from, key: lease.key, calls: [other.call, lease.call] });
    if (longest !== undefined && longest.lease !== lease && longest.to > span.from) {
      const together = Math.min(longest.to, span.to) - span.from;
      const text = `${longest.lease.call} and ${lease.call} both read that they hold "${lease.key}", for ${together.toFixed(2)} ms`;
      violations.push({ kind: 'two holders', text, ...about(longest.lease) });
    } else if (promised !== undefined && promised.lease !== lease && promised.promisedUntil > span.from) {
      const early = (promised.promisedUntil - span.from).toFixed(2);
      const text = `${lease.call} got "${lease.key}" ${early} ms before the time that ${promised.lease.call} was promised`;
      violations.push({ kind: 'promise broken', text, ...about(promised.lease) });
    }
    if (longest === undefined || span.to > longest.to) longest = span;
    if (promised === undefined || span.promisedUntil > promised.promisedUntil) promised = span;
  }
  return violations;
}

/** Nobody but the leases' own processes touches the keys: Redis cannot have lost one before its time. */
function brokenPromise({ call, key, loss }: JudgedLease): Violation[] {
  if (loss === undefined || (loss.reason !== 'stolen' && loss.reason !== 'expired') || loss.early <= READING) return [];
  const text = `${call} lost "${key}" (${loss.reason}) ${loss.early.toFixed(2)} ms before the time that it was promised`;
  return [{ kind: 'lost too early', text, at: loss.at, key, calls: [call] }];
}
