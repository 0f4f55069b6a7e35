import type { CannotAcquireLockError } from '../api/errors';
import { clock } from '../internal/clock';
import { NOT_ASKED } from '../redis/failure';
import { SILENT } from '../redis/silence-times';
import { type Availability, unavailable } from './availability';
import type { GivenBack } from './give-back';
import type { Turn } from './local-queue';
import type { Entry, LockOfCall } from './lock-of-call';
import type { Wait } from './wait';

/** The call that has no answer. Times are in ms. */
interface Unanswered {
  readonly wait: Wait;
  /** What is left of its time for an answer. */
  timeLeft(): number;
}

/** How long a call goes without an answer of Redis: to its own attempts, or to that of the caller before it. */
export class Patience {
  readonly #lock: LockOfCall;
  readonly #availability: Availability;
  readonly #call: Unanswered;

  constructor(lock: LockOfCall, availability: Availability, call: Unanswered) {
    this.#lock = lock;
    this.#availability = availability;
    this.#call = call;
  }

  /**
   * ms for which an attempt may still be unanswered. Two silences count, both since this call was made, or the call that it
   * is a part of (`calledAt`). That of the connection may last for `unavailableAfter`. Where it has, that about this lock may
   * still last for `SILENT`: the event loop may have been blocked, so that answers to others lie unread.
   */
  leftOfSilence(now: number): number {
    const { unavailableAfter } = this.#lock.services.settings;
    const own = Math.min(SILENT, unavailableAfter) - this.#availability.silence(this.#call.wait.calledAt, now);
    return Math.max(own, unavailableAfter - this.#silence(now));
  }

  /** ms for which the connection has been silent since this call: perhaps it was another lock that it was asked about. */
  #silence(now: number): number {
    const since = this.#lock.services.connection.unansweredSince(this.#lock.names.lock);
    return this.#availability.silence(this.#call.wait.calledAt, now, since);
  }

  /**
   * The turn did not come in time. `tryEnter` takes it if it is free now; `undefined`: another holder has the lock. Throws
   * when Redis is silent. `beside`: in place of the turn of a shared lock. `hasNews`: see `LockContention`.
   */
  async withoutTurn(
    tryEnter: () => Entry | undefined,
    beside: Turn,
    hasNews: boolean | undefined,
  ): Promise<Entry | undefined> {
    const lock = this.#lock;
    if (lock.isShared) {
      const now = clock.now();
      // An answer to an earlier caller does not decide this one: it may need fewer permits.
      const mayRefuse = lock.isWaiterRefused && !hasNews;
      const isRefused = this.#availability.isRefused(now) && !this.#availability.isSilent(now) && mayRefuse;
      return isRefused ? undefined : beside;
    }
    const { wait } = this.#call;
    if (wait.isSingleAttempt) return this.#behindTurn(tryEnter);
    // The last attempt of the wait may fail only because it had little time: that proves nothing.
    const left = this.#lock.services.leastTimeout - this.#availability.silence(wait.startedAt, clock.now());
    if ((await this.#isAttemptAnswered(left)) || !this.#lock.isSilent) return undefined;
    throw this.unavailable();
  }

  /** A single attempt behind the turn: the one in flight, of the caller that has the turn, counts for it too. */
  async #behindTurn(tryEnter: () => Entry | undefined): Promise<Entry | undefined> {
    const { wait } = this.#call;
    const lock = this.#lock;
    // It may be a part of a call with less time than the one in front.
    const left = Math.max(this.#call.timeLeft(), lock.services.leastTimeout);
    if ((await this.#isAttemptAnswered(left)) ?? !lock.isSilent) return undefined;
    if (lock.releasingFor > 0) {
      // The unlock of this process has as long to be answered as any command of this caller.
      await wait.within(this.#call.timeLeft(), lock.nextLeaseOver());
      wait.throwIfInterrupted();
    }
    // The attempt in front failed: this caller makes its own, if the turn is free now.
    await clock.immediate();
    const entry = tryEnter();
    if (entry !== undefined) return entry;
    // Another caller was quicker.
    if ((await this.#isAttemptAnswered(this.#call.timeLeft())) ?? !lock.isSilent) return undefined;
    throw this.unavailable();
  }

  /** Whether Redis answers the attempt in flight; `undefined`: there is none, or it is neither answered nor failed yet. */
  async #isAttemptAnswered(within: number): Promise<boolean | undefined> {
    const { inFlight } = this.#availability;
    if (inFlight === undefined || within <= 0) return undefined;
    const outcome = inFlight.then(
      // A give-back that has failed does not reject.
      (answer) => (answer as Partial<GivenBack>).outcome !== 'failed',
      // The server answered about another one of its keys.
      (error: unknown) => error === NOT_ASKED,
    );
    const isAnswered = await this.#call.wait.within(within, outcome);
    this.#call.wait.throwIfInterrupted();
    return isAnswered;
  }

  /** The error of a caller whose attempts, or those of the caller in front, had no answer. */
  unavailable(): CannotAcquireLockError {
    const { names, releasingFor, services } = this.#lock;
    const ms = Math.round(Math.max(this.#silence(clock.now()), releasingFor));
    return unavailable(this.#call.wait.key, names.lock, this.#availability.failure, ms, services.connection);
  }
}
