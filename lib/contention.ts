import { clock } from './clock';
import { CannotAcquireLockError } from './errors';
import { doubt } from './orphans';
import { isFinal, isServerAnswer } from './redis/failure';
import type { Claim, Grant, LockStrategy, Refusal } from './strategies/strategy';
import type { Wait } from './wait';

/** ms; the first attempt of a wait has at least so long to be answered, however short the wait is. */
const FIRST_ATTEMPT_AT_LEAST = 50;

/** ms between two attempts that failed: doubled from the first to the longest. */
const FIRST_PAUSE = 10;
const LONGEST_PAUSE = 250;

export interface ContentionSettings {
  readonly commandTimeout: number;
  readonly unavailableAfter: number;
}

/**
 * How the callers of one lock fare with Redis: attempts, the waits between them, and what is made of failures.
 * Contention is never an error, and silence is never taken for contention.
 */
export class Contention {
  readonly #key: string;
  readonly #strategy: LockStrategy;
  readonly #settings: ContentionSettings;
  /** The attempt in flight. */
  #attempt: Promise<Grant | Refusal> | undefined;
  /** Since when attempts have been sent that Redis did not answer with yes or no, and why the last of them failed. */
  #unansweredSince: number | undefined;
  #failure: unknown;

  constructor(key: string, strategy: LockStrategy, settings: ContentionSettings) {
    this.#key = key;
    this.#strategy = strategy;
    this.#settings = settings;
  }

  /** Contends until the claim has the lock, or the wait is over while somebody else holds it (`undefined`). */
  async obtain(claim: Claim, wait: Wait): Promise<Grant | undefined> {
    // A wait of 0 is one attempt, and not one that has no time to be answered.
    const { commandTimeout } = this.#settings;
    let timeout = wait.isSingleAttempt ? commandTimeout : Math.max(wait.remaining, FIRST_ATTEMPT_AT_LEAST);
    let wasRefused = false;
    for (let failures = 0; ; timeout = wait.remaining) {
      const attempt = this.#send(claim, wait, timeout);
      let outcome: Grant | Refusal | undefined;
      try {
        outcome = await wait.unlessAborted(attempt);
        this.#assertInTime(outcome, claim);
        this.#unansweredSince = undefined;
      } catch (error) {
        this.#fail(error, claim, wait, attempt);
        outcome = undefined;
      } finally {
        this.#attempt = undefined;
      }
      if (outcome?.granted) return outcome;
      wait.throwIfInterrupted();
      if (outcome !== undefined) {
        failures = 0;
        wasRefused = true;
        const grant = wait.remaining > 0 ? await this.#strategy.wait(claim, outcome, wait) : undefined;
        if (grant !== undefined && grant.until > clock.now()) return grant;
        if (wait.remaining === 0) return undefined;
      } else {
        if (wait.remaining > 0) await wait.sleep(Math.min(FIRST_PAUSE * 2 ** failures++, LONGEST_PAUSE));
        // A last attempt that had next to no time to be answered is no silence: Redis said "held" a moment ago.
        if (wait.remaining === 0 && wasRefused && timeout < FIRST_ATTEMPT_AT_LEAST) return undefined;
        if (wait.remaining === 0) throw this.#unanswered();
      }
    }
  }

  #send(claim: Claim, wait: Wait, timeout: number): Promise<Grant | Refusal> {
    claim.stamp();
    const { sentAt } = claim;
    this.#unansweredSince ??= sentAt;
    // Silence counts for a caller from its own call on: the one before it in the queue may have waited for longer.
    const patience = this.#settings.unavailableAfter - (sentAt - Math.max(this.#unansweredSince, wait.startedAt));
    if (patience <= 0) throw this.#unanswered();
    this.#attempt = this.#strategy.attempt(claim, Math.min(timeout, patience));
    return this.#attempt;
  }

  #assertInTime(outcome: Grant | Refusal, claim: Claim): void {
    if (!outcome.granted || outcome.until > clock.now()) return;
    throw new Error(`Redis answered so late that nothing was left of the ttl of ${claim.ttl} ms`);
  }

  /** Throws what the caller is to hear of an attempt that failed, unless it failed in a way that may pass. */
  #fail(error: unknown, claim: Claim, wait: Wait, attempt: Promise<unknown>): void {
    if (!isServerAnswer(error)) doubt(claim, attempt);
    // Who leaves before the answer is no sign of silence to those who come after.
    if (wait.isInterrupted && this.#unansweredSince === claim.sentAt) this.#unansweredSince = undefined;
    wait.throwIfInterrupted();
    if (isFinal(error)) throw this.#cannotAcquire(error instanceof Error ? error.message : String(error), error);
    this.#failure = error;
  }

  /**
   * For a local caller whose wait ended in the local queue: throws unless Redis answered the caller in front of it.
   * The attempt in flight tells, as if it were its own.
   */
  async assertAnswered(wait: Wait): Promise<void> {
    const attempt = this.#attempt;
    const patience = wait.isSingleAttempt
      ? Number.POSITIVE_INFINITY
      : FIRST_ATTEMPT_AT_LEAST - (clock.now() - wait.startedAt);
    if (attempt !== undefined && patience > 0) {
      const settled = attempt.catch(() => undefined);
      await wait.suspend<unknown>(patience, (resume) => void settled.then(resume));
    }
    wait.throwIfInterrupted();
    if (this.#unansweredSince !== undefined && this.#unansweredSince <= wait.startedAt) throw this.#unanswered();
  }

  #unanswered(): CannotAcquireLockError {
    const since = Math.round(clock.now() - (this.#unansweredSince ?? clock.now()));
    return this.#cannotAcquire(`Redis has not said for ${since} ms whether it is free`, this.#failure);
  }

  #cannotAcquire(why: string, cause: unknown): CannotAcquireLockError {
    return new CannotAcquireLockError(`Lock "${this.#key}" could not be acquired: ${why}`, this.#key, { cause });
  }
}
