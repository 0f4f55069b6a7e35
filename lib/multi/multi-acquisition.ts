import { noteContention } from '../api/diagnostics';
import { CannotAcquireLockError, LockQueueFullError } from '../api/errors';
import { noAnswer } from '../core/availability';
import { endWhenLost, type InternalLease } from '../core/internal-lease';
import type { LockServices, RedisLock } from '../core/lock';
import type { LockRequest } from '../core/request';
import { inThisScope, Scope } from '../core/scope';
import type { CallForSeveral, SoughtKey } from '../core/several';
import { LEAST_TIME_TO_ANSWER, Wait } from '../core/wait';
import { clock, MIN_TTL, within } from '../internal/clock';
import { NOT_ASKED } from '../redis/failure';

/** ms; a call that has waited for so long keeps what it gets from then on: see `CallsForSeveral.isFirst`. */
const OVERTAKEN_FOR = 2_000;

/**
 * One acquisition of several locks, all or nothing.
 *
 * Where one server has them all, the acquisition asks for them by one script, which takes none while one is taken. It holds
 * nothing while it waits, until each of them may be free as far as is known here: then it asks for all again. Nobody waits
 * for it, so there is no order to keep. But those that need fewer keys are quicker: so a call goes in order after
 * `OVERTAKEN_FOR`, unless another one of its process has waited for one of its keys for longer.
 *
 * In order, as over several servers and inside a `run` of one of the keys from the start: while a lock is refused, the
 * acquisition keeps the locks before that one, gives back those behind it, and waits for that one alone. All processes have
 * the same order, so a caller that waits for a lock holds none that comes later in the order: no two callers wait for each
 * other in a circle (ordered acquisition, after Havender, 1968).
 */
export class MultiAcquisition implements CallForSeveral {
  previous: CallForSeveral | undefined;
  next: CallForSeveral | undefined;
  /** The time and the signal of the caller, for all of it. */
  readonly wait: Wait;
  readonly #parts: RedisLock[];
  readonly request: LockRequest;
  /** For `run`: a scope that a part enters again waits for the end of this. */
  readonly #isRun: boolean;
  /** What an attempt for one part asks for. */
  readonly #attempt: LockRequest;
  /** By the index of the part; `undefined`: not held. */
  readonly #leases: (InternalLease | undefined)[];
  /** The part that another holder had until the wait was over. */
  refusing: RedisLock | undefined;
  /** The attempts that were made together last: by the index of the part, until their answers are read. */
  readonly #attempts = new Map<number, Promise<InternalLease | null>>();
  /** The time of the acquisition is over then. Without a waitTime, what is sent first has `commandTimeout` by itself. */
  #endsAt: number;
  start: (() => void) | undefined;
  readonly sought: SoughtKey[] = [];
  /** How many releases of each sought key were noticed before it was asked about last. */
  #hintsBefore: readonly (number | undefined)[] = [];

  /** `parts` in the order that all processes share, at least one. */
  constructor(key: string, parts: readonly RedisLock[], request: LockRequest, isRun: boolean) {
    this.wait = new Wait(key, request.waitTime, request.signal);
    this.#parts = [...parts];
    this.request = request;
    this.#isRun = isRun;
    // A part is renewed while others are waited for. What is given back on the way is free at once.
    this.#attempt = { ...request, waitTime: 0, renew: true, minHold: 0 };
    this.#leases = parts.map(() => undefined);
    this.#endsAt = this.wait.isSingleAttempt ? Number.POSITIVE_INFINITY : this.wait.endsAt;
  }

  /** The leases of the parts; `null`: `refusing` was not free in time. */
  async acquire(): Promise<readonly InternalLease[] | null> {
    const { several } = this.#services;
    several.append(this);
    try {
      this.refusing = await this.#acquireAll();
      if (this.refusing === undefined) return this.#leases as InternalLease[];
      await this.#giveUp();
      return null;
    } catch (error) {
      await this.#giveUp();
      throw error;
    } finally {
      several.remove(this);
      for (const key of this.sought) several.leave(key);
      this.wait.end();
    }
  }

  /** Resolves to the part that was not free until the wait was over; `undefined`: all are held. */
  async #acquireAll(): Promise<RedisLock | undefined> {
    const { wait } = this;
    /** The part that Redis refused last. */
    let before: RedisLock | undefined;
    if (this.#keepsNone && this.#services.several.size > 1) await this.#waitUntilFree();
    for (let hasWaited = false; ; hasWaited = true) {
      this.#dropLost();
      if (this.#attempts.size === 0) this.#askForMissing();
      const failures = await this.#answers();
      if (wait.isSingleAttempt) this.#endsAt = wait.startedAt + this.#services.settings.commandTimeout;
      const missing = this.#leases.indexOf(undefined);
      if (missing < 0) {
        for (const key of this.sought) key.granted(clock.now());
        if (await this.#complete(hasWaited)) return undefined;
        continue;
      }
      const [index = missing, failure] = [...failures].find(([, one]) => one !== NOT_ASKED) ?? [];
      const refused = this.#parts[index] as RedisLock;
      const { remaining: waitTime } = wait;
      if (waitTime === 0) {
        // After a refusal, a last attempt without an answer is not silence: it had little time.
        if (failure !== undefined && (before === undefined || refused.isSilent)) throw failure;
        return failure === undefined ? refused : before;
      }
      if (failure === undefined) before = refused;
      if (failure === undefined && this.#keepsNone) {
        if (this.#leases.some((lease) => lease !== undefined)) await this.#inTime(this.#release(0));
        await this.#waitUntilFree(failures, index);
        continue;
      }
      // All that were asked for were granted.
      if (!failures.has(missing)) continue;
      const part = this.#parts[missing] as RedisLock;
      const releasing = this.#release(missing + 1);
      wait.holdsOthers = missing > 0;
      const entering = part.enter({ ...this.#attempt, waitTime }, this.#isRun, wait);
      const lease = await this.#endingLost(entering);
      if (lease === null) return part;
      this.#leases[missing] = lease;
      await this.#inTime(releasing);
    }
  }

  /** Settles as the promise does. What is lost meanwhile ends at once. */
  async #endingLost<T>(promise: Promise<T>): Promise<T> {
    const settled = new AbortController();
    for (const lease of this.#leases) if (lease !== undefined) endWhenLost(lease, settled.signal);
    try {
      return await promise;
    } finally {
      settled.abort();
    }
  }

  /** It holds none of the keys while it waits for another one. */
  get #keepsNone(): boolean {
    const { wait } = this;
    const { connection, several } = this.#services;
    const { watch } = (this.#parts[0] as RedisLock).passing.openProtocol();
    if (wait.isSingleAttempt || watch === undefined || this.#parts.length < 2) return false;
    // A sibling in the scope ends without a message.
    if (this.#parts.some((part) => part.isHeldInScope)) return false;
    if (clock.now() - wait.startedAt >= OVERTAKEN_FOR && several.isFirst(this)) return false;
    return connection.areTogether(this.#parts.map(({ names }) => names.lock));
  }

  /**
   * Waits until each part may be free, and then asks for all. `failures`: those that Redis has refused are not, until a
   * message says so, or it is time to ask. `refused`: the first of them, by its index.
   */
  async #waitUntilFree(failures?: ReadonlyMap<number, unknown>, refused = 0): Promise<void> {
    const { wait } = this;
    const { settings, several, waits } = this.#services;
    // Those that were evicted are cached again, and in use from now on.
    for (let index = this.sought.length; index < this.#parts.length; index++) {
      const part = (this.#parts[index] as RedisLock).readmitted();
      this.#parts[index] = part;
      this.sought.push(several.seek(part.passing));
    }
    const now = clock.now();
    for (const [index, key] of this.sought.entries()) {
      if (failures?.has(index) && failures.get(index) === undefined) key.refused(this.#hintsBefore[index], now);
    }
    if (this.sought.every((key) => key.mayBeFree(now))) return;
    noteContention(wait, 'remote');
    const lock = this.#parts[refused] as RedisLock;
    const { passing } = lock;
    if (passing.waiting >= settings.maxWaiting) throw new LockQueueFullError(lock.key, settings.maxWaiting);
    wait.lock = lock;
    wait.scope = Scope.current();
    waits.begin(wait);
    passing.waiting++;
    several.lookAgain(now);
    try {
      await wait.suspend<void>(Math.min(wait.remaining, OVERTAKEN_FOR), (resume, fail) => {
        this.start = inThisScope(() => {
          this.start = undefined;
          try {
            this.#askForMissing();
            resume();
          } catch (error) {
            fail(error);
          }
        });
        return () => (this.start = undefined);
      });
    } finally {
      passing.waiting--;
      waits.end(wait);
    }
  }

  /**
   * One attempt for each lock that is not held, up to one that another caller of this process has: those behind it would
   * be given back.
   */
  #askForMissing(): void {
    this.#hintsBefore = this.sought.map(({ protocol }) => protocol.hints);
    this.#services.connection.allOrNone(() => {
      for (const [index, part] of this.#parts.entries()) {
        if (this.#leases[index] !== undefined) continue;
        const { isBusyHere } = part;
        this.#attempts.set(index, part.enter(this.#attempt, this.#isRun, this.wait));
        if (isBusyHere) return;
      }
    });
  }

  /**
   * Resolves to those that were not granted, by their index, with the failure where there was one: a wait for the lock
   * retries it. Throws any other error than a failure of Redis, such as an abort.
   */
  async #answers(): Promise<ReadonlyMap<number, unknown>> {
    const attempts = this.#attempts;
    const results = await this.#inTime(Promise.allSettled(attempts.values()));
    const failures = new Map<number, unknown>();
    [...attempts.keys()].forEach((index, i) => {
      const result = results[i] as PromiseSettledResult<InternalLease | null>;
      if (result.status === 'rejected') failures.set(index, result.reason);
      else if (result.value === null) failures.set(index, undefined);
      else this.#leases[index] = result.value;
    });
    attempts.clear();
    for (const failure of failures.values()) {
      const mayPass = failure === undefined || failure === NOT_ASKED || failure instanceof CannotAcquireLockError;
      if (!mayPass) throw failure;
    }
    return failures;
  }

  /**
   * All are held. Those that waited get as much time as a grant gives: the ttl of a fixed lease, or the `minHold`, which
   * a process that dies leaves to the ttl. False: one of them was lost.
   */
  async #complete(hasWaited: boolean): Promise<boolean> {
    const { minHold, renew, ttl } = this.request;
    const leases = this.#leases as InternalLease[];
    const needed = Math.max(minHold, renew ? 0 : ttl);
    const short = leases.filter((lease) => (hasWaited || lease.isReentry) && lease.remaining < needed);
    const { unavailableAfter } = this.#services.settings;
    const extend = (lease: InternalLease): Promise<void> => lease.renew(Math.max(needed, MIN_TTL), unavailableAfter);
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
    const limit = Math.max(this.#endsAt - clock.now(), this.#services.leastTimeout);
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
