import { noteContention } from '../api/diagnostics';
import { type CannotAcquireLockError, cannotAcquire, LockQueueFullError, NotReplicatedError } from '../api/errors';
import type { KindSettings } from '../api/options';
import { clock } from '../internal/clock';
import { States } from '../internal/states';
import { Backoff } from '../internal/timers';
import type { Connection } from '../redis/connection';
import {
  answered,
  answerOf,
  CommandTimeoutError,
  isFinal,
  isServerAnswer,
  LateGrantError,
  NOT_ASKED,
  NotSentError,
  reasonOf,
  says,
} from '../redis/failure';
import type { LockNames } from '../redis/names';
import { LEARNS_REPLACEMENT, SILENT } from '../redis/silence-times';
import { type Question, unavailable } from './availability';
import type { GivenBack, GivingBack } from './give-back';
import { Hold } from './hold';
import { RedisLease } from './lease';
import { Turn } from './local-queue';
import type { OpenWaits } from './open-waits';
import type { Grant, LockProtocol, Refusal, Released } from './protocol';
import type { LockRequest } from './request';
import type { Unconnected } from './unconnected';
import { LEAST_TIME_TO_ANSWER, leastTimeout, type Wait } from './wait';

/** The most times that a call asks for its grant once more. On a connection that is slow, each answer is a late one. */
const MOST_REPETITIONS = 3;

/** The life of a call: its states, what ends each of them, and what may follow. */
const STATES = new States('call', {
  /** The call waits for the turn, or was just made. A hold of this process may come with the turn. */
  'in line': ['asking', 'asleep', 'served', 'gone'],
  /** An attempt is in flight, until it is answered or fails. The next caller in line may go on with it. */
  asking: ['granted', 'asleep', 'served', 'gone'],
  /** Between two attempts: it was refused or failed, or others go first. `fair`: a message may grant it. */
  asleep: ['asking', 'asleep', 'granted', 'served', 'gone'],
  /** Redis granted it the lock. After a silence it asks once more; what too few replicas have, it gives back. */
  granted: ['asleep', 'served', 'gone'],
  /** The call has its lease. */
  served: [],
  /** The call ended without a lease: by contention, an error, an abort or `close`. */
  gone: [],
});
const { become } = STATES;

type CallState = keyof typeof STATES.following;

/** What this process has asked Redis for. If its caller leaves, the next caller may continue with it. */
interface Claim {
  /** What the attempts ask for, and may leave in Redis. */
  readonly hold: Hold;
  /** The last attempt. */
  readonly question: Question<Grant | Refusal>;
  /** The last answer that another owner has the lock. */
  refusal?: Refusal | undefined;
}

/** What comes with the turn: the right to contend, or a lease at once, where the holder before passed its hold on. */
export type Entry = Turn | RedisLease;

/** What the calls of a registry share. */
export interface CallServices {
  readonly settings: KindSettings;
  readonly connection: Connection;
  readonly givingBack: GivingBack;
  readonly unconnected: Unconnected;
  readonly waits: OpenWaits;
  /** An owner value that was never used before. */
  nextOwner(): string;
  /** For an error about a key of the wrong type: an error that says more. `timeout` in ms. */
  explainWrongType(error: unknown, names: LockNames, timeout: number): Promise<unknown>;
  warnNotReplicated(cause: NotReplicatedError, key: string): void;
}

/** What a call needs of its lock. */
export interface LockOfCall {
  readonly names: LockNames;
  readonly services: CallServices;
  /** Callers that wait while another one has the lock, here or elsewhere. */
  waiting: number;
  /** Several callers of this process may have leases of it. */
  readonly isShared: boolean;
  /** A lease of this process is known to be held now. */
  readonly isHeldHere: boolean;
  /** Redis has refused the caller of this process that waits there. */
  readonly isWaiterRefused: boolean;
  /** ms for which Redis has not answered a release of this process. */
  readonly releasingFor: number;
  /** See `Availability.isSilent`. An unlock of this process that is not answered is silence too. */
  readonly isSilent: boolean;
  /** The turn, if it is free or not needed; or a lease of a hold that other callers of this process have. */
  tryEnter(call: Call, protocol: LockProtocol): Entry | undefined;
  /**
   * Waits for the turn, which may come with a lease already; `undefined` when the caller's waitTime is over first, and for
   * one that does not wait.
   */
  waitForTurn(call: Call): Promise<Entry | undefined>;
  /** The caller that has the turn is suspended from now on (see `Call.mayBeWoken`), or it is awake again. */
  sleeps(call: Call, mayBeWoken: boolean): void;
  /** Redis granted the lock to the caller that has the turn. */
  acquired(hold: Hold, grant: Grant, request: LockRequest, turn: Turn): RedisLease;
  /** Resolves when the next lease has ended. */
  nextLeaseOver(): Promise<void>;
  /** A caller has its result. */
  left(wait: Wait): void;
}

/**
 * One call on its way to its lease. It waits for its turn among the callers of this process, and then makes attempts in
 * Redis, until one is granted, its wait is over, or it fails. Between two attempts it waits for a release, or pauses
 * after a failure that may pass. Contention is not a failure: `lock` reports it with `LockTimeoutError`, `tryLock` with
 * `null`. Silence never counts as contention.
 *
 * Durations are in ms.
 */
export class Call {
  readonly request: LockRequest;
  readonly wait: Wait;
  readonly #lock: LockOfCall;
  readonly #protocol: LockProtocol;
  #state: CallState = 'in line';
  #turn: Turn | undefined;
  /** That of this call, or of a call before, which left it to this one. `undefined`: nothing was asked for. */
  #claim: Claim | undefined;
  /** The next attempt has this long to be answered; `undefined`: as a first one. */
  #timeout: number | undefined;
  /** A lease that came from another caller of this process while this one waited for Redis. */
  #received: RedisLease | undefined;
  /** False for a caller of a shared lock that has no turn: it makes one attempt, beside the caller that has it. */
  #mayQueue = true;
  /** How often a grant came after a silence, and was requested once more. */
  #repetitions = 0;
  /** The call is one of the `waiting` callers of its lock. */
  #isWaiting = false;
  /** The ttl that an attempt asks for. */
  readonly #ttl: number;
  /** The least timeout of an attempt in ms, even if less of the wait is left. */
  readonly #leastTimeout: number;
  /** The end of the wait, or of its repetitions. A single attempt has `commandTimeout`, counted from the call, at most. */
  #answerBy: number;
  #backoff: Backoff | undefined;
  /** Too few replicas acknowledged the last grant; since when; and whether Redis has confirmed that it was given back. */
  #notReplicated: { error: NotReplicatedError; since: number; isGivenBack: boolean } | undefined;

  constructor(lock: LockOfCall, protocol: LockProtocol, request: LockRequest, wait: Wait) {
    this.#lock = lock;
    this.#protocol = protocol;
    this.request = request;
    this.wait = wait;
    this.#ttl = protocol.ttlFor?.(request) ?? request.ttl;
    const { commandTimeout } = lock.services.settings;
    this.#leastTimeout = leastTimeout(lock.services.settings);
    this.#answerBy = wait.isSingleAttempt ? Math.min(wait.startedAt + commandTimeout, wait.endsAround) : wait.endsAt;
  }

  /** Resolves to the lease, or to `null`: another holder had the lock until the wait was over, or it was not asked for. */
  async run(): Promise<RedisLease | null> {
    const lock = this.#lock;
    const wait = this.wait;
    /** For a single attempt: ends the look at whether the client has a connection. */
    let endWatch: (() => void) | undefined;
    try {
      // Throws when the registry is closed.
      lock.services.waits.begin(wait);
      // Redis already granted it to this process: no command is needed.
      if (wait.isSingleAttempt && lock.isHeldHere) {
        this.#noteWaiting('local');
        this.#state = become.gone(this.#state);
        return null;
      }
      if (wait.isSingleAttempt) endWatch = lock.services.unconnected.watch(wait, lock.names.lock, this.#leastTimeout);
      let entry = lock.tryEnter(this, this.#protocol);
      if (entry === undefined) {
        this.#noteWaiting('local');
        entry = (await lock.waitForTurn(this)) ?? (await this.#withoutTurn());
      }
      if (entry instanceof RedisLease) {
        // The claim that an earlier call left to this one is not needed.
        this.#abandon('served');
        return entry;
      }
      this.#turn = entry;
      const grant = entry && (await this.#attempts());
      if (this.#received !== undefined) return this.#received;
      wait.throwIfInterrupted();
      if (entry !== undefined && grant !== undefined) {
        const lease = lock.acquired((this.#claim as Claim).hold, grant, this.request, entry);
        this.#state = become.served(this.#state);
        return lease;
      }
      this.#abandon('gone');
      return null;
    } catch (error) {
      this.#abandon('gone');
      throw error;
    } finally {
      endWatch?.();
      if (this.#isWaiting) lock.waiting--;
      lock.left(wait);
    }
  }

  /**
   * A lease of this process ended, and this caller is next. The script that makes its next attempt ends the hold: the
   * queue in Redis decides who is next. Resolves to what became of that hold.
   */
  exchange(ended: RedisLease, limit: number): Promise<Released> {
    const protocol = this.#protocol;
    const { hold, question } = this.#nextClaim();
    this.#state = become.asking(this.#state);
    const exchange = (protocol as Required<LockProtocol>).exchange(ended.owner, hold, limit, ended.hold.keep);
    const attempt = exchange.then(({ answer }) => {
      if (answer instanceof NotReplicatedError) throw answer;
      const isLeft = this.wait.isInterrupted || this.wait.isOver;
      if (answer?.granted && !isLeft) ended.handedOver(this.wait.trace);
      // Its ticket would be taken for that of the caller that has the turn now.
      if (answer === undefined && isLeft) throw new NotSentError(0);
      return answer ?? protocol.attempt(hold, this.#firstTimeout(hold.sentAt));
    });
    // This caller may have less time than the release of that hold.
    question.reply = answered(attempt, Math.min(this.#firstTimeout(), this.#leftOfSilence(hold.sentAt)));
    return exchange.then(({ found }) => {
      // Where its caller has left, and nobody took it over, the lock is free when `unlock` resolves.
      const removing = this.#lock.services.givingBack.removeNow(limit, hold);
      return removing === undefined ? found : removing.then(() => found);
    });
  }

  /**
   * A lease of this process ended, and this caller, which waited for Redis, gets its hold. Its claim goes to `next`, if
   * that asks for the same: an attempt in flight or a position in the queue, with the last answer.
   */
  receive(lease: RedisLease, next: Call | undefined): void {
    this.#received = lease;
    const claim = this.#claim;
    if (claim !== undefined && next?.goesOnWith(claim)) this.#claim = undefined;
    else if (claim !== undefined) this.#protocol.availability.withdraw(claim.question);
    this.#abandon('served');
  }

  /** Takes over the claim of the call before. False: that is for something else, or has no answer to wait for. */
  private goesOnWith(claim: Claim): boolean {
    const { request } = this;
    const { question, refusal } = claim;
    const { leastLife, permits, ttl, waits } = claim.hold;
    const isSame = Math.ceil(this.#ttl) === ttl && request.minHold === leastLife && request.permits === permits;
    const reply = question.reply ?? (refusal && Promise.resolve(refusal));
    if (reply === undefined || !waits || !isSame) return false;
    this.#claim = claim;
    // The attempt has the time of the call before, and this one may have less.
    question.reply = answered(reply, this.#firstTimeout());
    this.#state = become.asking(this.#state);
    return true;
  }

  /** Another owner had the lock, as Redis answered last. */
  get wasRefused(): boolean {
    return this.#claim?.refusal !== undefined;
  }

  /** What it sent is not answered yet. */
  get isAttempting(): boolean {
    return this.#claim?.question.reply !== undefined;
  }

  /** Attempts until the lock is granted; `undefined`: the wait is over while another owner holds it, or is before it. */
  async #attempts(): Promise<Grant | undefined> {
    const wait = this.wait;
    const protocol = this.#protocol;
    const { availability } = protocol;
    for (;;) {
      wait.throwIfInterrupted();
      const { unconnected } = this.#lock.services;
      if (!this.isAttempting) {
        const pause = wait.isSingleAttempt ? unconnected.pause(wait, this.#lock.names.lock) : protocol.standBack(wait);
        if (pause !== undefined) {
          // Redis cannot be asked: to callers behind this one, that is silence.
          if (wait.isSingleAttempt) availability.ask(clock.now());
          this.#state = become.asleep(this.#state);
          await this.#asleep(pause);
          if (this.#received !== undefined) return undefined;
          if (wait.isSingleAttempt) continue;
          if (this.#timeout !== undefined)
            this.#timeout = Math.min(this.#timeout, Math.max(wait.remaining, this.#leastTimeout));
        }
      }
      const attempt = this.#claim?.question.reply ?? this.#send();
      const claim = this.#claim as Claim;
      const { question } = claim;
      let answer: Grant | Refusal | undefined;
      try {
        // The caller of a shared lock may get a hold of this process meanwhile.
        const mayReceive = this.#lock.isShared && this.#mayQueue;
        answer = await (mayReceive ? this.#asleep(wait.unlessOver(attempt)) : wait.unlessAborted(attempt));
        if (this.#received !== undefined) return undefined;
        claim.hold.attempts.answered();
        if (answer.granted && answer.until <= clock.now()) {
          // The key has to be released, as what an attempt without an answer may have left.
          throw new LateGrantError(claim.hold.ttl);
        }
        availability.answered(question.sentAt);
      } catch (error) {
        answer = undefined;
        if (error === NOT_ASKED) {
          availability.answered(question.sentAt);
          return undefined;
        }
        await this.#failed(error, claim, attempt);
      } finally {
        // Else the next call would take over an attempt that has ended.
        if (question.reply === attempt) question.reply = undefined;
      }
      if (answer?.granted) {
        this.#state = become.granted(this.#state);
        if (!this.#mayBeOutdated(claim.hold.sentAt)) return answer;
        await this.#pauseBeforeRepetition(claim.hold, attempt);
        continue;
      }
      wait.throwIfInterrupted();
      const grant = answer === undefined ? await this.#backOff() : await this.#waitForRelease(answer, claim);
      if (this.#received !== undefined) return undefined;
      if (grant !== undefined) {
        if (this.#mayBeOutdated(grant.sentAt ?? claim.hold.sentAt, this.#lock.names.lock)) {
          await this.#pauseBeforeRepetition(claim.hold, Promise.resolve());
          continue;
        }
        if (wait.trace !== undefined) wait.trace.isHandedOver = true;
        return grant;
      }
      if (wait.remaining === 0) {
        this.#assertContended(claim);
        return undefined;
      }
      this.#timeout = wait.remaining;
    }
  }

  /** Sends one attempt. Throws, and sends nothing, when Redis has been silent for `unavailableAfter`. */
  #send(): Promise<Grant | Refusal> {
    const wait = this.wait;
    const { hold, question } = this.#nextClaim();
    const { unavailableAfter } = this.#lock.services.settings;
    // A call that was made just now has seen no silence.
    const isNew = hold.sentAt - wait.calledAt < 1;
    const left = isNew ? unavailableAfter : this.#leftOfSilence(hold.sentAt);
    if (left <= 0) throw this.#unavailable();
    if (wait.trace !== undefined) wait.trace.attempts++;
    this.#state = become.asking(this.#state);
    const timeout = Math.min(this.#timeout ?? this.#firstTimeout(hold.sentAt), left);
    question.reply = this.#protocol.attempt(hold, timeout);
    return question.reply;
  }

  /** The claim of the next attempt: all of a call's are for one hold. */
  #nextClaim(): Claim {
    const before = this.#claim;
    const hold = before?.hold ?? this.#newHold();
    if (before?.hold.attempts.wereNeverInDoubt) hold.renameTo(this.#newOwner());
    hold.stamp();
    hold.since = this.wait.startedAt;
    const question = this.#protocol.availability.ask<Grant | Refusal>(hold.sentAt);
    this.#claim = { hold, question, refusal: before?.refusal };
    return this.#claim;
  }

  #newHold(): Hold {
    const { minHold, permits } = this.request;
    const terms = { ttl: this.#ttl, minHold, permits, waits: !this.wait.isSingleAttempt && this.#mayQueue };
    return new Hold(this.#newOwner(), terms, this.#lock.services.connection, this.#protocol);
  }

  #newOwner(): string {
    const { permits } = this.request;
    const owner = this.#lock.services.nextOwner();
    // A semaphore counts what stands in the owner value.
    return permits === 1 ? owner : `${owner}*${permits}`;
  }

  /** An attempt failed, or the caller left it. Throws the caller's error, unless it failed in a way that may pass. */
  async #failed(error: unknown, claim: Claim, attempt: Promise<unknown>): Promise<void> {
    const { hold, question } = claim;
    const wait = this.wait;
    const { availability } = this.#protocol;
    if (wait.isInterrupted) {
      // The reason may be any value, such as an error of another Redis. It says nothing about the attempt.
      hold.attempts.doubt(attempt);
      if (wait.signal?.aborted) availability.withdraw(question);
      wait.throwIfInterrupted();
    }
    if (error instanceof NotReplicatedError) {
      // The server has granted it.
      hold.attempts.answered();
      availability.answered(question.sentAt);
      this.#state = become.granted(this.#state);
      await this.#giveBack(error, hold);
      return;
    }
    hold.attempts.failed(error, attempt);
    if (error instanceof CommandTimeoutError) {
      // Nobody else may ask about this lock for long: without this, Redis would seem to be silent until then.
      const noted = (): void => availability.answeredLate(question);
      void answerOf(error.late).then(noted, () => undefined);
    }
    availability.failed(error);
    if (!isFinal(error)) return;
    availability.withdraw(question);
    const { names, services } = this.#lock;
    const explain = () => wait.unlessAborted(services.explainWrongType(error, names, this.#firstTimeout()));
    const cause = says(error, 'wrongType') ? await explain() : error;
    throw cannotAcquire(wait.key, reasonOf(cause), cause);
  }

  /** Whether a grant is to be requested once more: see `Connection.mayBeOutdated`. Not more than `MOST_REPETITIONS` times. */
  #mayBeOutdated(sentAt: number, lockName?: string): boolean {
    const { connection } = this.#lock.services;
    return this.#repetitions < MOST_REPETITIONS && connection.mayBeOutdated(sentAt, lockName);
  }

  /**
   * A grant came after a silence, in which its server may have been frozen and replaced. The grant is requested once more,
   * by a second attempt with the same ticket: only a server that is still the master grants it again.
   */
  async #pauseBeforeRepetition(hold: Hold, attempt: Promise<unknown>): Promise<void> {
    this.#state = become.asleep(this.#state);
    // The caller has the lock as far as the server knows, and may leave now.
    hold.attempts.doubt(attempt);
    await this.wait.suspend<void>(Math.min(this.#timeLeft, LEARNS_REPLACEMENT), () => undefined);
    // All repetitions together have the time of one attempt.
    if (this.#repetitions++ === 0) this.#answerBy = clock.now() + this.#firstTimeout();
    this.#timeout = Math.max(1, this.#timeLeft);
  }

  /** Resolves to the lock itself where it was handed over. */
  async #waitForRelease(refusal: Refusal, claim: Claim): Promise<Grant | undefined> {
    const wait = this.wait;
    this.#backoff?.reset();
    claim.refusal = refusal;
    // Another owner has the lock, unless it is the grant that was not given back.
    if (this.#notReplicated?.isGivenBack) this.#notReplicated = undefined;
    this.#noteWaiting('remote');
    this.#protocol.availability.refused(clock.now(), refusal.remaining, refusal.owner);
    if (wait.remaining === 0) return undefined;
    this.#state = become.asleep(this.#state);
    const result = await this.#asleep(this.#protocol.wait(claim.hold, refusal, wait));
    if (this.#received !== undefined || !result.granted || result.until <= clock.now()) return undefined;
    this.#state = become.granted(this.#state);
    // A message granted it: the answer to a poll that was asked before may never come.
    this.#protocol.availability.answered(clock.now());
    return result;
  }

  /** Another caller has the lock: this one waits, if it is to. Throws when it would be one more than `maxWaiting`. */
  #noteWaiting(source: 'local' | 'remote'): void {
    const { wait } = this;
    const lock = this.#lock;
    noteContention(wait, source);
    if (wait.isSingleAttempt || this.#isWaiting) return;
    const { maxWaiting } = lock.services.settings;
    if (lock.waiting >= maxWaiting) throw new LockQueueFullError(wait.key, maxWaiting);
    this.#isWaiting = true;
    lock.waiting++;
  }

  /** Meanwhile a lease of this process may end, and its hold go to this caller: by `receive`, or by `exchange`. */
  async #asleep<T>(sleep: Promise<T>): Promise<T> {
    // One that has no turn is not next.
    if (!this.#mayQueue) return sleep;
    this.#lock.sleeps(this, true);
    try {
      return await sleep;
    } finally {
      this.#lock.sleeps(this, false);
    }
  }

  /** The call is suspended, and can be woken: between two attempts, or (a shared lock) while one is in flight. */
  get mayBeWoken(): boolean {
    return this.wait.step !== undefined;
  }

  /** The call makes an attempt, or takes what it has received. */
  wake(): void {
    this.wait.step?.resume(undefined);
  }

  async #backOff(): Promise<undefined> {
    this.#backoff ??= new Backoff();
    this.#state = become.asleep(this.#state);
    if (this.wait.remaining > 0) await this.wait.sleep(this.#backoff.next());
  }

  /**
   * Too few replicas acknowledged the grant: it is given back, and the wait goes on with another owner value. A release
   * that comes late finds nothing of the next grant. Throws when replicas have been missing for `unavailableAfter`.
   */
  async #giveBack(error: NotReplicatedError, hold: Hold): Promise<void> {
    const { wait } = this;
    const { givingBack, settings, warnNotReplicated } = this.#lock.services;
    if (wait.remaining > 0) warnNotReplicated(error, wait.key);
    const askedAt = clock.now();
    const { since = askedAt } = this.#notReplicated ?? {};
    const missing = { error, since, isGivenBack: false };
    this.#notReplicated = missing;
    const left = Math.min(this.#timeLeft, since + settings.unavailableAfter - askedAt);
    const limit = Math.min(settings.commandTimeout, Math.max(left, LEAST_TIME_TO_ANSWER));
    const question = this.#protocol.availability.ask<GivenBack>(askedAt);
    question.reply = givingBack.within(limit, hold);
    const { outcome } = await wait.unlessAborted(question.reply);
    this.#claim = question.reply = undefined;
    if (outcome !== 'failed') {
      this.#protocol.availability.answered(askedAt);
      missing.isGivenBack = true;
    }
    if (clock.now() - since >= settings.unavailableAfter) {
      throw cannotAcquire(wait.key, error.message, error);
    }
  }

  /**
   * The wait is over. Throws unless it ended with contention. After a refusal, a last attempt without an answer is not
   * silence: it had little time.
   */
  #assertContended({ refusal }: Claim): void {
    const { availability } = this.#protocol;
    const notReplicated = this.#notReplicated?.error;
    if (notReplicated !== undefined) throw cannotAcquire(this.wait.key, notReplicated.message, notReplicated);
    const isSilent = availability.silence(this.wait.startedAt, clock.now()) >= SILENT;
    if (refusal === undefined || isSilent || isServerAnswer(availability.failure)) throw this.#unavailable();
  }

  /** The caller does without what it may have in Redis: that is removed, and the turn goes to the next caller. */
  #abandon(end: 'served' | 'gone'): void {
    const isGranted = this.#state === 'granted';
    this.#state = become[end](this.#state);
    if (this.#claim !== undefined) {
      const { hold, question } = this.#claim;
      // An exchange was sent before this call could notice that it was interrupted.
      if (question.reply !== undefined) hold.attempts.doubt(question.reply);
      if (isGranted || hold.mayBeInRedis) this.#lock.services.givingBack.follow(hold);
    }
    this.#turn?.release();
  }

  // Without the turn

  /** The turn did not come in time; `undefined`: another holder has the lock. */
  async #withoutTurn(): Promise<Entry | undefined> {
    const { wait } = this;
    const { availability, permits } = this.#protocol;
    if (this.#lock.isShared) {
      // An answer to an earlier caller does not decide this one: it may need fewer permits.
      const now = clock.now();
      const mayRefuse = this.#lock.isWaiterRefused && !permits?.isNews;
      if (availability.isRefused(now) && !availability.isSilent(now) && mayRefuse) return undefined;
      this.#mayQueue = false;
      return new Turn();
    }
    if (wait.isSingleAttempt) return this.#besideTurn();
    // The last attempt of the wait may fail only because it had little time: that proves nothing.
    const left = this.#leastTimeout - availability.silence(wait.startedAt, clock.now());
    if ((await this.#isAttemptAnswered(left)) || !this.#lock.isSilent) return undefined;
    throw this.#unavailable();
  }

  /** A single attempt that is not made: the one in flight, of the caller that has the turn, counts for it too. */
  async #besideTurn(): Promise<Entry | undefined> {
    const { wait } = this;
    const lock = this.#lock;
    if ((await this.#isAttemptAnswered(Number.POSITIVE_INFINITY)) ?? !lock.isSilent) return undefined;
    if (lock.releasingFor > 0) {
      // The unlock of this process has as long to be answered as any command of this caller.
      await wait.within(this.#timeLeft, lock.nextLeaseOver());
      wait.throwIfInterrupted();
    }
    // The attempt in front failed: this caller makes its own, if the turn is free now.
    await clock.immediate();
    const entry = lock.tryEnter(this, this.#protocol);
    if (entry !== undefined) return entry;
    // Another caller was quicker.
    if ((await this.#isAttemptAnswered(this.#timeLeft)) ?? !lock.isSilent) return undefined;
    throw this.#unavailable();
  }

  /** Whether Redis answers the attempt in flight; `undefined`: there is none, or it is neither answered nor failed yet. */
  async #isAttemptAnswered(within: number): Promise<boolean | undefined> {
    const { wait } = this;
    const { inFlight } = this.#protocol.availability;
    if (inFlight === undefined || within <= 0) return undefined;
    const outcome = inFlight.then(
      // A give-back that has failed does not reject.
      (answer) => (answer as Partial<GivenBack>).outcome !== 'failed',
      () => false,
    );
    const isAnswered = await wait.within(within, outcome);
    wait.throwIfInterrupted();
    return isAnswered;
  }

  /** What is left of the time for an answer. */
  get #timeLeft(): number {
    return this.#answerBy - clock.now();
  }

  /** How long a first attempt has to be answered: some time in any case. */
  #firstTimeout(now = clock.now()): number {
    return Math.max(this.#answerBy - now, this.#leastTimeout);
  }

  /**
   * ms for which an attempt may still be unanswered. However long the connection has been silent, a question is asked:
   * after a block of the event loop, the answers to others may not have been read.
   */
  #leftOfSilence(now: number): number {
    const { unavailableAfter } = this.#lock.services.settings;
    const own = Math.min(SILENT, unavailableAfter) - this.#protocol.availability.silence(this.wait.calledAt, now);
    return Math.max(own, unavailableAfter - this.#silence(now));
  }

  /** ms for which Redis has not answered this call, nor anything else since a question that was sent before. */
  #silence(now: number): number {
    const since = this.#lock.services.connection.unansweredSince(this.#lock.names.lock);
    return this.#protocol.availability.silence(this.wait.calledAt, now, since);
  }

  /** The error of a caller whose attempts all failed. */
  #unavailable(): CannotAcquireLockError {
    const { names, releasingFor, services } = this.#lock;
    const ms = Math.round(Math.max(this.#silence(clock.now()), releasingFor));
    const { failure } = this.#protocol.availability;
    return unavailable(this.wait.key, names.lock, failure, ms, services.connection);
  }
}
