import { isServerAnswer } from '../redis/failure';

/**
 * Whether Redis answers questions about one lock. All who ask about the lock in this process share it. Silence is never
 * taken for contention.
 */
export class Availability {
  /** The attempt in flight, of the local caller that has the turn. */
  attempt: Promise<unknown> | undefined;
  #unansweredSince: number | undefined;
  #failure: unknown;

  /** A question is about to be sent, at this time. */
  asked(sentAt: number): void {
    this.#unansweredSince ??= sentAt;
  }

  /** Redis answered with yes or no. */
  answered(): void {
    this.#unansweredSince = undefined;
    this.#failure = undefined;
  }

  /** A question failed in a way that may pass. An answer of the server says more than a later silence. */
  failed(error: unknown): void {
    if (isServerAnswer(error) || !isServerAnswer(this.#failure)) this.#failure = error;
  }

  /** The caller of the question that was sent at this time left before the answer: that is no sign of silence. */
  withdrawn(sentAt: number): void {
    if (this.#unansweredSince === sentAt) this.#unansweredSince = undefined;
  }

  /** Why the last question failed, if none was answered since. */
  get failure(): unknown {
    return this.#failure;
  }

  /** ms for which Redis has not answered, for a caller that came at `startedAt`. Silence before its call does not count. */
  silence(startedAt: number, now: number): number {
    return this.#unansweredSince === undefined ? 0 : Math.max(0, now - Math.max(this.#unansweredSince, startedAt));
  }
}
