import type { NotReplicatedError } from '../api/errors';
import { States } from '../internal/states';
import type { Claim } from './claim';
import type { RedisLease } from './lease';
import type { Grant } from './protocol';

/** The life of a call: its states, what ends each of them, and what may follow. */
const STATES = new States('call', {
  /**
   * The call was just made, or waits for the turn, until it has that, or its wait is over. A hold of this process may come
   * with the turn.
   */
  'in line': ['asking', 'asleep', 'served', 'gone'],
  /** An attempt is in flight, until it is answered or fails. A call of a shared lock may get a hold of this process meanwhile. */
  asking: ['granted', 'asleep', 'served', 'gone'],
  /** It was refused or failed, or others go first: until the next attempt. `fair`: a message may grant it. */
  asleep: ['asking', 'asleep', 'granted', 'served', 'gone'],
  /**
   * Redis granted it the lock, until it has its lease. After a silence it asks once more; what too few replicas have, it
   * gives back.
   */
  granted: ['asleep', 'served', 'gone'],
  /** The call has its lease. */
  served: [],
  /** The call ended without a lease: by contention, an error, an abort or `close`. */
  gone: [],
});
export const { become } = STATES;

/** What a call has in each of its states. `#asking` to `#leave` of `Call` enter them; `#end` enters `served` with a grant. */
export type CallState =
  | { readonly name: 'in line' | 'gone'; readonly claim?: undefined }
  | { readonly name: 'asking'; readonly claim: Claim }
  /** `undefined`: it has asked for nothing yet, or has given back what it got. */
  | { readonly name: 'asleep'; readonly claim: Claim | undefined }
  | { readonly name: 'granted'; readonly claim: Claim; readonly grant: Grant | NotReplicatedError }
  | { readonly name: 'served'; readonly claim?: undefined; readonly lease: RedisLease };

export const IN_LINE: CallState = { name: 'in line' };
