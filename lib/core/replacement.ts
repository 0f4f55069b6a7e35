import { CannotAcquireLockError, cannotAcquire, LockInspectionError } from '../api/errors';
import { isDetached, isKept, isOfLibrary } from '../api/owner-name';
import { clock, Timer } from '../internal/clock';
import { NOT_ASKED } from '../redis/failure';
import type { LockNames } from '../redis/names';
import { Call } from './acquire';
import { type BesideTheTurns, besideTheTurn, LockBeside } from './beside-the-turn';
import { type Inbox, messageTaken } from './inbox';
import type { InternalLease } from './internal-lease';
import type { RedisLease } from './lease';
import type { LockServices, RedisLock } from './lock';
import type { NotTaken, Travel } from './protocol';
import type { LockRequest } from './request';
import { listen, unlisten, Wait } from './wait';

/** ms in which the inbox opens mostly. Without one this process is not told of the end of the task before. */
const OPENS_WITHIN = 1_000;

/** ms between two reminders of the process whose lock was taken. */
const REMINDED_EVERY = 250;

/** ms after which a caller that waits for a holder that does not hear tries again: it may be another one. */
const TRIED_EVERY = 1_000;

/**
 * The time from when a lock is taken to when the task of the owner before has ended, or the grace is over. It has to be known
 * before the lock is taken: the message about the end may come before the grant.
 */
class Succession {
  isOver = false;
  readonly over: Promise<void>;
  readonly #remind: () => void;
  #end: () => void = () => undefined;
  readonly #stop: () => void;
  #timer: Timer | undefined;
  #endsAt = Number.POSITIVE_INFINITY;

  constructor(inbox: Inbox, from: string, by: string, names: LockNames) {
    this.over = new Promise((resolve) => (this.#end = resolve));
    this.#remind = () => inbox.remind(from, by, names);
    this.#stop = inbox.watch(from, (word) => {
      if (word === 'ended') this.end();
    });
  }

  /**
   * The lock was taken, or may have been: from now on the task before has `grace` ms. Its process is reminded, but where the
   * lock is another owner's by now: many calls may be refused, and each would remind.
   */
  begin(grace: number, isReminded: boolean): void {
    if (this.isOver || this.#endsAt !== Number.POSITIVE_INFINITY) return;
    this.#endsAt = clock.now() + grace;
    this.#next(isReminded ? REMINDED_EVERY : grace);
  }

  end(): void {
    this.isOver = true;
    this.#timer?.cancel();
    this.#stop();
    this.#end();
  }

  /** A word that was lost would cost all of the grace. */
  #next(pause: number): void {
    const left = this.#endsAt - clock.now();
    if (left <= 0) this.end();
    else
      this.#timer = new Timer(Math.min(left, pause), () => {
        if (clock.now() < this.#endsAt) this.#remind();
        this.#next(pause);
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

  /** Leaves no timer behind. */
  close(): void {
    for (const succession of this.#open) succession.end();
  }

  /** One call, with a `grace`. `null`: a holder that is not told had the lock until the wait was over. */
  async replace(lock: RedisLock, request: LockRequest, wait: Wait): Promise<InternalLease | null> {
    const { inbox } = this.#services;
    const { grace: _, ...ordinary } = request;
    /** Ends the ordinary call beside, which waits for a holder that is not told. */
    const stop = new AbortController();
    const stopping = { interrupt: (reason: unknown) => stop.abort(reason) };
    let waiting: Promise<InternalLease | null> | undefined;
    // Else the lock may be evicted meanwhile, and `close` would not find the lease.
    lock.runs++;
    try {
      // The first holder could not be told.
      await wait.within(OPENS_WITHIN, inbox.open());
      for (let isFirst = true; ; isFirst = false) {
        const lease = waiting === undefined ? await attempt(lock, ordinary, wait) : null;
        if (lease !== null) return lease;
        const from = await this.#holder(lock, wait, isFirst);
        const taken = from === undefined ? 'expired' : await this.#take(lock, from, request, wait);
        if (typeof taken === 'object') return taken;
        const isOver = wait.remaining === 0;
        // Another one has taken it, or it is free.
        if (taken !== 'unheard' && waiting === undefined && !(isOver && this.#isLate(wait))) continue;
        if (isOver) return null;
        if (waiting === undefined) {
          if (request.signal !== undefined) listen(request.signal, stopping);
          waiting = lock.enter({ ...ordinary, waitTime: wait.remaining, signal: stop.signal }, false, wait);
          waiting.catch(() => undefined);
        }
        const entered = await wait.within(TRIED_EVERY, waiting);
        if (entered === undefined) continue;
        waiting = undefined;
        return entered;
      }
    } finally {
      if (request.signal !== undefined) unlisten(request.signal, stopping);
      stop.abort();
      void waiting?.then(
        (lease) => lease?.[Symbol.asyncDispose](),
        () => undefined,
      );
      lock.runs--;
      lock.mayRest();
      wait.end();
    }
  }

  /** A call that does not wait has as long as a single attempt. */
  #isLate({ startedAt }: Wait): boolean {
    return clock.now() - startedAt >= this.#services.settings.commandTimeout;
  }

  /** The owner value of the holder; `undefined`: it is free. '': it is not known now. `isFirst`: the last answer counts. */
  async #holder(lock: RedisLock, wait: Wait, isFirst: boolean): Promise<string | undefined> {
    const said = isFirst ? lock.lastHolder?.owner : undefined;
    if (said !== undefined) return said;
    try {
      const { owner } = await wait.unlessOver(this.#services.inspection.inspect(lock.key, lock.names));
      return owner;
    } catch (error) {
      if (!(error instanceof LockInspectionError)) throw error;
      if (wait.remaining > 0) return '';
      throw cannotAcquire(lock.key, error.message, error.cause);
    }
  }

  /** Takes the lock from this owner, and waits until its task has ended, or the grace is over. */
  async #take(lock: RedisLock, from: string, request: LockRequest, wait: Wait): Promise<RedisLease | NotTaken> {
    const services = this.#services;
    const { connection, inbox } = services;
    const { key, names, passing } = lock;
    const isDetachedLease = isDetached(from);
    if (isKept(from) || !isOfLibrary(from)) return 'unheard';
    const isAsked = !isDetachedLease && !inbox.countsAll;
    if (isAsked && !(await wait.unlessOver(inbox.isHeardBy(from, names)))) return 'unheard';
    const owner = services.nextOwner();
    const succession = new Succession(inbox, from, owner, names);
    this.#open.add(succession);
    inbox.begins(owner);
    const protocol = passing.openProtocol();
    const travel = protocol.travel as Travel;
    let refusal: NotTaken | undefined;
    /** The client may have sent the command twice. The first one may have taken the lock, and another call taken it on. */
    let isOfCopy = false;
    let tries = 0;
    const replacing = besideTheTurn(protocol, {
      async attempt(hold, timeout) {
        tries++;
        const least = isDetachedLease || isAsked ? 0 : 1;
        const { disruptions } = connection;
        const answer = await travel.replace(from, hold, messageTaken(from, owner, names), least, timeout);
        if (typeof answer !== 'string') return answer;
        refusal = answer;
        isOfCopy = connection.disruptions !== disruptions;
        throw NOT_ASKED;
      },
      /** What an attempt without an answer may have taken. The task before may still run. */
      async release(...release) {
        await succession.over;
        return protocol.release(...release);
      },
    });
    const own = { ...services, nextOwner: () => owner, besideTurn: () => undefined, openProtocol: () => replacing };
    const { passing: beside } = new LockBeside(lock, from, own, this.#besideTheTurns);
    const inner = new Wait(key, wait.remaining, request.signal, wait);
    inner.lock = lock;
    inner.scope = wait.scope;
    beside.begin();
    let lease: RedisLease | null = null;
    try {
      // Until it enters its lease is renewed, however long the grace is.
      lease = await new Call(beside, replacing, { ...request, renew: true }, inner).run();
    } catch (error) {
      if (error !== NOT_ASKED) throw error;
    } finally {
      // A try that was not answered may have taken it.
      if (lease !== null || tries > 1 || isOfCopy || (tries === 1 && refusal === undefined))
        succession.begin(isDetachedLease ? 0 : (request.grace ?? 0), refusal === undefined);
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
      await wait.suspend<void>(Number.POSITIVE_INFINITY, (resume, fail) => {
        const { signal } = lease;
        const lost = (): void => fail(lease.lossError());
        void over.then(resume);
        signal.addEventListener('abort', lost);
        if (signal.aborted) lost();
        return () => signal.removeEventListener('abort', lost);
      });
      if (!request.renew) {
        await lease.renew();
        lease.endRenewal();
      }
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

/** A single attempt. Where the call waits, it does not fail for what passes: the holder is asked for next. */
async function attempt(lock: RedisLock, request: LockRequest, wait: Wait): Promise<InternalLease | null> {
  try {
    return await lock.enter({ ...request, waitTime: 0 }, false, wait);
  } catch (error) {
    if (wait.remaining > 0 && error instanceof CannotAcquireLockError) return null;
    throw error;
  }
}
