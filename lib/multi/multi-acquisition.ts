import { CannotAcquireLockError } from '../api/errors';
import { noAnswer } from '../core/availability';
import type { HeldLease } from '../core/held-lease';
import type { LockServices, RedisLock } from '../core/lock';
import type { LockRequest } from '../core/request';
import { LEAST_TIME_TO_ANSWER, leastTimeout, Wait } from '../core/wait';
import { clock, MIN_TTL, within } from '../internal/clock';

/**
 * One acquisition of several locks, all or nothing.
 *
 * An acquisition makes one attempt for each lock, one right after the other, so that they go to Redis together. While a
 * lock is refused, the acquisition keeps the locks before that one, gives back those behind it, and waits for that one
 * alone. Where one server has them all, those behind it are not even taken. All processes have the same order, so a
 * caller that waits for a lock holds none that comes later in the order: no two callers wait for each other in a circle
 * (ordered acquisition, after Havender, 1968).
 */
export class MultiAcquisition {
  /** The time and the signal of the caller, for all of it. */
  readonly wait: Wait;
  readonly #parts: readonly RedisLock[];
  readonly request: LockRequest;
  /** For `run`: a scope that a part enters again waits for the end of this. */
  readonly #isRun: boolean;
  /** What an attempt for one part asks for. */
  readonly #attempt: LockRequest;
  /** By the index of the part; `undefined`: not held. */
  readonly #leases: (HeldLease | undefined)[];
  /** The part that another holder had until the wait was over. */
  refusing: RedisLock | undefined;
  /** The attempts that were made together last: by the index of the part, until their answers are read. */
  readonly #attempts = new Map<number, Promise<HeldLease | null>>();
  /** The time of the acquisition is over then. Without a waitTime, what is sent first has `commandTimeout` by itself. */
  #endsAt: number;

  /** `parts` in the order that all processes share, at least one. */
  constructor(key: string, parts: readonly RedisLock[], request: LockRequest, isRun: boolean) {
    this.wait = new Wait(key, request.waitTime, request.signal);
    this.#parts = parts;
    this.request = request;
    this.#isRun = isRun;
    // A part is renewed while others are waited for. What is given back on the way is free at once.
    this.#attempt = { ...request, waitTime: 0, renew: true, minHold: 0 };
    this.#leases = parts.map(() => undefined);
    this.#endsAt = this.wait.isSingleAttempt ? Number.POSITIVE_INFINITY : this.wait.endsAt;
  }

  /** The leases of the parts; `null`: `refusing` was not free in time. */
  async acquire(): Promise<readonly HeldLease[] | null> {
    try {
      this.refusing = await this.#acquireAll();
      if (this.refusing === undefined) return this.#leases as HeldLease[];
      await this.#giveUp();
      return null;
    } catch (error) {
      await this.#giveUp();
      throw error;
    } finally {
      this.wait.end();
    }
  }

  /** Resolves to the part that was not free until the wait was over; `undefined`: all are held. */
  async #acquireAll(): Promise<RedisLock | undefined> {
    for (let hasWaited = false; ; hasWaited = true) {
      this.#dropLost();
      const failures = await this.#attemptMissing();
      if (this.wait.isSingleAttempt) this.#endsAt = this.wait.startedAt + this.#services.settings.commandTimeout;
      const missing = this.#leases.indexOf(undefined);
      if (missing < 0) {
        if (await this.#complete(hasWaited)) return undefined;
        continue;
      }
      // All that were asked for were granted.
      if (!failures.has(missing)) continue;
      const part = this.#parts[missing] as RedisLock;
      const { remaining: waitTime } = this.wait;
      if (waitTime === 0) {
        const failure = failures.get(missing);
        if (failure !== undefined) throw failure;
        return part;
      }
      const releasing = this.#release(missing + 1);
      this.wait.holdsOthers = missing > 0;
      const lease = await part.enter({ ...this.#attempt, waitTime }, this.#isRun, this.wait);
      if (lease === null) return part;
      this.#leases[missing] = lease;
      await this.#inTime(releasing);
    }
  }

  /**
   * One attempt for each lock that is not held, up to one that another caller of this process has: those behind it would
   * be given back. Resolves to those that were not granted, by their index, with the failure where there was one: a wait
   * for the lock retries it. Throws any other error than a failure of Redis, such as an abort.
   */
  async #attemptMissing(): Promise<ReadonlyMap<number, unknown>> {
    const attempts = this.#attempts;
    this.#services.connection.inOrder(() => {
      for (const [index, part] of this.#parts.entries()) {
        if (this.#leases[index] !== undefined) continue;
        const { isBusyHere } = part;
        attempts.set(index, part.enter(this.#attempt, this.#isRun, this.wait));
        if (isBusyHere) return;
      }
    });
    const results = await this.#inTime(Promise.allSettled(attempts.values()));
    const failures = new Map<number, unknown>();
    [...attempts.keys()].forEach((index, i) => {
      const result = results[i] as PromiseSettledResult<HeldLease | null>;
      if (result.status === 'rejected') failures.set(index, result.reason);
      else if (result.value === null) failures.set(index, undefined);
      else this.#leases[index] = result.value;
    });
    attempts.clear();
    for (const failure of failures.values()) {
      if (failure !== undefined && !(failure instanceof CannotAcquireLockError)) throw failure;
    }
    return failures;
  }

  /**
   * All are held. Those that waited get as much time as a grant gives: the ttl of a fixed lease, or the `minHold`, which
   * a process that dies leaves to the ttl. False: one of them was lost.
   */
  async #complete(hasWaited: boolean): Promise<boolean> {
    const { minHold, renew, ttl } = this.request;
    const leases = this.#leases as HeldLease[];
    const needed = Math.max(minHold, renew ? 0 : ttl);
    const short = leases.filter((lease) => (hasWaited || lease.isReentry) && lease.remaining < needed);
    const { unavailableAfter } = this.#services.settings;
    const extend = (lease: HeldLease): Promise<void> => lease.renew(Math.max(needed, MIN_TTL), unavailableAfter);
    const results = short.length > 0 ? await this.#inTime(Promise.allSettled(short.map(extend))) : [];
    if (this.#dropLost()) return false;
    for (const result of results) if (result.status === 'rejected') throw result.reason;
    for (const lease of leases) {
      if (!renew) lease.endRenewal?.();
      if (minHold > 0) lease.holdAtLeast(minHold);
    }
    return true;
  }

  get #services(): LockServices {
    return (this.#parts[0] as RedisLock).services;
  }

  /**
   * What was lost during a wait is given back: its key may still be there, and would be in the way. So is what entered
   * again in a scope that has ended meanwhile.
   */
  #dropLost(): boolean {
    let hasLost = false;
    for (const [index, lease] of this.#leases.entries()) {
      if (!lease?.isOutlived && !lease?.checkLost()) continue;
      hasLost = true;
      this.#leases[index] = undefined;
      void lease[Symbol.asyncDispose]();
    }
    return hasLost;
  }

  /** Settles as the promise does. Rejects when the caller aborts, and when the time is over. */
  #inTime<T extends object>(promise: Promise<T>): Promise<T> {
    const { wait } = this;
    const limit = Math.max(this.#endsAt - clock.now(), leastTimeout(this.#services.settings));
    // Without an end and a signal, only `commandTimeout` limits it.
    if (limit === Number.POSITIVE_INFINITY && wait.signal === undefined) return promise;
    return wait.within(limit, promise).then((result) => {
      if (result !== undefined) return result;
      throw noAnswer(wait.key, this.#services.connection);
    });
  }

  /** Gives back those from this index on, one right after the other, so that the releases go to Redis together. */
  #release(from: number): Promise<unknown[]> {
    const released = this.#leases.slice(from);
    this.#leases.fill(undefined, from);
    return Promise.all(released.map((lease) => lease?.[Symbol.asyncDispose]()));
  }

  /**
   * Releases what is held, and what is granted from now on: its caller has left before the answer. A release that Redis
   * does not confirm at once goes on in the background.
   */
  async #giveUp(): Promise<void> {
    const late = [...this.#attempts.values()].map((attempt) =>
      attempt.then(
        (lease) => lease?.[Symbol.asyncDispose](),
        () => undefined,
      ),
    );
    await within(LEAST_TIME_TO_ANSWER, Promise.all([this.#release(0), ...late]));
  }
}
