import { noteContention } from '../api/diagnostics';
import { cannotAcquire, LockQueueFullError, NotReplicatedError } from '../api/errors';
import { clock } from '../internal/clock';
import { assertAtEntry } from '../internal/states';
import { Backoff } from '../internal/timers';
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
import { SILENT } from '../redis/silence-times';
import { become, type CallState, IN_LINE } from './call-states';
import { type Claim, nextClaim, replyFor } from './claim';
import type { Hold } from './hold';
import type { RedisLease } from './lease';
import { BESIDE, Turn } from './local-queue';
import type { Entry, LockOfCall } from './lock-of-call';
import { Patience } from './patience';
import type { Grant, LockProtocol, Refusal, Released } from './protocol';
import { assertTimeToRepeat, Repetitions } from './repetitions';
import type { LockRequest } from './request';
import { Unreplicated } from './unreplicated';
import type { Wait } from './wait';

/**
 * One call on its way to its lease. It waits for its turn among the callers of this process, and then makes attempts in
 * Redis, until one is granted, its wait is over, or it fails. Between two attempts it waits for a release, or pauses
 * after a failure that may pass. Contention is not a failure: `lock` reports it with `LockTimeoutError`, `tryLock` with
 * `null`. Silence never counts as contention. Durations are in ms.
 */
export class Call {
  readonly request: LockRequest;
  readonly wait: Wait;
  readonly #lock: LockOfCall<Call>;
  readonly #protocol: LockProtocol;
  #state = IN_LINE;
  #turn: Turn | undefined;
  /** For a single attempt: ends the look at whether the client has a connection. */
  #endWatch: (() => void) | undefined;
  /** The call is one of the `waiting` callers of its lock. */
  #isWaiting = false;
  /** A grant came after a silence, and was requested once more. */
  #repetitions: Repetitions | undefined;
  #backoff: Backoff | undefined;
  /** Too few replicas acknowledged the last grant. */
  #unreplicated: Unreplicated | undefined;

  constructor(lock: LockOfCall<Call>, protocol: LockProtocol, request: LockRequest, wait: Wait) {
    this.#lock = lock;
    this.#protocol = protocol;
    this.request = request;
    this.wait = wait;
  }

  /**
   * Resolves to the lease, or to `null`: another holder had the lock until the wait was over. Rejects with NOT_ASKED, too. No
   * async function: each caller that waits for the turn would have a suspended one, and its memory.
   */
  run(): Promise<RedisLease | null> {
    const lock = this.#lock;
    const { wait } = this;
    const { leastTimeout, unconnected, waits } = lock.services;
    try {
      // Throws when the registry is closed.
      waits.begin(wait);
      // Redis already granted it to this process: no command is needed.
      if (wait.isSingleAttempt && lock.isHeldHere) {
        this.#noteWaiting('local');
        return Promise.resolve(this.#without());
      }
      if (wait.isSingleAttempt) this.#endWatch = unconnected.watch(wait, lock.names.lock, leastTimeout);
      const entry = lock.entryFor(this, this.#protocol);
      if (entry !== undefined) return Promise.resolve(this.#enter(entry));
      this.#noteWaiting('local');
      return lock.waitForTurn(this).then(
        (turn) => (turn === undefined ? this.#withoutTurn() : this.#enter(turn)),
        (error: unknown) => this.#fail(error),
      );
    } catch (error) {
      return this.#fail(error);
    }
  }

  /** Another caller of this process passed a lease on, or this one contends from now on. */
  #enter(entry: Entry): RedisLease | Promise<RedisLease | null> {
    if (entry instanceof Turn) return this.#contend(entry);
    this.#received(entry, this.#state.claim);
    this.#over();
    return entry;
  }

  #without(): null {
    this.#gone();
    this.#over();
    return null;
  }

  #fail(error: unknown): Promise<never> {
    this.#without();
    return Promise.reject(error);
  }

  /** The caller has its result. */
  #over(): void {
    const lock = this.#lock;
    this.#endWatch?.();
    if (this.#isWaiting) lock.waiting--;
    lock.left(this.wait);
  }

  // Its states

  #asking(claim: Claim): void {
    assertAtEntry(claim.question.reply !== undefined, 'A call that asks has an attempt in flight');
    this.#state = { name: become.asking(this.#state.name), claim };
  }

  #asleep(claim: Claim | undefined): void {
    assertAtEntry(claim?.question.reply === undefined, 'A call that sleeps has no attempt in flight');
    this.#state = { name: become.asleep(this.#state.name), claim };
  }

  /** An error: too few replicas have the grant. */
  #granted(claim: Claim, grant: Grant | NotReplicatedError): void {
    this.#state = { name: become.granted(this.#state.name), claim, grant };
  }

  /** Another caller of this process passed a lease on. `claim`: what it has asked for, and nobody goes on with. */
  #received(lease: RedisLease, claim: Claim | undefined): void {
    this.#leave({ name: become.served(this.#state.name), lease }, claim);
  }

  #gone(): void {
    this.#leave({ name: become.gone(this.#state.name) }, this.#state.claim);
  }

  /** The call does without what it may have in Redis: that is removed, and the turn goes to the next caller. */
  #leave(end: CallState, claim: Claim | undefined): void {
    const isGranted = this.#state.name === 'granted';
    this.#state = end;
    if (claim !== undefined) {
      const { hold, question } = claim;
      // An exchange was sent before this call could notice that it was interrupted.
      if (question.reply !== undefined) hold.attempts.doubt(question.reply);
      if (isGranted || hold.mayBeInRedis) this.#lock.services.givingBack.follow(hold);
    }
    this.#turn?.release();
  }

  // For the lease that ends before it, in this process

  /**
   * A lease of this process ended, and this caller is next. The script that makes its next attempt ends the hold: the
   * queue in Redis decides who is next. Resolves to what became of that hold.
   */
  exchange(ended: RedisLease, limit: number): Promise<Released> {
    const protocol = this.#protocol;
    const claim = this.#nextClaim();
    const { hold, question } = claim;
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
    question.reply = answered(attempt, Math.min(this.#firstTimeout(), this.#patience.leftOfSilence(hold.sentAt)));
    this.#asking(claim);
    return exchange.then(({ found }) => {
      // Where its caller has left, and nobody took it over, the lock is free when `unlock` resolves.
      const removing = this.#lock.services.givingBack.removeNow(limit, hold);
      return removing === undefined ? found : removing.then(() => found);
    });
  }

  /**
   * A lease of this process ended, and this caller, which waited for Redis, gets its hold. Its claim, with the last answer,
   * goes to `next`, if that asks for the same.
   */
  receive(lease: RedisLease, next: Call | undefined): void {
    const { claim } = this.#state;
    const isHandedOn = claim !== undefined && next?.goesOnWith(claim);
    if (claim !== undefined && !isHandedOn) this.#protocol.availability.withdraw(claim.question);
    this.#received(lease, isHandedOn ? undefined : claim);
  }

  /** Takes over the claim of the call before, if there is an answer to wait for. */
  goesOnWith(claim: Claim): boolean {
    const reply = replyFor(this.request, claim);
    if (reply === undefined) return false;
    // The attempt has the time of the call before, and this one may have less.
    claim.question.reply = answered(reply, this.#firstTimeout());
    this.#asking(claim);
    return true;
  }

  /** Another owner had the lock, as Redis answered last. */
  get wasRefused(): boolean {
    return this.#state.claim?.refusal !== undefined;
  }

  /** What it sent is not answered yet. */
  get isAttempting(): boolean {
    return this.#state.claim?.question.reply !== undefined;
  }

  /** The call is suspended, and can be woken: between two attempts, or (a shared lock) while one is in flight. */
  get mayBeWoken(): boolean {
    return this.wait.step !== undefined;
  }

  /** The call makes an attempt, or takes what it has received. */
  wake(): void {
    this.wait.step?.resume(undefined);
  }

  /** Of a shared lock, a lease of this process may end meanwhile, and its hold go to this caller: by `receive` or `exchange`. */
  async #wakeable<T>(step: Promise<T>): Promise<T> {
    // One that has no turn is not next.
    if (this.#turn === BESIDE) return step;
    this.#lock.suspended(this, true);
    try {
      return await step;
    } finally {
      this.#lock.suspended(this, false);
    }
  }

  // Attempts

  /**
   * Makes attempts until the call has the lock, or its wait is over while another owner has it. Of a shared lock, another
   * caller of this process may pass its lease on to this call while it is `#wakeable`: it is `served` then, which is looked
   * at before any answer.
   */
  async #contend(turn: Turn): Promise<RedisLease | null> {
    this.#turn = turn;
    const { wait } = this;
    const { isShared, services } = this.#lock;
    const protocol = this.#protocol;
    const { availability } = protocol;
    /** Of the next attempt; `undefined`: that of a first one. */
    let timeout: number | undefined;
    try {
      for (;;) {
        wait.throwIfInterrupted();
        let pause: Promise<void> | undefined;
        if (this.#state.claim?.question.reply === undefined)
          pause = wait.isSingleAttempt
            ? services.unconnected.pause(wait, this.#lock.names.lock)
            : protocol.standBack(wait);
        if (pause !== undefined) {
          // Redis cannot be asked: to callers behind this one, that is silence.
          if (wait.isSingleAttempt) availability.ask(clock.now());
          this.#asleep(this.#state.claim);
          await this.#wakeable(pause);
          if ((this.#state as CallState).name === 'served') return this.#end();
          if (wait.isSingleAttempt) continue;
          if (timeout !== undefined) timeout = Math.min(timeout, Math.max(wait.remaining, services.leastTimeout));
        }
        const attempt = this.#state.claim?.question.reply ?? this.#send(timeout);
        const claim = this.#state.claim as Claim;
        const { hold, question } = claim;
        let answer: Grant | Refusal | undefined;
        try {
          // The caller of a shared lock may get a hold of this process meanwhile.
          const mayReceive = isShared && this.#turn !== BESIDE;
          answer = await (mayReceive ? this.#wakeable(wait.unlessOver(attempt)) : wait.unlessAborted(attempt));
          if ((this.#state as CallState).name === 'served') return this.#end();
          hold.attempts.answered();
          // The key has to be released, as what an attempt without an answer may have left.
          if (answer.granted && answer.until <= clock.now()) throw new LateGrantError(hold.ttl);
          availability.answered(question.sentAt);
        } catch (error) {
          answer = undefined;
          if (error === NOT_ASKED) {
            hold.attempts.skipped();
            availability.answered(question.sentAt);
            throw error;
          }
          await this.#failed(error, claim, attempt);
        } finally {
          // Else the next call would take over an attempt that has ended.
          if (question.reply === attempt) question.reply = undefined;
        }
        if (answer?.granted) {
          this.#granted(claim, answer);
          if (!this.#mayBeOutdated(hold.sentAt)) return this.#end();
          timeout = await this.#pauseBeforeRepetition(hold, attempt);
          continue;
        }
        wait.throwIfInterrupted();
        await (answer === undefined ? this.#backOff() : this.#waitForRelease(answer, claim));
        if ((this.#state as CallState).name === 'served') return this.#end();
        const state: CallState = this.#state;
        if (state.name === 'granted') {
          const { sentAt = hold.sentAt } = state.grant as Grant;
          if (this.#mayBeOutdated(sentAt, this.#lock.names.lock)) {
            timeout = await this.#pauseBeforeRepetition(hold, Promise.resolve());
            continue;
          }
          if (wait.trace !== undefined) wait.trace.isHandedOver = true;
          return this.#end();
        }
        if (wait.remaining === 0) {
          this.#assertContended(claim);
          return this.#end();
        }
        timeout = wait.remaining;
      }
    } catch (error) {
      this.#gone();
      throw error;
    } finally {
      this.#over();
    }
  }

  /** What became of the attempts. */
  #end(): RedisLease | null {
    const state = this.#state;
    if (state.name === 'served') return state.lease;
    this.wait.throwIfInterrupted();
    if (state.name !== 'granted') {
      this.#gone();
      return null;
    }
    // The turn is the lease's from now on.
    const lease = this.#lock.acquired(state.claim.hold, state.grant as Grant, this.request, this.#turn as Turn);
    this.#state = { name: become.served(state.name), lease };
    return lease;
  }

  /** Sends one attempt. Throws, and sends nothing, when Redis has been silent for `unavailableAfter`. */
  #send(timeout: number | undefined): Promise<Grant | Refusal> {
    const { wait } = this;
    const claim = this.#nextClaim();
    const { hold, question } = claim;
    const { unavailableAfter } = this.#lock.services.settings;
    // A call that was made just now has seen no silence.
    const isNew = hold.sentAt - wait.calledAt < 1;
    const left = isNew ? unavailableAfter : this.#patience.leftOfSilence(hold.sentAt);
    if (left <= 0) throw this.#patience.unavailable();
    if (wait.trace !== undefined) wait.trace.attempts++;
    question.reply = this.#protocol.attempt(hold, Math.min(timeout ?? this.#firstTimeout(hold.sentAt), left));
    this.#asking(claim);
    return question.reply;
  }

  #nextClaim(): Claim {
    const waits = !this.wait.isSingleAttempt && this.#turn !== BESIDE;
    return nextClaim(this.#lock, this.#protocol, this, waits, this.#state.claim);
  }

  /** ms that are left of the time for an answer. A single attempt has `commandTimeout`, counted from the call, at most. */
  timeLeft(now = clock.now()): number {
    const { endsAround, endsAt, isSingleAttempt, startedAt } = this.wait;
    const { commandTimeout } = this.#lock.services.settings;
    const end = isSingleAttempt ? Math.min(startedAt + commandTimeout, endsAround) : endsAt;
    return (this.#repetitions?.endsAt ?? end) - now;
  }

  /** How long a first attempt has to be answered: some time in any case. */
  #firstTimeout(now?: number): number {
    return Math.max(this.timeLeft(now), this.#lock.services.leastTimeout);
  }

  get #patience(): Patience {
    return new Patience(this.#lock, this.#protocol.availability, this);
  }

  /** An attempt failed, or the caller left it. Throws the caller's error, unless it failed in a way that may pass. */
  async #failed(error: unknown, claim: Claim, attempt: Promise<unknown>): Promise<void> {
    const { hold, question } = claim;
    const { wait } = this;
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
      this.#granted(claim, error);
      this.#unreplicated ??= new Unreplicated(wait);
      await this.#unreplicated.giveBack(error, hold, this.#lock, this.timeLeft(), () => this.#asleep(undefined));
      return;
    }
    hold.attempts.failed(error, attempt);
    if (error instanceof CommandTimeoutError) {
      // Nobody else may ask about this lock for long: without this, Redis would seem to be silent until then. An error that
      // comes late ends no silence, as one that comes in time and may pass ends none: whether the lock is held, it doesn't say.
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

  /** Whether a grant is to be requested once more: see `Repetitions`. */
  #mayBeOutdated(sentAt: number, lockName?: string): boolean {
    const { connection } = this.#lock.services;
    return this.#repetitions?.areLeft !== false && connection.mayBeOutdated(sentAt, lockName);
  }

  /** Resolves to the timeout of the next attempt. Rejects where there is no time for it. */
  async #pauseBeforeRepetition(hold: Hold, attempt: Promise<unknown>): Promise<number> {
    assertTimeToRepeat(this.wait.key, this.timeLeft());
    this.#asleep(this.#state.claim);
    // In the server's eyes the caller has the lock. If it leaves during the pause, its key has to be removed: what is in
    // doubt is removed.
    hold.attempts.doubt(attempt);
    this.#repetitions ??= new Repetitions();
    await this.#repetitions.pause(this.wait, () => this.#firstTimeout());
    return Math.max(1, this.timeLeft());
  }

  /** Another owner has the lock. A message may grant it meanwhile. */
  async #waitForRelease(refusal: Refusal, claim: Claim): Promise<void> {
    const { wait } = this;
    const { availability } = this.#protocol;
    this.#backoff?.reset();
    claim.refusal = refusal;
    // Another owner has the lock, unless it is the grant that was not given back.
    if (this.#unreplicated?.isGivenBack) this.#unreplicated = undefined;
    this.#noteWaiting('remote');
    availability.refused(clock.now(), refusal.remaining, refusal.owner);
    if (wait.remaining === 0) return;
    this.#asleep(claim);
    const result = await this.#wakeable(this.#protocol.wait(claim.hold, refusal, wait));
    if ((this.#state as CallState).name === 'served' || !result.granted || result.until <= clock.now()) return;
    this.#granted(claim, result);
    // The answer to a poll that was asked before may never come.
    availability.answered(clock.now());
  }

  /**
   * Another caller has the lock: this one waits, if it is to. Throws when it would be one more than `maxWaiting`. Those that
   * came while it asked Redis stand behind it: it is not refused for them.
   */
  #noteWaiting(source: 'local' | 'remote'): void {
    const { wait } = this;
    const lock = this.#lock;
    noteContention(wait, source);
    if (wait.isSingleAttempt || this.#isWaiting) return;
    const { maxWaiting } = lock.services.settings;
    const inFront = this.#turn?.isHeld ? 0 : lock.waiting;
    if (inFront >= maxWaiting) throw new LockQueueFullError(wait.key, maxWaiting);
    this.#isWaiting = true;
    lock.waiting++;
  }

  async #backOff(): Promise<void> {
    this.#backoff ??= new Backoff();
    this.#asleep(this.#state.claim);
    if (this.wait.remaining > 0) await this.wait.sleep(this.#backoff.next());
  }

  /**
   * The wait is over. Throws unless it ended with contention. After a refusal, a last attempt without an answer is not
   * silence: it had little time.
   */
  #assertContended({ refusal }: Claim): void {
    const { availability } = this.#protocol;
    if (this.#unreplicated !== undefined) throw this.#unreplicated.failure();
    const isSilent = availability.silence(this.wait.startedAt, clock.now()) >= SILENT;
    if (refusal === undefined || isSilent || isServerAnswer(availability.failure)) throw this.#patience.unavailable();
  }

  /** The turn did not come in time. */
  async #withoutTurn(): Promise<RedisLease | null> {
    let entry: Entry | undefined;
    try {
      const tryEnter = () => this.#lock.entryFor(this, this.#protocol);
      entry = await this.#patience.withoutTurn(tryEnter, BESIDE, this.#protocol.hasNews);
      if (entry === undefined) this.wait.throwIfInterrupted();
    } catch (error) {
      return this.#fail(error);
    }
    return entry === undefined ? this.#without() : this.#enter(entry);
  }
}
