import { clock } from '../internal/clock';
import { isErrorReply } from './failure';

/** ms; a server that did not answer anything for longer may have been frozen, and replaced meanwhile. */
export const LONG = 500;

/** ms in which a server that has woken up learns that it was replaced. It answers as before until then. */
export const LEARNS_REPLACEMENT = 120;

/** When a client came back from a silence: a time without an answer, while something was unanswered. */
export class Silence {
  /** Answers come in the order of the commands, so one that took long is no silence if there were others before it. */
  readonly #isOneConnection: boolean;
  #heardAt = Number.NEGATIVE_INFINITY;
  /** When the first command was sent that was lost with its connection, if none was answered since. */
  #lostSince: number | undefined;
  #endedAt = Number.NEGATIVE_INFINITY;

  constructor(isOneConnection: boolean) {
    this.#isOneConnection = isOneConnection;
  }

  /** A command that was sent then was answered. */
  answered(sentAt: number): void {
    const now = clock.now();
    const asked = this.#lostSince === undefined ? sentAt : Math.min(sentAt, this.#lostSince);
    const since = this.#isOneConnection ? Math.max(asked, this.#heardAt) : asked;
    if (now - since > LONG) this.#endedAt = now;
    this.#heardAt = now;
    this.#lostSince = undefined;
  }

  /** A command that was sent then failed. */
  failed(error: unknown, sentAt: number): void {
    if (isErrorReply(error)) this.answered(sentAt);
    else this.#lostSince = Math.min(this.#lostSince ?? sentAt, sentAt);
  }

  /** Whether the answer to what was sent then may come from a server that does not know that it was replaced. */
  mayBeOutdated(sentAt: number): boolean {
    return sentAt < this.#endedAt + LEARNS_REPLACEMENT;
  }
}
