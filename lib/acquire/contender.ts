import { noteContention } from '../diagnostics/channels';
import { clock } from '../internal/clock';
import { type LeaseKeeper, RedisLease } from '../lease/redis-lease';
import type { HeldLease } from '../lease/unlock-order';
import type { Grant, LockProtocol, NotGranted, Refusal } from '../protocols/protocol';
import type { LockRequest } from '../settings';
import { type Acquisition, newAcquisition } from './acquisition';
import { AttemptSeries } from './attempt-series';
import type { ContentionServices } from './contention-services';
import type { Turn } from './turn';
import type { Wait } from './wait';

/** Makes the result of a call from its lease; `null`: another holder had the lock until the wait was over. */
export type Use<T> = (lease: HeldLease | null) => T;

/** The lock that a caller contends for, with its queue of local callers. */
export interface ContendedLock extends LeaseKeeper {
  readonly services: ContentionServices;
  /** Whether a lease of this process is known to be held now. */
  readonly isHeldHere: boolean;
  /** The turn, if it is free or not needed. */
  tryEnter(protocol: LockProtocol): Turn | undefined;
  /** Waits for the turn; `undefined` when the caller's waitTime is over first, and for one that does not wait. */
  waitForTurn(wait: Wait, ttl: number): Promise<Turn | undefined>;
  /** The turn did not come in time; `undefined`: another holder has the lock. */
  withoutTurn(protocol: LockProtocol, wait: Wait): Promise<Turn | undefined>;
  /** A caller has its lease. */
  recordLease(lease: RedisLease, turn: Turn, protocol: LockProtocol): void;
  /** A caller has its result. */
  left(wait: Wait): void;
}

/**
 * One call, on its way to the lease: it takes the local turn, and then the lock in Redis. `use` makes the result of the
 * call from the lease; it gets `null` where another holder had the lock until the wait was over.
 *
 * Most locks are free. So that a call costs little then, there is one promise for the attempt and one for its result,
 * and no async function before the lease.
 */
export class Contender<T> {
  readonly #lock: ContendedLock;
  readonly #protocol: LockProtocol;
  readonly #request: LockRequest;
  readonly #wait: Wait;
  readonly #use: Use<T>;

  constructor(lock: ContendedLock, protocol: LockProtocol, request: LockRequest, wait: Wait, use: Use<T>) {
    this.#lock = lock;
    this.#protocol = protocol;
    this.#request = request;
    this.#wait = wait;
    this.#use = use;
  }

  run(): Promise<T> {
    const wait = this.#wait;
    // Redis already granted it to this process: no command is needed.
    if (wait.isSingleAttempt && this.#lock.isHeldHere) return Promise.resolve(null).then((none) => this.#end(none));
    const turn = this.#lock.tryEnter(this.#protocol);
    if (turn !== undefined) return this.#acquire(turn, wait.startedAt);
    noteContention(wait, 'local');
    return this.#lock.waitForTurn(wait, this.#request.ttl).then(
      (entered) => (entered === undefined ? this.#withoutTurn() : this.#inTurn(entered)),
      (error: unknown) => this.#fail(error),
    );
  }

  async #withoutTurn(): Promise<T> {
    let turn: Turn | undefined;
    try {
      turn = await this.#lock.withoutTurn(this.#protocol, this.#wait);
    } catch (error) {
      return this.#fail(error);
    }
    return turn === undefined ? this.#end(null) : this.#inTurn(turn);
  }

  /** The turn may bring an acquisition that the previous local holder made, with its answer. */
  #inTurn(turn: Turn): T | Promise<T> {
    const { inherited } = turn;
    if (inherited === undefined) return this.#acquire(turn, clock.now());
    turn.inherited = undefined;
    const { acquisition, answer } = inherited;
    const wait = this.#wait;
    if (wait.trace !== undefined) wait.trace.isHandedOver = answer.granted;
    acquisition.leastLife = this.#request.minHold;
    this.#throwIfInterrupted(turn, acquisition, answer.granted);
    if (!answer.granted) return this.#contend(turn, acquisition, false, undefined, Promise.resolve(answer));
    const now = clock.now();
    if (answer.until > now) return this.#succeed(turn, acquisition, answer, now);
    return this.#contend(turn, acquisition, true, this.#standBack());
  }

  /** At once, or when fewer attempts of others are in flight. */
  #acquire(turn: Turn, now: number): Promise<T> {
    const { sender } = this.#lock.services;
    const heldBack = sender.holdBack(this.#wait);
    if (heldBack === undefined) return this.#start(turn, now);
    this.#protocol.availability.attemptInFlight = heldBack;
    const goOn = (): void => {
      sender.window.goesOn();
      this.#protocol.availability.attemptInFlight = undefined;
    };
    return heldBack.then(
      () => {
        goOn();
        return this.#start(turn, clock.now());
      },
      (error: unknown) => {
        goOn();
        turn.release();
        return this.#fail(error);
      },
    );
  }

  /** `now`: when the clock was read last. A time before the sending is safe: a lease is counted from then. */
  #start(turn: Turn, now: number): Promise<T> {
    const acquisition = this.#newAcquisition(turn);
    acquisition.leastLife = this.#request.minHold;
    this.#throwIfInterrupted(turn, acquisition, false);
    const pause = this.#standBack();
    // With a signal the caller may leave before the answer to its attempt.
    const isPlain = pause === undefined && this.#wait.signal === undefined;
    return isPlain ? this.#attempt(turn, acquisition, now) : this.#contend(turn, acquisition, false, pause);
  }

  #newAcquisition(turn: Turn): Acquisition {
    const wait = this.#wait;
    const mayQueue = !wait.isSingleAttempt && turn.mayQueue;
    return newAcquisition(this.#lock.services, this.#request.ttl, mayQueue, wait.startedAt);
  }

  #standBack(): Promise<void> | undefined {
    return this.#lock.services.sender.standBack(this.#protocol, this.#wait);
  }

  /** The first attempt, which is enough where the lock is free. */
  #attempt(turn: Turn, acquisition: Acquisition, now: number): Promise<T> {
    const { sender } = this.#lock.services;
    let attempt: Promise<Grant | Refusal>;
    try {
      attempt = sender.send(this.#protocol, acquisition, this.#wait, sender.firstTimeout(this.#wait), now);
    } catch (error) {
      this.#abandon(turn, acquisition, false);
      this.#lock.left(this.#wait);
      return Promise.reject(error);
    }
    const generation = sender.window.sent();
    return attempt.then(
      (answer) => {
        sender.window.answered(generation);
        const answeredAt = clock.now();
        const grant = sender.grantIn(answer, this.#protocol, acquisition, answeredAt);
        if (grant === undefined) return this.#contend(turn, acquisition, false, undefined, attempt);
        this.#throwIfInterrupted(turn, acquisition, true);
        return this.#succeed(turn, acquisition, grant, answeredAt);
      },
      () => {
        sender.window.answered(generation);
        return this.#contend(turn, acquisition, false, undefined, attempt);
      },
    );
  }

  /** Attempts until one succeeds, or the wait is over. `sent`: the first one, where it was sent already. */
  async #contend(
    turn: Turn,
    acquisition: Acquisition,
    wasGranted: boolean,
    pause: Promise<void> | undefined,
    sent?: Promise<Grant | Refusal>,
  ): Promise<T> {
    let result: Grant | NotGranted;
    try {
      const series = new AttemptSeries(this.#lock.services.sender, this.#protocol, acquisition, this.#wait);
      result = await series.run(pause, sent);
    } catch (error) {
      this.#abandon(turn, acquisition, wasGranted);
      return this.#fail(error);
    }
    const isGranted = wasGranted || result.granted;
    this.#throwIfInterrupted(turn, acquisition, isGranted);
    if (result.granted) return this.#succeed(turn, acquisition, result, clock.now());
    this.#abandon(turn, acquisition, isGranted);
    return this.#end(null);
  }

  #throwIfInterrupted(turn: Turn, acquisition: Acquisition, isGranted: boolean): void {
    if (!this.#wait.isInterrupted) return;
    this.#abandon(turn, acquisition, isGranted);
    this.#lock.left(this.#wait);
    this.#wait.throwIfInterrupted();
  }

  #succeed(turn: Turn, acquisition: Acquisition, grant: Grant, now: number): T {
    const { minHold, renew } = this.#request;
    if (minHold > 0) acquisition.holdAtLeast(minHold, 0);
    const lease = new RedisLease(acquisition, grant, renew, now, this.#protocol, this.#lock);
    // The turn goes to the lease.
    this.#lock.recordLease(lease, turn, this.#protocol);
    return this.#end(lease);
  }

  /** The caller leaves without the lock: what it may have in Redis is removed, and the turn goes to the next caller. */
  #abandon(turn: Turn, acquisition: Acquisition, isGranted: boolean): void {
    if (isGranted || acquisition.mayBeInRedis) this.#lock.services.orphans.follow(acquisition, this.#protocol);
    turn.release();
  }

  #end(lease: RedisLease | null): T {
    this.#lock.left(this.#wait);
    return this.#use(lease);
  }

  #fail(error: unknown): never {
    this.#lock.left(this.#wait);
    throw error;
  }
}
