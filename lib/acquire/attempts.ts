import { noteContention } from '../diagnostics/channels';
import { cannotAcquire, NotReplicatedError } from '../errors';
import { Backoff } from '../internal/backoff';
import { clock } from '../internal/clock';
import { type Grant, type LockProtocol, NOT_GRANTED, type NotGranted, type Refusal } from '../protocols/protocol';
import type { Connection } from '../redis/connection';
import { isFinal, isServerAnswer, messageOf, serverErrorCode } from '../redis/failure';
import { LockNames } from '../redis/names';
import { type WarningListener, warn } from '../warnings';
import type { Acquisition } from './acquisition';
import { Silence } from './silence';
import { Unreplicated } from './unreplicated';
import type { Wait } from './wait';

/** ms; the first attempt of a wait has at least this long to be answered, however short the wait is. */
export const FIRST_ATTEMPT_AT_LEAST = 50;

/** ms in which a server that has woken up learns that it was replaced. It answers as before until then. */
const LEARNS_REPLACEMENT = 100;

export interface AttemptSettings {
  readonly registryKey: string;
  readonly commandTimeout: number;
  readonly unavailableAfter: number;
  readonly minReplicas: number;
  readonly replicaTimeout: number;
  readonly onWarning: WarningListener;
}

/** For an error about a key of the wrong type: an error that says more. `timeout` in ms. */
type ExplainWrongType = (error: unknown, names: LockNames, timeout: number) => Promise<unknown>;

/**
 * Attempts to acquire locks in Redis, the waits between them, and how failures are handled. Contention is not a
 * failure: `lock` reports it with `LockTimeoutError`, `tryLock` with `null`. Silence never counts as contention.
 */
export class Attempts {
  readonly #settings: AttemptSettings;
  readonly #explainWrongType: ExplainWrongType;
  /** ms */
  readonly #firstAtLeast: number;
  #hasWarned = false;
  readonly silence: Silence;

  constructor(settings: AttemptSettings, connection: Connection, explainWrongType: ExplainWrongType) {
    this.#settings = settings;
    this.#explainWrongType = explainWrongType;
    // Before its own WAIT it may have to let that of an earlier attempt end, which has the connection until then.
    const waitsForReplicas = settings.minReplicas > 0 ? 2 * settings.replicaTimeout : 0;
    this.#firstAtLeast = FIRST_ATTEMPT_AT_LEAST + waitsForReplicas;
    this.silence = new Silence(settings.registryKey, connection, this.#firstAtLeast);
  }

  /** The pause before an attempt in which the lock is left to other processes; `undefined`: none. */
  standBack(protocol: LockProtocol, wait: Wait): Promise<void> | undefined {
    return wait.isSingleAttempt ? undefined : protocol.standBack(wait);
  }

  /** Sends one attempt. `timeout` in ms. */
  send(
    protocol: LockProtocol,
    acquisition: Acquisition,
    wait: Wait,
    timeout = this.#firstTimeout(wait),
  ): Promise<Grant | Refusal> {
    acquisition.stamp();
    const { sentAt } = acquisition;
    const { availability } = protocol;
    availability.asked(sentAt);
    const left = this.#settings.unavailableAfter - availability.silence(wait.startedAt, sentAt);
    if (left <= 0) throw this.silence.error(protocol, wait);
    if (wait.trace !== undefined) wait.trace.attempts++;
    const attempt = protocol.attempt(acquisition, Math.min(timeout, left));
    availability.attempt = attempt;
    return attempt;
  }

  /** The grant in the answer to an attempt, where that is all: it came in time. */
  grantIn(answer: Grant | Refusal, { availability }: LockProtocol, acquisition: Acquisition): Grant | undefined {
    const now = clock.now();
    if (!answer.granted || acquisition.isLateAt(now) || answer.until <= now) return undefined;
    availability.answered();
    availability.attempt = undefined;
    return answer;
  }

  /**
   * Contends until the lock is granted, or the wait is over while another owner holds it (not granted). A grant that
   * came late is requested once more, by a second attempt with the same ticket: only a server that is still the master
   * grants it again.
   *
   * `standBack`, `sent`: what goes before the first attempt, and that attempt itself where it was sent already.
   */
  async acquire(
    protocol: LockProtocol,
    acquisition: Acquisition,
    wait: Wait,
    standBack: Promise<void> | undefined,
    sent: Promise<Grant | Refusal> | undefined,
  ): Promise<Grant | NotGranted> {
    const { availability } = protocol;
    let timeout = this.#firstTimeout(wait);
    let wasRefused = false;
    let isRepeated = false;
    let backoff: Backoff | undefined;
    let unreplicated: Unreplicated | undefined;
    for (let first = sent, pause = standBack; ; first = undefined, pause = this.standBack(protocol, wait)) {
      if (pause !== undefined) {
        await pause;
        timeout = Math.min(timeout, Math.max(wait.remaining, this.#firstAtLeast));
      }
      const attempt = first ?? this.send(protocol, acquisition, wait, timeout);
      let outcome: Grant | Refusal | undefined;
      try {
        outcome = await wait.unlessAborted(attempt);
        this.#assertInTime(outcome, acquisition);
        availability.answered();
      } catch (error) {
        outcome = undefined;
        if (error instanceof NotReplicatedError) {
          availability.answered();
          if (wait.remaining > 0) this.#warnNotReplicated(error, wait);
          unreplicated ??= new Unreplicated(this.#settings, error);
          await unreplicated.giveBack(error, protocol, acquisition, wait);
        } else {
          const failure =
            serverErrorCode(error) === 'WRONGTYPE' ? await wait.unlessAborted(this.#explain(error, wait)) : error;
          this.#failed(failure, protocol, acquisition, wait, attempt);
        }
      } finally {
        availability.attempt = undefined;
      }
      if (outcome?.granted) {
        if (isRepeated || !acquisition.isLate) return outcome;
        isRepeated = true;
        // It has the lock as far as the server knows, and its caller may leave now.
        acquisition.doubt(attempt);
        await wait.suspend(Math.min(LEARNS_REPLACEMENT, this.#timeLeft(wait)), () => undefined);
        timeout = this.#firstTimeout(wait);
        continue;
      }
      wait.throwIfInterrupted();
      if (outcome !== undefined) {
        backoff?.reset();
        wasRefused = true;
        noteContention(wait, 'remote');
        availability.refused(clock.now(), outcome.remaining, outcome.owner);
        const result = wait.remaining > 0 ? await protocol.wait(acquisition, outcome, wait) : NOT_GRANTED;
        if (result.granted && result.until > clock.now()) {
          if (wait.trace !== undefined) wait.trace.isHandedOver = true;
          return result;
        }
        if (wait.remaining === 0) unreplicated?.timedOut(wait);
        if (wait.remaining === 0) return this.silence.timedOut(protocol, wait);
      } else {
        backoff ??= new Backoff();
        if (wait.remaining > 0) await wait.sleep(backoff.next());
        if (wait.remaining === 0) unreplicated?.timedOut(wait);
        // After a refusal, a last attempt without an answer is not silence: it had little time.
        if (wait.remaining === 0 && wasRefused) return this.silence.timedOut(protocol, wait);
        if (wait.remaining === 0) throw this.silence.error(protocol, wait);
      }
      timeout = wait.remaining;
    }
  }

  #explain(error: unknown, wait: Wait): Promise<unknown> {
    const names = new LockNames(this.#settings.registryKey, wait.key);
    return this.#explainWrongType(error, names, this.#firstTimeout(wait));
  }

  #firstTimeout(wait: Wait): number {
    return Math.max(this.#timeLeft(wait), this.#firstAtLeast);
  }

  /** With a waitTime of 0, the one attempt has `commandTimeout`, counted from the call. */
  #timeLeft(wait: Wait): number {
    const { commandTimeout } = this.#settings;
    return wait.isSingleAttempt ? commandTimeout - (clock.now() - wait.startedAt) : wait.remaining;
  }

  /** A grant that arrives after its time is handled as an attempt without an answer: it has to be released. */
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

  /** Warns once: a caller that continues to wait would learn of it much later. */
  #warnNotReplicated(cause: NotReplicatedError, { key }: Wait): void {
    if (this.#hasWarned) return;
    this.#hasWarned = true;
    const message = `Lock "${key}" was given back: ${cause.message}`;
    warn(this.#settings.onWarning, { code: 'NOT_REPLICATED', message, key, cause });
  }
}
