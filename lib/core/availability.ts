import { CannotAcquireLockError, cannotAcquire } from '../api/errors';
import type { Connection } from '../redis/connection';
import { CommandTimeoutError, causeOf, isFinal, isServerAnswer, messageOf, reasonOf } from '../redis/failure';
import { SILENT } from '../redis/silence-times';

/** What Redis was asked about a lock: by an attempt, a poll, or a release of what too few replicas have. */
export interface Question<T = unknown> {
  readonly sentAt: number;
  /** Settles with its answer, or when it has failed. `undefined` before it is sent, and when it is over. */
  reply: Promise<T> | undefined;
}

/**
 * Whether Redis answers about one lock. All callers of the lock in this process share it. Silence of 250 ms or
 * more never counts as contention; until then the last answer counts. What a waiter makes of it: `Call` in `acquire`.
 */
export class Availability {
  /** Why the last question failed, if none was answered since. */
  failure: unknown;
  /** The first question that was not answered: Redis is silent since then. */
  #unanswered: Question | undefined;
  /** The last question; `undefined`: it was answered, or its caller has left. */
  #last: Question | undefined;
  /** If the last answer was a refusal: the time until which another owner holds the lock at least. */
  #heldUntil: number | undefined;
  /** By the last answer, if it said that: who holds the lock, until when unless it renews it. */
  #holder: { readonly owner: string; readonly until: number } | undefined;

  /** Redis has answered all that it was asked, and the last answer named no other holder. */
  get isBlank(): boolean {
    return this.#unanswered === undefined && this.#heldUntil === undefined && this.#holder === undefined;
  }

  /** A question is about to be sent, at this time. */
  ask<T>(sentAt: number): Question<T> {
    const question: Question<T> = { sentAt, reply: undefined };
    this.#unanswered ??= question;
    this.#last = question;
    return question;
  }

  /** A release that was sent at this time was not answered. */
  silentSince(sentAt: number): void {
    this.#unanswered ??= { sentAt, reply: undefined };
  }

  /** Redis has not answered the last question yet, or not in time. */
  get isAsked(): boolean {
    return this.#unanswered !== undefined;
  }

  /** The answer to the last question, while it is in flight. */
  get inFlight(): Promise<unknown> | undefined {
    return this.#last?.reply;
  }

  /**
   * Redis answered whether the lock is held, to a question that was sent at this time. An answer that was long on its
   * way, or lay unread while the event loop was blocked, says nothing of one that was sent much later.
   */
  answered(sentAt: number): void {
    if (this.#last !== undefined && this.#last.sentAt - sentAt < SILENT) this.#last = undefined;
    this.#unanswered = this.#last;
    this.#heldUntil = this.#holder = this.failure = undefined;
  }

  /** Redis answered after the deadline of this question: what the answer says may be of the past. */
  answeredLate(question: Question): void {
    if (this.#last === question) this.#last = undefined;
    this.#unanswered = this.#last;
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
   * True if a wait that ends now must report silence. False if no question is open: a caller that stands back has asked
   * none yet. While one is open, the last refusal counts, until the time to which it said the lock is held.
   */
  isSilent(now: number): boolean {
    if (this.#unanswered === undefined) return false;
    return !this.isRefused(now) || isServerAnswer(this.failure) || now - this.#unanswered.sentAt >= SILENT;
  }

  /** Whether the last answer was a refusal, and still counts. */
  isRefused(now: number): boolean {
    return this.#heldUntil !== undefined && now < this.#heldUntil;
  }

  /** A question failed. An answer of the server says more than a later silence. */
  failed(error: unknown): void {
    if (isServerAnswer(error) || !isServerAnswer(this.failure)) this.failure = error;
  }

  /** The caller of this question left before the answer. That does not count as silence. */
  withdraw(question: Question): void {
    if (this.#last === question) this.#last = undefined;
    if (this.#unanswered === question) this.#unanswered = this.#last;
  }

  /**
   * ms for which Redis has not answered, for a call made at `startedAt`. Silence before it does not count.
   * `unansweredSince`: that of the connection, which was silent about other locks before.
   */
  silence(startedAt: number, now: number, unansweredSince = now): number {
    if (this.#unanswered === undefined) return 0;
    return Math.max(0, now - Math.max(Math.min(this.#unanswered.sentAt, unansweredSince), startedAt));
  }
}

/** A lock that Redis is asked about. What is known of the answers is dropped when it is nothing: there may be many locks. */
export abstract class AskedLock {
  #availability: Availability | undefined;

  get availability(): Availability {
    this.#availability ??= new Availability();
    return this.#availability;
  }

  /** See LockProtocol. */
  get hasLearnt(): boolean {
    return this.#availability?.isBlank === false;
  }

  /** See LockProtocol. */
  callersLeft(): void {
    if (this.#availability?.isBlank) this.#availability = undefined;
    else if (this.#availability !== undefined) this.#availability.failure = undefined;
  }
}

const NO_ANSWER = 'Redis did not answer in time';

/** The error of a caller that has no answer: `why`, or the last error of the client, if it has had one since. */
export function noAnswer(key: string, of: { lastError: unknown }, why = NO_ANSWER): Error {
  return cannotAcquire(key, of.lastError === undefined ? why : reasonOf(of.lastError), of.lastError);
}

/**
 * The error of a caller whose attempts all failed: by silence for `ms`, or by answers that report an error that may pass.
 * The cause is the last such answer, or the last error of the socket: it says more than the silence.
 */
export function unavailable(
  key: string,
  lockName: string,
  failure: unknown,
  ms: number,
  connection: Pick<Connection, 'lastError' | 'slotOf'>,
): CannotAcquireLockError {
  const slot = connection.slotOf(lockName);
  const where = slot === undefined ? '' : ` (slot ${slot} of the cluster)`;
  const cause = causeOf(failure, connection);
  const isSilent = cause === undefined || cause instanceof CommandTimeoutError;
  // Redis may have answered others meanwhile.
  const silence = ms > 0 ? `Redis has not answered for ${ms} ms` : NO_ANSWER;
  let why = isSilent ? silence : reasonOf(cause);
  if (isServerAnswer(failure)) {
    const seconds = Math.round(ms / 1_000);
    const said = messageOf(failure);
    why = seconds > 0 ? `for ${seconds} s Redis has answered only: ${said}` : `Redis answered: ${said}`;
  }
  return cannotAcquire(key, why + where, cause);
}

/** Another attempt to acquire the lock may succeed. */
export function mayPass(error: unknown): boolean {
  return error instanceof CannotAcquireLockError && !isFinal(error.cause);
}
