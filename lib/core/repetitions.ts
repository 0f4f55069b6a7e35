import { cannotAcquire } from '../api/errors';
import { clock } from '../internal/clock';
import { LEARNS_REPLACEMENT } from '../redis/silence-times';
import type { Wait } from './wait';

/** The most times that a call asks for its grant once more. On a connection that is slow, each answer is a late one. */
const MOST_REPETITIONS = 3;

const GRANTED_TOO_LATE =
  'Redis granted it after a silence, in which its server may have been replaced, and no time is left to ask again';

/**
 * A grant came after a silence, in which its server may have been frozen, and replaced by another one that has given the
 * lock to somebody else: see `Connection.mayBeOutdated`. So the call pauses, and makes a second attempt with the same ticket:
 * only a server that is still the master grants it again.
 */
export class Repetitions {
  #count = 0;
  /** All together have the time of one attempt. */
  endsAt: number | undefined;

  get areLeft(): boolean {
    return this.#count < MOST_REPETITIONS;
  }

  /** `timeout`: ms that one attempt has. */
  async pause(wait: Wait, timeout: () => number): Promise<void> {
    await wait.suspend<void>(LEARNS_REPLACEMENT, () => undefined);
    if (this.#count++ === 0) this.endsAt = clock.now() + timeout();
  }
}

/** Throws where `left` ms are too few. */
export function assertTimeToRepeat(key: string, left: number): void {
  if (left < LEARNS_REPLACEMENT) throw cannotAcquire(key, GRANTED_TOO_LATE, undefined);
}
