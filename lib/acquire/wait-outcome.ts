import { type CannotAcquireLockError, cannotAcquire } from '../errors';
import { clock } from '../internal/clock';
import { type LockProtocol, NOT_GRANTED, type NotGranted } from '../protocols/protocol';
import type { Connection } from '../redis/connection';
import { isServerAnswer, messageOf } from '../redis/failure';
import { LockNames } from '../redis/names';
import { SILENT } from './availability';
import type { Wait } from './wait';

/** Distinguishes contention from silence, for a caller whose wait is over. */
export class WaitOutcome {
  readonly #registryKey: string;
  readonly #connection: Connection;
  /** ms; a first attempt has at least this long to be answered. */
  readonly #firstAtLeast: number;

  constructor(registryKey: string, connection: Connection, firstAtLeast: number) {
    this.#registryKey = registryKey;
    this.#connection = connection;
    this.#firstAtLeast = firstAtLeast;
  }

  /** The wait is over, and Redis answered once that the lock is held. Throws if Redis has been silent since. */
  notGrantedOrThrow(protocol: LockProtocol, wait: Wait): NotGranted {
    const { availability } = protocol;
    const isSilent = availability.silence(wait.startedAt, clock.now()) >= SILENT;
    if (!isSilent && !isServerAnswer(availability.failure)) return NOT_GRANTED;
    throw this.error(protocol, wait);
  }

  /**
   * For a caller whose wait ended in the local queue: whether Redis answered the caller that has the turn. Then the
   * wait ended with contention. The attempt in flight of that caller counts for this one too. It has as long to be
   * answered as a first attempt, even if it was sent at the end of the wait.
   */
  async wasAnswered({ availability }: LockProtocol, wait: Wait): Promise<boolean> {
    const { attemptInFlight: attempt } = availability;
    const silence = availability.silence(wait.startedAt, clock.now());
    const left = wait.isSingleAttempt ? Number.POSITIVE_INFINITY : this.#firstAtLeast - silence;
    if (attempt !== undefined && left > 0) {
      // One that was held back has been sent by then.
      const answer = attempt.then((answered) => answered ?? availability.attemptInFlight);
      const outcome = answer.then(
        () => true,
        () => false,
      );
      const isAnswered = await wait.suspend<boolean>(left, (resume) => void outcome.then(resume));
      // The last attempt of a wait may fail only because it had little time. For a caller that waited, that proves
      // nothing.
      if (isAnswered || (wait.isSingleAttempt && isAnswered === false)) return isAnswered;
    }
    wait.throwIfInterrupted();
    return availability.isContended(clock.now());
  }

  /**
   * The error of a caller whose attempts all failed: by silence, or by answers that report an error that may pass. The
   * cause is the last such answer, or the last error of the socket: it says more than the silence.
   */
  error({ availability }: LockProtocol, wait: Wait): CannotAcquireLockError {
    const { failure } = availability;
    const slot = this.#connection.slotOf(new LockNames(this.#registryKey, wait.key).lock);
    const where = slot === undefined ? '' : ` (slot ${slot} of the cluster)`;
    const ms = Math.round(availability.silence(wait.startedAt, clock.now()));
    if (isServerAnswer(failure)) {
      const duration = ms > 0 ? ` for ${ms} ms` : '';
      return cannotAcquire(wait.key, `Redis answered${duration}: ${messageOf(failure)}${where}`, failure);
    }
    const { lastError } = this.#connection;
    const reason = lastError === undefined ? '' : `; the last error of the client was: ${messageOf(lastError)}`;
    return cannotAcquire(wait.key, `Redis has not answered for ${ms} ms${where}${reason}`, failure ?? lastError);
  }
}
