import { PERMITS } from '../settings';
import type { JudgedLease, Span } from './leases';
import type { Violation } from './violation';

interface LeaseSpan extends Span {
  readonly lease: JudgedLease;
}

/**
 * Leases of one semaphore, or of one read/write lock, that must not be valid at one time: more than the permits, or a
 * writer with anybody else. Each span is compared with those that began before it.
 */
export function sharingViolations(leases: readonly JudgedLease[]): Violation[] {
  const spans = leases
    .flatMap((lease) => lease.valid.map((span): LeaseSpan => ({ lease, ...span })))
    .sort((a, b) => a.from - b.from);
  let open: LeaseSpan[] = [];
  return spans.flatMap((span) => {
    open = open.filter((other) => Math.max(other.to, other.promisedUntil) > span.from);
    const others = open.filter(({ lease }) => lease !== span.lease);
    open.push(span);
    const inside = conflicting(
      span,
      others.filter(({ to }) => to > span.from),
    );
    if (inside.length > 0) return [violation('too many holders', 'entered while inside were', span, inside)];
    const promised = conflicting(
      span,
      others.filter(({ promisedUntil }) => promisedUntil > span.from),
    );
    if (promised.length > 0) return [violation('promise broken', 'entered in the time promised to', span, promised)];
    return [];
  });
}

/** Those of the others that keep the newcomer out. */
function conflicting({ lease }: LeaseSpan, others: readonly LeaseSpan[]): readonly LeaseSpan[] {
  const taken = others.reduce((sum, other) => sum + other.lease.permits, lease.permits);
  if (lease.access === 'permit') return taken > PERMITS ? others : [];
  return lease.access === 'write' ? others : others.filter((other) => other.lease.access === 'write');
}

function violation(kind: string, how: string, { lease, from }: LeaseSpan, others: readonly LeaseSpan[]): Violation {
  const names = others.map((other) => `${other.lease.call} (${other.lease.access})`).join(', ');
  const text = `${lease.call} (${lease.access}) of "${lease.key}" ${how} ${names}`;
  return { kind, text, at: from, key: lease.key, calls: [...others.map((other) => other.lease.call), lease.call] };
}
