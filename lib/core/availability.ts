import { cannotAcquire } from '../api/errors';
import { isServerAnswer, reasonOf } from '../redis/failure';

/** ms; when the last attempt has been unanswered for this long, the wait ends with silence and not with contention. */
export const SILENT = 250;

/**
 * Whether Redis answers about one lock. All callers of the lock in this process share it. Silence of 250 ms or
 * more never counts as contention; until then the last answer counts. What a waiter makes of it: `Call` in `acquire`.
 */
export class Availability {
  /** The attempt in flight, of the local caller that has the turn. */
  attemptInFlight: Promise<unknown> | undefined;
  /** Why the last question failed, if none was answered since. */
  failure: unknown;
  #unansweredSince: number | undefined;
  /** When the last question was sent; `undefined`: it is over. */
  #askedAt: number | undefined;
  /** How many questions were sent then, and are not over: two callers may read the same time. */
  #askedThen = 0;
  /** If the last answer was a refusal: the time until which another owner holds the lock at least. */
  #heldUntil: number | undefined;
  /** By the last answer, if it said that: who holds the lock, until when unless it renews it. */
  #holder: { readonly owner: string; readonly until: number } | undefined;

  /** A question (an attempt, a poll) is about to be sent, at this time. */
  asked(sentAt: number): void {
    this.#unansweredSince ??= sentAt;
    this.#askedThen = this.#askedAt === sentAt ? this.#askedThen + 1 : 1;
    this.#askedAt = sentAt;
  }

  /**
   * Redis answered whether the lock is held, to a question that was sent at this time. An answer that was long on its
   * way, or lay unread while the event loop was blocked, says nothing of one that was sent much later.
   */
  answered(sentAt: number): void {
    if (this.#askedAt !== undefined && this.#askedAt - sentAt < SILENT) this.#askedAt = undefined;
    this.#unansweredSince = this.#askedAt;
    this.#heldUntil = this.#holder = this.failure = undefined;
  }

  /** Redis answered when the caller of that question had left: what the answer says may be of the past. */
  answeredLate(sentAt: number): void {
    if (this.#askedAt === sentAt) this.#askedAt = undefined;
    this.#unansweredSince = this.#askedAt;
  }

  /** Who holds the lock, by the last answer that said so, and for how many ms. */
  holderSaid(now: number): { readonly owner: string; readonly remaining: number } | undefined {
    const holder = this.#holder;
    return holder && { owner: holder.owner, remaining: Math.max(0, holder.until - now) };
  }

  /** The answer was that another owner holds the lock, for another `remaining` ms. `owner`: where it said who. */
  refused(now: number, remaining: number, owner?: string): void {
    if (owner !== undefined) this.#holder = { owner, until: now + remaining };
    this.#heldUntil = now + Math.max(remaining, SILENT);
  }

  /**
   * Whether a wait that ends now ends with silence, and not with contention. Not if no question is unanswered, also if
   * none was asked: a caller that stands back has asked none yet. While a question is unanswered, the last answer
   * counts, but not for longer than the lock was held by that answer.
   */
  isSilent(now: number): boolean {
    if (this.#unansweredSince === undefined) return false;
    return !this.isRefused(now) || isServerAnswer(this.failure) || now - this.#unansweredSince >= SILENT;
  }

  /** Whether the last answer was a refusal, and still counts. */
  isRefused(now: number): boolean {
    return this.#heldUntil !== undefined && now < this.#heldUntil;
  }

  /** A question failed. An answer of the server says more than a later silence. */
  failed(error: unknown): void {
    if (isServerAnswer(error) || !isServerAnswer(this.failure)) this.failure = error;
  }

  /** The caller of the question that was sent at this time left before the answer. That does not count as silence. */
  withdrawn(sentAt: number): void {
    if (this.#askedAt === sentAt && --this.#askedThen === 0) this.#askedAt = undefined;
    if (this.#unansweredSince === sentAt) this.#unansweredSince = this.#askedAt;
  }

  /**
   * ms for which Redis has not answered, for a call made at `startedAt`. Silence before it does not count.
   * `unansweredSince`: that of the connection, which was silent about other locks before.
   */
  silence(startedAt: number, now: number, unansweredSince = now): number {
    if (this.#unansweredSince === undefined) return 0;
    return Math.max(0, now - Math.max(Math.min(this.#unansweredSince, unansweredSince), startedAt));
  }
}

export const NO_ANSWER = 'Redis did not answer in time';

/** The error of a caller that has no answer: `why`, or the last error of the client, if it has had one since. */
export function noAnswer(key: string, of: { lastError: unknown }, why = NO_ANSWER): Error {
  return cannotAcquire(key, of.lastError === undefined ? why : reasonOf(of.lastError), of.lastError);
}
