import { States } from '../internal/states';

/** The life of a hold: its states, what ends each of them, and what may follow. */
const STATES = new States('hold', {
  /** An attempt is in flight, or will be. Until a grant, or until it is given up, or dropped where nothing can be in Redis. */
  requested: ['held', 'given up'],
  /**
   * A lease relies on it, and the watchdog renews it. Until `unlock`, `detach` or `lose`. Passed on without a command, it
   * stays held.
   */
  held: ['held', 'unlocked', 'lost'],
  /**
   * No lease relies on it: it is released or detached, and stays so; or to be confirmed for the next caller. Given up where
   * it isn't known what became of that, or of an attempt.
   */
  unlocked: ['held', 'given up'],
  /**
   * Its deadline came, its key is gone or another owner's, or the registry was closed. Given up at the `unlock` of its last
   * lease, since the key may outlive it; at once where it ended by the ttl of a lease, before its key does.
   */
  lost: ['given up'],
  /** `GivingBack` removes what is left of it in Redis. */
  'given up': [],
});
export const { become } = STATES;

export type HoldState = keyof typeof STATES.following;
