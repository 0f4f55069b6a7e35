import { CannotAcquireLockError } from '../errors';
import { Backoff } from '../internal/backoff';
import { clock } from '../internal/clock';
import { type Grant, type LockProtocol, NOT_GRANTED, type NotGranted, type Refusal } from '../protocols/protocol';
import type { ConnectionMonitor } from '../redis/connection-monitor';
import { isFinal, isServerAnswer, messageOf } from '../redis/failure';
import type { Acquisition } from './acquisition';
import type { Wait } from './wait';

/** ms; the first attempt of a wait has at least this long to be answered, however short the wait is. */
export const FIRST_ATTEMPT_AT_LEAST = 50;

/** ms; a question that has not been answered for this long is no contention. */
const SILENT = 250;

export interface AttemptSettings {
  readonly commandTimeout: number;
  readonly unavailableAfter: number;
}

/**
 * Attempts to acquire locks in Redis, the waits between them, and what is made of failures. Contention is never an
 * error, and silence is never taken for contention.
 */
export class Attempts {
  readonly #settings: AttemptSettings;
  readonly #monitor: ConnectionMonitor;

  constructor(settings: AttemptSettings, monitor: ConnectionMonitor) {
    this.#settings = settings;
    this.#monitor = monitor;
  }

  /** Contends until the lock is granted, or the wait is over while another owner holds it (not granted). */
  async acquire(protocol: LockProtocol, acquisition: Acquisition, wait: Wait): Promise<Grant | NotGranted> {
    const { availability } = protocol;
    let timeout = this.#firstTimeout(wait);
    let wasRefused = false;
    let backoff: Backoff | undefined;
    for (;;) {
      const standBack = wait.isSingleAttempt ? undefined : protocol.standBack(wait);
      if (standBack !== undefined) {
        await standBack;
        timeout = Math.min(timeout, Math.max(wait.remaining, FIRST_ATTEMPT_AT_LEAST));
      }
      const attempt = this.#send(protocol, acquisition, wait, timeout);
      let outcome: Grant | Refusal | undefined;
      try {
        outcome = await wait.unlessAborted(attempt);
        this.#assertInTime(outcome, acquisition);
        availability.answered();
      } catch (error) {
        outcome = undefined;
        this.#failed(error, protocol, acquisition, wait, attempt);
      } finally {
        availability.attempt = undefined;
      }
      if (outcome?.granted) return outcome;
      wait.throwIfInterrupted();
      if (outcome !== undefined) {
        backoff?.reset();
        wasRefused = true;
        const result = wait.remaining > 0 ? await protocol.wait(acquisition, outcome, wait) : NOT_GRANTED;
        if (result.granted && result.until > clock.now()) return result;
        if (wait.remaining === 0) return this.#timedOut(protocol, wait);
      } else {
        backoff ??= new Backoff();
        if (wait.remaining > 0) await wait.sleep(backoff.next());
        // After a refusal, a last attempt that had little time to be answered is no silence.
        if (wait.remaining === 0 && wasRefused) return this.#timedOut(protocol, wait);
        if (wait.remaining === 0) throw this.unanswered(protocol, wait);
      }
      timeout = wait.remaining;
    }
  }

  /** A waitTime of 0 is one attempt with the time that a command has, from the call on, and not one without time. */
  #firstTimeout(wait: Wait): number {
    const { commandTimeout } = this.#settings;
    const left = wait.isSingleAttempt ? commandTimeout - (clock.now() - wait.startedAt) : wait.remaining;
    return Math.max(left, FIRST_ATTEMPT_AT_LEAST);
  }

  #send(protocol: LockProtocol, acquisition: Acquisition, wait: Wait, timeout: number): Promise<Grant | Refusal> {
    acquisition.stamp();
    const { sentAt } = acquisition;
    const { availability } = protocol;
    availability.asked(sentAt);
    const left = this.#settings.unavailableAfter - availability.silence(wait.startedAt, sentAt);
    if (left <= 0) throw this.unanswered(protocol, wait);
    const attempt = protocol.attempt(acquisition, Math.min(timeout, left));
    availability.attempt = attempt;
    return attempt;
  }

  /** A grant that is of no use any more fails like an attempt without an answer: it has to be released. */
  #assertInTime(outcome: Grant | Refusal, acquisition: Acquisition): void {
    if (!outcome.granted || outcome.until > clock.now()) return;
    throw new Error(`Redis answered so late that nothing was left of the ttl of ${acquisition.ttl} ms`);
  }

  /** Throws the caller's error for an attempt that failed, unless it failed in a way that may pass. */
  #failed(
    error: unknown,
    protocol: LockProtocol,
    acquisition: Acquisition,
    wait: Wait,
    attempt: Promise<unknown>,
  ): void {
    // A script that the server stopped half-way may have written something.
    const mayHaveWritten = !isServerAnswer(error) || isFinal(error);
    if (mayHaveWritten) acquisition.doubt(attempt);
    if (wait.isInterrupted) protocol.availability.withdrawn(acquisition.sentAt);
    wait.throwIfInterrupted();
    if (isFinal(error)) {
      protocol.availability.withdrawn(acquisition.sentAt);
      throw cannotAcquire(wait.key, messageOf(error), error);
    }
    protocol.availability.failed(error);
  }

  /** For a wait that ended after Redis had said that the lock is held: throws where Redis has fallen silent since. */
  #timedOut(protocol: LockProtocol, wait: Wait): NotGranted {
    const { availability } = protocol;
    const isSilent = availability.silence(wait.startedAt, clock.now()) >= SILENT;
    if (!isSilent && !isServerAnswer(availability.failure)) return NOT_GRANTED;
    throw this.unanswered(protocol, wait);
  }

  /**
   * For a local caller whose wait ended in the local queue: whether Redis answered the caller in front of it, so that
   * contention is known. The attempt in flight counts as its own.
   */
  async wasAnswered(protocol: LockProtocol, wait: Wait): Promise<boolean> {
    const { attempt } = protocol.availability;
    const left = wait.isSingleAttempt
      ? Number.POSITIVE_INFINITY
      : FIRST_ATTEMPT_AT_LEAST - (clock.now() - wait.startedAt);
    let isAnswered: boolean | undefined = true;
    if (attempt !== undefined && left > 0) {
      const answered = attempt.then(
        () => true,
        () => false,
      );
      isAnswered = await wait.suspend<boolean>(left, (resume) => void answered.then(resume));
    }
    wait.throwIfInterrupted();
    // The last attempt of a wait may fail because it had little time: to a caller that waited that says nothing.
    if (wait.isSingleAttempt && isAnswered === false) return false;
    return protocol.availability.silence(wait.startedAt, clock.now()) < SILENT;
  }

  /** Names the last answer of the server or error of the socket: it says more than the silence. */
  unanswered({ availability }: LockProtocol, wait: Wait): CannotAcquireLockError {
    const { failure } = availability;
    const ms = Math.round(availability.silence(wait.startedAt, clock.now()));
    if (isServerAnswer(failure))
      return cannotAcquire(wait.key, `Redis answered for ${ms} ms: ${messageOf(failure)}`, failure);
    const { lastError } = this.#monitor;
    const reason = lastError === undefined ? '' : `; the last error of the client was: ${messageOf(lastError)}`;
    return cannotAcquire(wait.key, `Redis has not answered for ${ms} ms${reason}`, failure ?? lastError);
  }
}

function cannotAcquire(key: string, why: string, cause: unknown): CannotAcquireLockError {
  return new CannotAcquireLockError(`Lock "${key}" could not be acquired: ${why}`, key, { cause });
}
