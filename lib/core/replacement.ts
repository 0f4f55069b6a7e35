import { CannotAcquireLockError, cannotAcquire, LockInspectionError } from '../api/errors';
import { isDetached, isKept, isOfLibrary } from '../api/owner-name';
import { clock, Timer } from '../internal/clock';
import { NOT_ASKED } from '../redis/failure';
import type { LockNames } from '../redis/names';
import { Call } from './acquire';
import { noAnswer } from './availability';
import { type BesideTheTurns, besideTheTurn, LockBeside } from './beside-the-turn';
import { type Inbox, messageTaken } from './inbox';
import { endWhenLost } from './internal-lease';
import type { RedisLease } from './lease';
import type { LockServices, RedisLock } from './lock';
import type { Passing } from './passing';
import type { NotTaken, Travel } from './protocol';
import type { LockRequest } from './request';
import { LEAST_TIME_TO_ANSWER, Wait } from './wait';

/** ms in which the inbox opens mostly: it needs a connection of its own. */
const OPENS_WITHIN = 1_000;

/** ms between two reminders of the process whose lock was taken. */
const REMINDED_EVERY = 250;

/** ms after which a caller that waits for a holder that does not hear tries again: it may be another one. */
const TRIED_EVERY = 1_000;

/**
 * From when a lock is taken until the task of the owner before has ended, or its grace is over. It listens before the lock is
 * taken: the end may be heard before the grant.
 */
class Succession {
  isOver = false;
  /** Resolves to whether the process said so. Else its grace is over, or it was never begun. */
  readonly over: Promise<boolean>;
  readonly #remind: () => Promise<unknown>;
  /** It is on its way: over a connection that does not answer, each one more would be sent once more. */
  #reminder: Promise<unknown> | undefined;
  #end: (isSaid: boolean) => void = () => undefined;
  readonly #stop: () => void;
  #timer: Timer | undefined;

  constructor(inbox: Inbox, from: string, by: string, names: LockNames) {
    this.over = new Promise((resolve) => (this.#end = resolve));
    this.#remind = () => inbox.remind(from, by, names);
    this.#stop = inbox.watch(from, (word) => {
      if (word === 'ended') this.end(true);
    });
  }

  /**
   * The lock was taken, or may have been: from now on the task before has `grace` ms. Its process is reminded, but where the
   * lock is another owner's by now: many calls may be refused, and each would remind.
   */
  begin(grace: number, isReminded: boolean): void {
    if (!this.isOver) this.#next(clock.now() + grace, isReminded ? REMINDED_EVERY : grace);
  }

  end(isSaid = false): void {
    this.isOver = true;
    this.close();
    this.#end(isSaid);
  }

  /** Leaves no timer behind. The end is not heard any more: what waits for it does nothing to the lock. */
  close(): void {
    this.#timer?.cancel();
    this.#stop();
  }

  /** A word that was lost would cost all of the grace. */
  #next(endsAt: number, pause: number): void {
    const left = endsAt - clock.now();
    if (left <= 0) this.end();
    else
      this.#timer = new Timer(Math.min(left, pause), () => {
        if (clock.now() < endsAt) this.#reminder ??= this.#remind().finally(() => (this.#reminder = undefined));
        this.#next(endsAt, pause);
      });
  }
}

/** Calls that take a lock from its holder, which hears of it: see `LockOptions.replace`. */
export class Replacements {
  readonly #services: LockServices;
  readonly #besideTheTurns: BesideTheTurns;
  readonly #open = new Set<Succession>();

  constructor(services: LockServices, besideTheTurns: BesideTheTurns) {
    this.#services = services;
    this.#besideTheTurns = besideTheTurns;
  }

  /** What was taken stays taken until its key ends: the task before may be at work. */
  close(): void {
    for (const succession of this.#open) succession.close();
  }

  /** One call, with a `grace`. `null`: a holder that is not told had the lock until the wait was over. */
  async replace(lock: RedisLock, request: LockRequest, wait: Wait): Promise<RedisLease | null> {
    /** The ordinary call beside, which waits for a holder that is not told. */
    let waiting: Part | undefined;
    /** In the round before, Redis said that nobody had it. */
    let wasFree = false;
    const settled = new AbortController();
    // Else the lock may be evicted meanwhile, and `close` would not find the lease.
    lock.runs++;
    try {
      // Else the next call that replaces could not tell this registry. Time is left for an attempt.
      const opensWithin = wait.isSingleAttempt ? LEAST_TIME_TO_ANSWER : Math.min(OPENS_WITHIN, wait.remaining / 2);
      await this.#within(opensWithin, this.#services.inbox.open(), wait);
      for (let isFirst = true; ; isFirst = false) {
        const lease = waiting === undefined ? await attempt(lock, request, wait) : null;
        if (lease !== null) return lease;
        const from = await this.#holder(lock, wait, isFirst, waiting !== undefined);
        // What the call beside has got is not to be taken from it.
        const isFree = from === undefined || waiting?.hasEntered === true;
        const taken = isFree ? 'expired' : await this.#take(lock, from, request, wait);
        if (typeof taken === 'object') return taken;
        if (waiting === undefined) {
          const isOver = wait.remaining === 0;
          // Another one has taken it; or it is free, unless it stays so: then a caller here has the turn, and sleeps.
          const isTriedAgain = taken === 'stolen' || (taken === 'expired' && !wasFree);
          wasFree = taken === 'expired';
          // A call that does not wait has as long as a single attempt.
          const isLate = isOver && clock.now() - wait.startedAt >= this.#services.settings.commandTimeout;
          if (isTriedAgain && !isLate) continue;
          if (isOver) return null;
          waiting = partOf(lock, request, wait);
          // This call may take the lock from it as it enters.
          void waiting.entered.then((entered) => entered && endWhenLost(entered, settled.signal));
        }
        const entered = await wait.within(TRIED_EVERY, waiting.lease);
        if (entered === undefined) continue;
        if (entered?.checkLost()) throw entered.lossError();
        waiting = undefined;
        return entered;
      }
    } finally {
      settled.abort();
      waiting?.wait.interrupt(undefined);
      void waiting?.entered.then((lease) => lease?.[Symbol.asyncDispose]());
      lock.runs--;
      lock.mayRest();
      wait.end();
    }
  }

  /** Settles as the promise does, or with `undefined` after `ms`. As no ordinary call waits meanwhile, `close` interrupts it here. */
  async #within<T>(ms: number, promise: Promise<T>, wait: Wait): Promise<T | undefined> {
    const { waits } = this.#services;
    waits.begin(wait);
    try {
      return await wait.within(ms, promise);
    } finally {
      waits.end(wait);
    }
  }

  /**
   * The owner value of the holder; `undefined`: it is free. '': it is not known now. `isFirst`: the last answer counts.
   * `isBeside`: an ordinary call says what the end of the wait means.
   */
  async #holder(lock: RedisLock, wait: Wait, isFirst: boolean, isBeside: boolean): Promise<string | undefined> {
    const said = isFirst ? lock.lastHolder?.owner : undefined;
    if (said !== undefined) return said;
    const { connection, inspection } = this.#services;
    try {
      const state = await this.#within(timeToAnswer(wait), inspection.inspect(lock.key, lock.names), wait);
      if (state !== undefined) return state.owner;
      if (isBeside) return '';
      throw noAnswer(lock.key, connection);
    } catch (error) {
      if (!(error instanceof LockInspectionError)) throw error;
      if (isBeside || wait.remaining > 0) return '';
      throw cannotAcquire(lock.key, error.message, error.cause);
    }
  }

  /** Takes the lock from this owner, and waits until its task has ended, or the grace is over. */
  async #take(lock: RedisLock, from: string, request: LockRequest, wait: Wait): Promise<RedisLease | NotTaken> {
    const services = this.#services;
    const { connection, inbox } = services;
    const { names } = lock;
    const isDetachedLease = isDetached(from);
    if (isKept(from) || !isOfLibrary(from)) return 'unheard';
    const isAsked = !isDetachedLease && !inbox.countsAll;
    if (isAsked && !(await this.#within(timeToAnswer(wait), inbox.isHeardBy(from, names), wait))) return 'unheard';
    const owner = services.nextOwner();
    const succession = new Succession(inbox, from, owner, names);
    this.#open.add(succession);
    inbox.begins(owner);
    const protocol = lock.passing.openProtocol();
    const travel = protocol.travel as Travel;
    let refusal: NotTaken | undefined;
    let mayHaveIt = false;
    let givenTtl = 0;
    const grace = isDetachedLease ? 0 : (request.grace ?? 0);
    let lease: RedisLease | null = null;
    const replacing = besideTheTurn(protocol, {
      async attempt(hold, timeout) {
        const mayHaveItBefore = mayHaveIt;
        mayHaveIt = true;
        givenTtl = hold.ttl;
        const least = isDetachedLease || isAsked ? 0 : 1;
        const { disruptions } = connection;
        const answer = await travel.replace(from, hold, messageTaken(from, owner, names), least, timeout);
        if (typeof answer !== 'string') return answer;
        refusal = answer;
        // The client may have sent the command twice: the first one has taken the lock, and another call has taken it on.
        mayHaveIt = mayHaveItBefore || connection.disruptions !== disruptions;
        throw NOT_ASKED;
      },
      /**
       * What an attempt without an answer may have taken, perhaps only just now: the task before may still run. So it is kept
       * until the grace is over since then.
       */
      async release(of, timeout, keep, now) {
        const isEndSaid = await succession.over;
        const isLeft = lease === null && !isEndSaid && grace > 0;
        return protocol.release(of, timeout, isLeft ? { left: grace, minHold: grace, ttl: givenTtl } : keep, now);
      },
    });
    const own = { ...services, nextOwner: () => owner, besideTurn: () => undefined, openProtocol: () => replacing };
    const beside = new LockBeside(lock, from, own, this.#besideTheTurns);
    try {
      // Until it enters its lease is renewed, however long the grace is.
      lease = await partOf(lock, { ...request, renew: true }, wait, wait.remaining, beside.passing).lease;
    } catch (error) {
      if (error !== NOT_ASKED) throw error;
    } finally {
      if (mayHaveIt) succession.begin(grace, refusal === undefined);
      else succession.end();
      void succession.over.then(() => {
        this.#open.delete(succession);
        if (lease === null) inbox.ended({ owner }, names);
      });
    }
    return lease === null ? (refusal ?? 'expired') : this.#entered(lease, request, succession, wait);
  }

  async #entered(lease: RedisLease, request: LockRequest, { over }: Succession, wait: Wait): Promise<RedisLease> {
    const { inbox, waits } = this.#services;
    try {
      waits.begin(wait);
      const lost = new Promise<void>((resolve) => lease.signal.addEventListener('abort', () => resolve()));
      if (!lease.checkLost()) await wait.unlessOver(Promise.race([over, lost]));
      // Another one may have taken it meanwhile, from a process that stood still and has heard nothing of it.
      const left = wait.endsAt + (request.grace ?? 0) - clock.now();
      await lease.renew(undefined, wait.isSingleAttempt ? undefined : Math.max(left, LEAST_TIME_TO_ANSWER));
      if (!request.renew) lease.endRenewal();
      if (lease.checkLost()) throw lease.lossError();
      inbox.enters(lease.owner);
      return lease;
    } catch (error) {
      // Nobody else enters before the task of the owner before has ended, and the one that took it from this one hears of it then.
      lease.endMinHold();
      void over.then(() => lease[Symbol.asyncDispose]()).finally(() => inbox.enters(lease.owner));
      throw error;
    } finally {
      waits.end(wait);
    }
  }
}

/** A call that is a part of another one. */
interface Part {
  readonly wait: Wait;
  readonly lease: Promise<RedisLease | null>;
  /** What it got, if anything. Never rejects. */
  readonly entered: Promise<RedisLease | null>;
  hasEntered: boolean;
}

/** ms; a call that does not wait has the deadline of the command. */
function timeToAnswer({ isSingleAttempt, remaining }: Wait): number {
  return isSingleAttempt ? Number.POSITIVE_INFINITY : Math.max(remaining, LEAST_TIME_TO_ANSWER);
}

/** A call of the lock, or of one beside it, which ends with the call `around` it at the latest. */
function partOf(
  lock: RedisLock,
  request: LockRequest,
  around: Wait,
  waitTime = around.remaining,
  passing: Passing<LockServices> = lock.passing,
): Part {
  const wait = new Wait(lock.key, waitTime, request.signal, around);
  wait.lock = lock;
  wait.scope = around.scope;
  passing.begin();
  const lease = new Call(passing, passing.openProtocol(), request, wait).run();
  const entered = lease.catch(() => null);
  const part = { wait, lease, entered, hasEntered: false };
  void entered.then((got) => (part.hasEntered = got !== null));
  return part;
}

/** A single attempt. Where the call waits, it does not fail for what passes: the holder is asked for next. */
async function attempt(lock: RedisLock, request: LockRequest, wait: Wait): Promise<RedisLease | null> {
  try {
    return await partOf(lock, request, wait, 0).lease;
  } catch (error) {
    if (wait.remaining > 0 && error instanceof CannotAcquireLockError) return null;
    throw error;
  }
}
