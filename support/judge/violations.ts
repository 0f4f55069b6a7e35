import { byKey, conflicts, type Stay } from './exclusion';
import type { JudgedLease } from './leases';
import { PERMITS } from './records';

export interface Violation {
  readonly kind: string;
  readonly text: string;
  /** When, on the clock that all processes of the machine share. */
  readonly at: number;
  readonly key?: string;
  /** The calls whose leases it is about. */
  readonly calls?: readonly string[];
}

/** ms by which a loss may precede the end of a promise: readings of the clock are not made at one moment. */
const READING = 2;

/** Leases of one key that must not be valid at one time, and leases that ended before what they promised. */
export function exclusionViolations(leases: readonly JudgedLease[]): Violation[] {
  const stays = leases.flatMap(({ call, key, access, permits, valid }) =>
    valid.map((span) => ({ call, key, access, permits, ...span })),
  );
  const overlaps = conflicts(stays, { permits: PERMITS }).map(({ kind, entering, others, together }) => {
    const who = ({ call, access = 'exclusive' }: Stay<string>) => `${call} (${access})`;
    const how = kind === 'promise broken' ? 'entered in the time promised to' : 'entered while inside were';
    const text = `${who(entering)} of "${entering.key}" ${how} ${others.map(who).join(', ')}, ${together.toFixed(2)} ms too early`;
    return { kind, text, at: entering.from, key: entering.key, calls: [...others, entering].map(({ call }) => call) };
  });
  return [...overlaps, ...leases.flatMap(brokenPromise)];
}

/** Nobody but the leases' own processes touches the keys: Redis cannot have lost one before its time. */
function brokenPromise({ call, key, loss }: JudgedLease): Violation[] {
  if (loss === undefined || (loss.reason !== 'stolen' && loss.reason !== 'expired') || loss.early <= READING) return [];
  const text = `${call} lost "${key}" (${loss.reason}) ${loss.early.toFixed(2)} ms before the time that it was promised`;
  return [{ kind: 'lost too early', text, at: loss.at, key, calls: [call] }];
}

/** Checks that the fencing tokens of each key rise, over the rounds of a run. */
export class TokenJudge {
  readonly #last = new Map<string, JudgedLease>();

  /** A lease that was over when its process learnt of it says nothing about the order of grants. */
  violations(leases: readonly JudgedLease[]): Violation[] {
    const withToken = leases.filter(
      ({ access, valid }) => (access === 'exclusive' || access === 'write') && valid.length > 0,
    );
    const inOrder = [...byKey(withToken).values()].flatMap((ofKey) => ofKey.sort((a, b) => startOf(a) - startOf(b)));
    return inOrder.flatMap((lease) => {
      const { key, token, call } = lease;
      const before = this.#last.get(key);
      this.#last.set(key, lease);
      if (token !== undefined && (before?.token === undefined || token > before.token)) return [];
      const text = `${call} has the token ${token} for "${key}", after ${before?.token} of ${before?.call}`;
      const calls = before === undefined ? [call] : [before.call, call];
      return [{ kind: 'token does not rise', text, at: startOf(lease), key, calls }];
    });
  }
}

function startOf(lease: JudgedLease): number {
  return lease.valid[0]?.from ?? 0;
}
