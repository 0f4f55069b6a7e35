import { conflicts, fallingTokens, type Stay } from './exclusion';
import { isTaken, type JudgedLease } from './leases';
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

/** Nobody but the leases' own processes touches the keys: Redis cannot have lost one before its time, unless it was replaced. */
function brokenPromise(lease: JudgedLease): Violation[] {
  const { call, key, loss } = lease;
  if (loss === undefined || (loss.reason !== 'stolen' && loss.reason !== 'expired') || loss.early <= READING) return [];
  if (isTaken(lease)) return [];
  const text = `${call} lost "${key}" (${loss.reason}) ${loss.early.toFixed(2)} ms before the time that it was promised`;
  return [{ kind: 'lost too early', text, at: loss.at, key, calls: [call] }];
}

/** Checks that the fencing tokens of each key rise, over the rounds of a run. */
export class TokenJudge {
  readonly #last = new Map<string, JudgedLease & { readonly from: number }>();

  /** A lease that was over when its process learnt of it says nothing about the order of grants. */
  violations(leases: readonly JudgedLease[]): Violation[] {
    const grants = leases.flatMap((lease) => {
      const hasToken = lease.access === 'exclusive' || lease.access === 'write';
      const from = lease.valid[0]?.from;
      return hasToken && from !== undefined ? [{ ...lease, from }] : [];
    });
    const none = grants.filter(({ token }) => token === undefined);
    const falling = fallingTokens(grants, this.#last).filter(({ grant }) => grant.token !== undefined);
    return [
      ...none.map(({ call, key, from }) => ({
        kind: 'token does not rise',
        text: `${call} has no token for "${key}"`,
        at: from,
        key,
        calls: [call],
      })),
      ...falling.map(({ grant: { call, key, token, from }, before }) => ({
        kind: 'token does not rise',
        text: `${call} has the token ${token} for "${key}", after ${before.token} of ${before.call}`,
        at: from,
        key,
        calls: [before.call, call],
      })),
    ];
  }
}
