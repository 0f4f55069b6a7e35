import { cannotAcquire, type NotReplicatedError } from '../errors';
import { clock } from '../internal/clock';
import type { LockProtocol } from '../protocols/protocol';
import { isServerAnswer } from '../redis/failure';
import type { Acquisition } from './acquisition';
import { LEAST_TIME_TO_ANSWER, type Wait } from './wait';

interface UnreplicatedSettings {
  readonly commandTimeout: number;
  readonly unavailableAfter: number;
}

/** Grants of one caller that too few replicas acknowledged. They are given back, and its wait goes on. */
export class Unreplicated {
  readonly #settings: UnreplicatedSettings;
  readonly #since = clock.now();
  #error: NotReplicatedError;

  constructor(settings: UnreplicatedSettings, error: NotReplicatedError) {
    this.#settings = settings;
    this.#error = error;
  }

  /**
   * Releases the lock. The same ticket is used again only when the release was answered: a late one would end the next
   * grant. Throws when it was not, or when replicas have been missing for `unavailableAfter`.
   */
  async giveBack(
    error: NotReplicatedError,
    protocol: LockProtocol,
    acquisition: Acquisition,
    wait: Wait,
  ): Promise<void> {
    this.#error = error;
    const { commandTimeout, unavailableAfter } = this.#settings;
    const left = wait.isSingleAttempt ? commandTimeout - (clock.now() - wait.startedAt) : wait.remaining;
    const releasing = protocol.release(acquisition.ticket, Math.max(left, LEAST_TIME_TO_ANSWER));
    try {
      await wait.unlessAborted(releasing);
    } catch (failure) {
      acquisition.doubt(releasing);
      wait.throwIfInterrupted();
      if (!isServerAnswer(failure)) this.fail(wait);
    }
    wait.throwIfInterrupted();
    if (clock.now() - this.#since >= unavailableAfter) this.fail(wait);
  }

  /** Rejects the caller: its wait is over, or the release was not answered. */
  fail({ key }: Wait): never {
    throw cannotAcquire(key, this.#error.message, this.#error);
  }
}
