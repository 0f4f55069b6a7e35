import { clock } from '../internal/clock';
import { LEARNS_REPLACEMENT, MAYBE_REPLACED_AFTER } from './silence-times';

/**
 * When a client came back from a silence: a time without an answer, while something was unanswered. What a waiter does
 * meanwhile: `Call` in `core/acquire`.
 */
export class Silence {
  /** Answers come in the order of the commands, so one that took long is no silence if there were others before it. */
  readonly #isOneConnection: boolean;
  #heardAt = Number.NEGATIVE_INFINITY;
  /** The answer to what was sent before then may come from a server that does not know that it was replaced. */
  outdatedUntil = Number.NEGATIVE_INFINITY;

  constructor(isOneConnection: boolean) {
    this.#isOneConnection = isOneConnection;
  }

  /** A server answered. `askedAt`: when the command was sent, or an earlier one to that server that was lost. */
  answered(askedAt: number): void {
    const now = clock.now();
    const since = this.#isOneConnection ? Math.max(askedAt, this.#heardAt) : askedAt;
    if (now - since > MAYBE_REPLACED_AFTER) this.outdatedUntil = now + LEARNS_REPLACEMENT;
    this.#heardAt = now;
  }
}
