import { machineDelay } from '../../support/machine-delay';
import type { Outcome } from './compete';

/**
 * On a busy machine a turn takes longer, and chance decides who misses some: so a competition has more rounds, until there
 * were enough turns and they were shared. It is judged by the turns of all its rounds, and by the waits of the last.
 */
export const ROUNDS = 5;
const ENOUGH_TURNS = 200;

/** No side has a smaller share, or is without a turn for longer. A busy machine may add to the wait, as each turn takes longer. */
const LEAST_SHARE = 0.1;
const LONGEST_WAIT = 6_000;
const SLACK = 4_000;

/** What came of the two sides of a competition: of ours, and of another library. */
export interface Sides {
  readonly node: Outcome;
  readonly rival: Outcome;
}

export function isWithinBounds({ node, rival }: Sides, leastShare = LEAST_SHARE): boolean {
  const all = node.turns + rival.turns;
  const shares = [node, rival].map(({ turns }) => turns / all);
  const longest = Math.max(node.longestWait, rival.longestWait);
  return all >= ENOUGH_TURNS && Math.min(...shares) >= leastShare && longest <= LONGEST_WAIT + SLACK + machineDelay();
}

/** The outcome in the answer of a peer. */
export function outcomeOf(answer: string): Outcome {
  const [turns = 0, longestWait = 0, violations = 0] = answer.split(',').map(Number);
  return { turns, longestWait, violations };
}

/** The outcome of a round and of those before it. */
export function after(before: Outcome | undefined, last: Outcome): Outcome {
  const { turns, violations } = before ?? { turns: 0, violations: 0 };
  return { ...last, turns: turns + last.turns, violations: violations + last.violations };
}
