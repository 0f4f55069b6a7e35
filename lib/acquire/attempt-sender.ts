import type { NotReplicatedError } from '../errors';
import { clock } from '../internal/clock';
import { SharedTimer } from '../internal/shared-timer';
import type { Grant, LockProtocol, Refusal } from '../protocols/protocol';
import type { Connection } from '../redis/connection';
import { LockNames } from '../redis/names';
import { type WarningListener, warn } from '../warnings';
import type { Acquisition } from './acquisition';
import { AttemptWindow } from './attempt-window';
import { LEAST_TIME_TO_ANSWER, type Wait } from './wait';
import { WaitOutcome } from './wait-outcome';

/** ms in which a server that has woken up learns that it was replaced. It answers as before until then. */
export const LEARNS_REPLACEMENT = 100;

/** As many grants are enough to prove that all keys are on one server, even if some of them share a hash tag. */
const PROVING = 64;

interface AttemptSettings {
  readonly registryKey: string;
  readonly commandTimeout: number;
  readonly unavailableAfter: number;
  readonly minReplicas: number;
  readonly replicaTimeout: number;
  readonly onWarning: WarningListener;
}

/** For an error about a key of the wrong type: an error that says more. `timeout` in ms. */
type ExplainWrongType = (error: unknown, names: LockNames, timeout: number) => Promise<unknown>;

/** What the attempts of all callers of a registry share: how one is sent, and how long it has. Times in ms. */
export class AttemptSender {
  readonly settings: AttemptSettings;
  readonly #explainWrongType: ExplainWrongType;
  /** A first attempt has at least this long to be answered. */
  readonly firstAtLeast: number;
  /** For the pauses before late grants are requested once more. */
  readonly repetitions = new SharedTimer();
  readonly window = new AttemptWindow();
  readonly #connection: Connection;
  /** Grants that were asked about, to prove that all keys are on one server. */
  #asked = 0;
  #hasWarned = false;
  readonly outcome: WaitOutcome;

  constructor(settings: AttemptSettings, connection: Connection, explainWrongType: ExplainWrongType) {
    this.settings = settings;
    this.#connection = connection;
    this.#explainWrongType = explainWrongType;
    // Its own WAIT may have to wait for the WAIT of an earlier attempt on the same connection.
    const waitsForReplicas = settings.minReplicas > 0 ? 2 * settings.replicaTimeout : 0;
    this.firstAtLeast = LEAST_TIME_TO_ANSWER + waitsForReplicas;
    this.outcome = new WaitOutcome(settings.registryKey, connection, this.firstAtLeast);
  }

  /** The pause before an attempt in which the lock is left to other processes; `undefined`: none. */
  standBack(protocol: LockProtocol, wait: Wait): Promise<void> | undefined {
    return wait.isSingleAttempt ? undefined : protocol.standBack(wait);
  }

  /** Until a first attempt may be sent, while many are in flight; `undefined`: now. For half of the wait at most. */
  holdBack(wait: Wait): Promise<void> | undefined {
    return this.window.isFull ? this.window.holdBack(wait, this.timeLeft(wait) / 2) : undefined;
  }

  /**
   * Sends one attempt. Throws, and sends nothing, when Redis has been silent for `unavailableAfter`. `now`: for a caller
   * that has read the clock just now.
   */
  send(
    protocol: LockProtocol,
    acquisition: Acquisition,
    wait: Wait,
    timeout = this.firstTimeout(wait),
    now = clock.now(),
  ): Promise<Grant | Refusal> {
    acquisition.stamp(now);
    const { sentAt } = acquisition;
    const { availability } = protocol;
    availability.asked(sentAt);
    const left = this.settings.unavailableAfter - availability.silence(wait.startedAt, sentAt);
    if (left <= 0) throw this.outcome.error(protocol, wait);
    if (wait.trace !== undefined) wait.trace.attempts++;
    const attempt = protocol.attempt(acquisition, Math.min(timeout, left));
    availability.attemptInFlight = attempt;
    return attempt;
  }

  /** The grant in the answer to an attempt, that came in time: then the call is complete. */
  grantIn(answer: Grant | Refusal, protocol: LockProtocol, acquisition: Acquisition, now: number): Grant | undefined {
    const { availability } = protocol;
    if (!answer.granted || acquisition.isLate(now) || answer.until <= now) return undefined;
    availability.answered();
    availability.attemptInFlight = undefined;
    if (this.window.isFull) this.#prove(protocol, answer, acquisition);
    return answer;
  }

  /**
   * Many callers wait: those that are held back go together as soon as it is proven that all keys are on one server.
   * What is asked about several leases at once proves it.
   */
  #prove(protocol: LockProtocol, { owner }: Grant, { ttl }: Acquisition): void {
    if (this.#asked === PROVING || !this.#connection.needsProof) return;
    this.#asked++;
    protocol.renew(owner, ttl, 'ask', this.settings.commandTimeout, () => undefined);
  }

  /** For an error about a key of the wrong type: an error that says more. */
  explain(error: unknown, wait: Wait): Promise<unknown> {
    const names = new LockNames(this.settings.registryKey, wait.key);
    return this.#explainWrongType(error, names, this.firstTimeout(wait));
  }

  /** How long a first attempt has to be answered. */
  firstTimeout(wait: Wait): number {
    return Math.max(this.timeLeft(wait), this.firstAtLeast);
  }

  /** What is left of the wait. With a waitTime of 0, the one attempt has `commandTimeout`, counted from the call. */
  timeLeft(wait: Wait): number {
    const { commandTimeout } = this.settings;
    return wait.isSingleAttempt ? commandTimeout - (clock.now() - wait.startedAt) : wait.remaining;
  }

  /** Warns once: a caller that continues to wait would learn of it much later. */
  warnNotReplicated(cause: NotReplicatedError, { key }: Wait): void {
    if (this.#hasWarned) return;
    this.#hasWarned = true;
    const message = `Lock "${key}" was given back: ${cause.message}`;
    warn(this.settings.onWarning, { code: 'NOT_REPLICATED', message, key, cause });
  }
}
