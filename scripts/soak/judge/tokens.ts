import { byKey } from './exclusion';
import type { JudgedLease } from './leases';
import type { Violation } from './violation';

/** Checks that the fencing tokens of each key rise, over the rounds of a run. */
export class TokenJudge {
  readonly #last = new Map<string, JudgedLease>();

  violations(leases: readonly JudgedLease[]): Violation[] {
    const withToken = leases.filter(({ access }) => access === 'exclusive' || access === 'write');
    return [...byKey(withToken)].flatMap(([key, ofKey]) => this.#ofKey(key, ofKey));
  }

  /** A lease that was over when its process learnt of it says nothing about the order of grants. */
  #ofKey(key: string, leases: readonly JudgedLease[]): Violation[] {
    const inOrder = leases.filter(({ valid }) => valid.length > 0).sort((a, b) => startOf(a) - startOf(b));
    return inOrder.flatMap((lease) => {
      const before = this.#last.get(key);
      this.#last.set(key, lease);
      if (lease.token !== undefined && (before?.token === undefined || lease.token > before.token)) return [];
      const text = `${lease.call} has the token ${lease.token} for "${key}", after ${before?.token} of ${before?.call}`;
      const calls = before === undefined ? [lease.call] : [before.call, lease.call];
      return [{ kind: 'token does not rise', text, at: startOf(lease), key, calls }];
    });
  }
}

function startOf(lease: JudgedLease): number {
  return lease.valid[0]?.from ?? 0;
}
