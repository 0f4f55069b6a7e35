import { noteContention } from '../diagnostics/channels';
import { cannotAcquire, NotReplicatedError } from '../errors';
import { Backoff } from '../internal/backoff';
import { clock } from '../internal/clock';
import { TOGETHER } from '../internal/shared-timer';
import type { Grant, LockProtocol, NotGranted, Refusal } from '../protocols/protocol';
import { isFinal, isServerAnswer, messageOf, serverErrorCode } from '../redis/failure';
import type { Acquisition } from './acquisition';
import { type AttemptSender, LEARNS_REPLACEMENT } from './attempt-sender';
import { Unreplicated } from './unreplicated';
import type { Wait } from './wait';

/** ms; the longest pause before a late grant is requested once more. */
const LONGEST_PAUSE = LEARNS_REPLACEMENT + TOGETHER;

/**
 * The attempts of one caller to acquire a lock, one after the other, and what comes between two of them: a wait for the
 * release after a refusal, a backoff after a failure that may pass. Contention is not a failure: `lock` reports it with
 * `LockTimeoutError`, `tryLock` with `null`. Silence never counts as contention.
 */
export class AttemptSeries {
  readonly #sender: AttemptSender;
  readonly #protocol: LockProtocol;
  readonly #acquisition: Acquisition;
  readonly #wait: Wait;
  /** ms; the next attempt has this long to be answered. */
  #timeout: number;
  #wasRefused = false;
  /** A grant came late, and was requested once more. */
  #isRepeated = false;
  #backoff: Backoff | undefined;
  #unreplicated: Unreplicated | undefined;

  constructor(sender: AttemptSender, protocol: LockProtocol, acquisition: Acquisition, wait: Wait) {
    this.#sender = sender;
    this.#protocol = protocol;
    this.#acquisition = acquisition;
    this.#wait = wait;
    this.#timeout = sender.firstTimeout(wait);
  }

  /**
   * Resolves when the lock is granted, or the wait is over while another owner holds it (not granted). `standBack`,
   * `sent`: what goes before the first attempt, and that attempt itself where it was sent already.
   */
  async run(
    standBack: Promise<void> | undefined,
    sent: Promise<Grant | Refusal> | undefined,
  ): Promise<Grant | NotGranted> {
    const sender = this.#sender;
    const protocol = this.#protocol;
    const wait = this.#wait;
    let pause = standBack;
    let attempt = sent;
    for (;;) {
      if (pause !== undefined) {
        await pause;
        this.#timeout = Math.min(this.#timeout, Math.max(wait.remaining, sender.firstAtLeast));
      }
      attempt ??= sender.send(protocol, this.#acquisition, wait, this.#timeout);
      let answer: Grant | Refusal | undefined;
      try {
        const answered = await wait.unlessAborted(attempt);
        this.#assertInTime(answered);
        protocol.availability.answered();
        answer = answered;
      } catch (error) {
        await this.#failed(error, attempt);
      } finally {
        protocol.availability.attemptInFlight = undefined;
      }
      if (!answer?.granted) {
        const result = await this.#waitAfter(answer);
        if (result !== undefined) return result;
      } else if (this.#isRepeated || !this.#acquisition.isLate()) {
        return answer;
      } else {
        await this.#pauseBeforeRepetition(attempt);
      }
      attempt = undefined;
      pause = sender.standBack(protocol, wait);
    }
  }

  /**
   * After a refusal, or a failure that may pass (`undefined`): until another attempt is worth it. Resolves to the
   * result where there is one: the lock was handed over, or the wait is over.
   */
  async #waitAfter(refusal: Refusal | undefined): Promise<Grant | NotGranted | undefined> {
    const wait = this.#wait;
    wait.throwIfInterrupted();
    const grant = refusal === undefined ? await this.#backOff() : await this.#waitForRelease(refusal);
    if (grant !== undefined) return grant;
    if (wait.remaining === 0) return this.#end();
    this.#timeout = wait.remaining;
    return undefined;
  }

  /** A grant that arrives after its time is handled as an attempt without an answer: it has to be released. */
  #assertInTime(answer: Grant | Refusal): void {
    if (!answer.granted || answer.until > clock.now()) return;
    throw new Error(`Redis answered so late that nothing was left of the ttl of ${this.#acquisition.ttl} ms`);
  }

  /**
   * A grant came late: it is requested once more, by a second attempt with the same ticket. Only a server that is still
   * the master grants it again.
   */
  async #pauseBeforeRepetition(attempt: Promise<unknown>): Promise<void> {
    this.#isRepeated = true;
    // The caller has the lock as far as the server knows, and may leave now.
    this.#acquisition.doubt(attempt);
    const { repetitions } = this.#sender;
    const left = this.#sender.timeLeft(this.#wait);
    // With a timer of its own only where the time is short.
    const ms = left > LONGEST_PAUSE ? Number.POSITIVE_INFINITY : Math.min(left, LEARNS_REPLACEMENT);
    await this.#wait.suspend<void>(ms, (resume) => {
      repetitions.schedule(resume, clock.now() + LONGEST_PAUSE);
      return () => repetitions.cancel(resume);
    });
    this.#timeout = this.#sender.firstTimeout(this.#wait);
  }

  /** Resolves to the lock itself where it was handed over. */
  async #waitForRelease(refusal: Refusal): Promise<Grant | undefined> {
    const wait = this.#wait;
    this.#backoff?.reset();
    this.#wasRefused = true;
    noteContention(wait, 'remote');
    this.#protocol.availability.refused(clock.now(), refusal.remaining, refusal.owner);
    if (wait.remaining === 0) return undefined;
    const result = await this.#protocol.wait(this.#acquisition, refusal, wait);
    if (!result.granted || result.until <= clock.now()) return undefined;
    if (wait.trace !== undefined) wait.trace.isHandedOver = true;
    return result;
  }

  async #backOff(): Promise<undefined> {
    this.#backoff ??= new Backoff();
    if (this.#wait.remaining > 0) await this.#wait.sleep(this.#backoff.next());
  }

  /** The wait is over. After a refusal, a last attempt without an answer is not silence: it had little time. */
  #end(): NotGranted {
    const { outcome } = this.#sender;
    this.#unreplicated?.fail(this.#wait);
    if (this.#wasRefused) return outcome.notGrantedOrThrow(this.#protocol, this.#wait);
    throw outcome.error(this.#protocol, this.#wait);
  }

  /** An attempt failed. Throws the caller's error, unless it failed in a way that may pass. */
  async #failed(error: unknown, attempt: Promise<unknown>): Promise<void> {
    const acquisition = this.#acquisition;
    const wait = this.#wait;
    const { availability } = this.#protocol;
    if (error instanceof NotReplicatedError) {
      availability.answered();
      if (wait.remaining > 0) this.#sender.warnNotReplicated(error, wait);
      this.#unreplicated ??= new Unreplicated(this.#sender.settings, error);
      await this.#unreplicated.giveBack(error, this.#protocol, acquisition, wait);
      return;
    }
    const isWrongType = serverErrorCode(error) === 'WRONGTYPE';
    const failure = isWrongType ? await wait.unlessAborted(this.#sender.explain(error, wait)) : error;
    // A script that the server stopped half-way may have written something.
    const mayHaveWritten = !isServerAnswer(failure) || isFinal(failure);
    if (mayHaveWritten) acquisition.doubt(attempt);
    if (wait.isInterrupted || isFinal(failure)) availability.withdrawn(acquisition.sentAt);
    wait.throwIfInterrupted();
    if (isFinal(failure)) throw cannotAcquire(wait.key, messageOf(failure), failure);
    availability.failed(failure);
  }
}
