import { type CannotAcquireLockError, cannotAcquire, type NotReplicatedError } from '../api/errors';
import { clock } from '../internal/clock';
import type { GivenBack } from './give-back';
import type { Hold } from './hold';
import type { LockOfCall } from './lock-of-call';
import { LEAST_TIME_TO_ANSWER, type Wait } from './wait';

/** Grants of one call that too few replicas acknowledged, one after the other. */
export class Unreplicated {
  readonly #wait: Wait;
  readonly #since = clock.now();
  #error: NotReplicatedError | undefined;
  /** Redis has confirmed that the last one was given back. */
  isGivenBack = false;

  constructor(wait: Wait) {
    this.#wait = wait;
  }

  /**
   * Gives a grant back, and calls `over` when that has ended: the wait goes on with another owner value. A release that
   * comes late finds nothing of the next grant. Throws when replicas have been missing for `unavailableAfter`. `left`: ms
   * that are left of the call.
   */
  async giveBack(error: NotReplicatedError, hold: Hold, lock: LockOfCall, left: number, over: () => void) {
    const wait = this.#wait;
    const { givingBack, settings, warnNotReplicated } = lock.services;
    if (wait.remaining > 0) warnNotReplicated(error, wait.key);
    const askedAt = clock.now();
    this.#error = error;
    this.isGivenBack = false;
    const endsIn = Math.min(left, this.#since + settings.unavailableAfter - askedAt);
    const limit = Math.min(settings.commandTimeout, Math.max(endsIn, LEAST_TIME_TO_ANSWER));
    const { availability } = hold.protocol;
    availability.failed(error);
    const question = availability.ask<GivenBack>(askedAt);
    question.reply = givingBack.within(limit, hold);
    const { outcome } = await wait.unlessAborted(question.reply);
    question.reply = undefined;
    over();
    if (outcome !== 'failed') {
      availability.answered(askedAt);
      this.isGivenBack = true;
    }
    // That it was given back is no success: who waits for what the call does gets this error.
    availability.failed(error);
    if (clock.now() - this.#since >= settings.unavailableAfter) throw this.failure();
  }

  /** The error of the call. */
  failure(): CannotAcquireLockError {
    return unreplicated(this.#wait.key, this.#error as NotReplicatedError);
  }
}

/** The error of a caller of this lock whose last grant too few replicas had. */
export function unreplicated(key: string, error: NotReplicatedError): CannotAcquireLockError {
  return cannotAcquire(key, error.message, error);
}
