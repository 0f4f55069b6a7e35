import { randomUUID } from 'node:crypto';
import type { Lease } from '../api/distributed-lock';
import { CannotAcquireLockError, LockLostError, NotLockOwnerError, RegistryClosedError } from '../api/errors';
import type { OnceOptions } from '../api/options';
import { mayPass } from '../core/availability';
import type { ResultKeys, Results } from '../core/backend';
import { repeated } from '../core/give-back';
import type { RedisLock } from '../core/lock';
import { lockRequest } from '../core/request';
import { Scope } from '../core/scope';
import { LEAST_TIME_TO_ANSWER, Wait } from '../core/wait';
import { clock } from '../internal/clock';
import { lua } from '../internal/lua';
import { abortSignal, type Checks, callback, checkedOptions, duration, positive, string } from '../internal/validation';
import { causeOf, messageOf, reasonOf, serverErrorCode } from '../redis/failure';

/** Run by `lease.eval`, so only while the lock is held. Locks in memory know it by its text, and do what it does. */
export const STORE_RESULT = lua('once/store-result');

/** bytes; a longer result belongs elsewhere, and its place may be the result. */
const LONGEST_RESULT = 2 ** 20;

/** JSON has no word for `undefined`, which a task returns that only does something. */
const NOTHING = '';

const CHECKS: Checks<OnceOptions<unknown>> = {
  keepFor: duration,
  waitTime: positive,
  signal: abortSignal,
  serialize: callback,
  deserialize: callback,
};

type Task = (lease: Lease) => unknown;

/** The keys of the result of a lock. Throws `RangeError` if they could not share the lock's hash slot. */
function keysOf({ names }: RedisLock): ResultKeys {
  const { lock } = names;
  return { result: names.companion('once'), forgotten: `${names.companion('evals')}:forgotten`, lock };
}

/** A caller hears this in place of a result: it leads from now on. */
const LEAD = Symbol('lead');

type Heard = string | typeof LEAD;

/** One call, with what it was given: this never stands for another call. */
class Caller {
  readonly task: Task;
  readonly serialize: Serialize;
  readonly keepFor: number;
  readonly wait: Wait;
  /** The text of the result, or that the caller leads now. Of the leader: the outcome of its attempt. */
  heard!: Promise<Heard>;
  hear!: (heard: Heard) => void;
  fail!: (error: unknown) => void;

  constructor(task: Task, serialize: Serialize, keepFor: number, wait: Wait) {
    this.task = task;
    this.serialize = serialize;
    this.keepFor = keepFor;
    this.wait = wait;
    this.heard = new Promise((resolve, reject) => {
      this.hear = resolve;
      this.fail = reject;
    });
    // It may leave before.
    this.heard.catch(() => undefined);
  }
}

/** What one caller does for all of its flight: it looks for the result, and runs its own task under the lock. */
class Attempt {
  readonly caller: Caller;
  /** The text of a result that is there: read, or stored by the task. The result counts, whatever becomes of the lock. */
  stored: string | undefined;
  /** Redis has granted the lock. */
  hadLock = false;
  /** The task runs here, or has run. */
  isRunning = false;
  /** The result was forgotten while the task ran: it is for nobody who may have called after that. */
  isForgotten = false;
  /** The scope of the task. */
  scope: Scope | undefined;
  readonly waiting = new AbortController();

  constructor(caller: Caller) {
    this.caller = caller;
  }
}

/**
 * The callers of one process that want the result of one key: one of them leads, which asks for all. When the leader
 * leaves before its task runs, or fails by itself, the next caller leads, with a task and a time of its own. The flight
 * ends with the result, with an error that is that of all, or when all callers have left before the task ran.
 */
class Flight {
  /** In the order of their calls. */
  readonly callers = new Set<Caller>();
  /** The caller that leads, or was called to. `undefined`: the next one is about to be, or the flight is over. */
  leader: Caller | undefined;
  /** That of the leader. An earlier one that has not ended yet does not count any more. */
  attempt: Attempt | undefined;
  /** Since when Redis has not said whether there is a result; `undefined`: it has, or was not asked. */
  silentSince: number | undefined;
}

/** Runs a task once for all callers of all processes: see `LockRegistry.once`. */
export class Once {
  readonly #results: Results;
  /** ms */
  readonly #timeout: number;
  readonly #flights = new Map<string, Flight>();
  /** The scopes of the tasks that run: also where later callers do not wait for their results. */
  readonly #tasks = new Set<Scope | undefined>();

  /** `timeout`: ms for a command. */
  constructor(results: Results, timeout: number) {
    this.#results = results;
    this.#timeout = timeout;
  }

  async once<T>(lock: RedisLock, task: (lease: Lease) => T | PromiseLike<T>, given: OnceOptions<T>): Promise<T> {
    callback('task', task);
    const options = checkedOptions(CHECKS as Checks<OnceOptions<T>>, given);
    const { key } = lock;
    const { waitTime = Number.POSITIVE_INFINITY, signal, deserialize, serialize = toJson(key) } = options;
    const keepFor = duration('keepFor', options.keepFor);
    if (signal?.aborted) throw signal.reason;
    const running = this.#flights.get(key);
    // A task that has unlocked its lease stores no result.
    if (running?.attempt?.scope?.holds === false) this.#end(key, running);
    const scope = Scope.holding(lock.scopeLock);
    if (scope?.isWithin(this.#tasks)) {
      throw new CannotAcquireLockError(`The task of once("${key}") would wait for its own result: a deadlock`, key);
    }
    // Throws before anybody waits for it.
    keysOf(lock);
    const caller = new Caller(task, serialize as Serialize, keepFor, new Wait(key, waitTime, signal));
    // The flight of others waits for the lock that this caller holds.
    const joined = scope === undefined ? this.#flights.get(key) : undefined;
    const flight = joined ?? new Flight();
    if (joined === undefined) flight.leader = caller;
    flight.callers.add(caller);
    try {
      const text = await this.#textFor(caller, flight, lock);
      if (text !== undefined) return (await read(text, key, deserialize)) as T;
      const failure = lock.failureFor(caller.wait, isSilent(flight, lock));
      if (failure !== undefined) throw failure;
      return await lock.timedOut({ waitTime });
    } finally {
      caller.wait.end();
      this.#leave(lock, flight, caller);
    }
  }

  /** Resolves to whether there was a result. */
  async forget(lock: RedisLock): Promise<boolean> {
    const { connection } = lock.services;
    const wasThere = await this.#results.forget(keysOf(lock), randomUUID(), this.#timeout).catch((error: unknown) => {
      throw mayNotBe('forgotten', lock.key, causeOf(error, connection));
    });
    // What a flight has read before is not for later callers.
    this.#flights.delete(lock.key);
    return wasThere;
  }

  /** `undefined`: the wait is over. The caller whose own task runs waits for that. */
  async #textFor(caller: Caller, flight: Flight, lock: RedisLock): Promise<string | undefined> {
    const { wait } = caller;
    for (;;) {
      // Here and not where the leader before has left: the task runs in the async context of its own caller.
      if (flight.leader === caller) this.#lead(lock, flight, caller);
      const { heard } = caller;
      let text = await wait.within(wait.remaining, heard);
      // What was asked has some time to be answered in any case.
      if (text === undefined && isSilent(flight, lock)) text = await wait.within(LEAST_TIME_TO_ANSWER, heard);
      const isOwn = flight.attempt?.caller === caller && flight.attempt.isRunning;
      if (text === undefined && isOwn) text = await wait.unlessOver(heard);
      if (text !== LEAD) return text;
    }
  }

  #lead(lock: RedisLock, flight: Flight, caller: Caller): void {
    const { key } = lock;
    const attempt = new Attempt(caller);
    flight.attempt = attempt;
    if (!this.#flights.has(key)) this.#flights.set(key, flight);
    const flying = this.#fly(lock, flight, attempt).catch((error: unknown) => {
      if (attempt.stored === undefined) throw error;
      return attempt.stored;
    });
    void flying.then(
      (text) => this.#arrived(lock, flight, attempt, text),
      (error: unknown) => this.#failed(lock, flight, attempt, error),
    );
    caller.heard = flying;
  }

  /** The attempt has a result. */
  #arrived(lock: RedisLock, flight: Flight, attempt: Attempt, text: string): void {
    if (flight.attempt !== attempt) return;
    if (attempt.isForgotten) {
      this.#nextLeads(lock, flight);
      return;
    }
    this.#over(lock, flight);
    for (const caller of flight.callers) caller.hear(text);
  }

  #failed(lock: RedisLock, flight: Flight, attempt: Attempt, error: unknown): void {
    if (flight.attempt !== attempt) return;
    const { wait } = attempt.caller;
    // The task may have failed for the reason that its caller had to leave. Nobody else has asked for that.
    const hasLeft = wait.isInterrupted || wait.signal?.aborted === true;
    if (!hasLeft && isOfAll(attempt, error)) {
      this.#over(lock, flight);
      for (const caller of flight.callers) caller.fail(error);
      return;
    }
    if (!hasLeft && error instanceof CannotAcquireLockError) this.#dismiss(flight, lock, error);
    this.#nextLeads(lock, flight);
  }

  /** Rejects the callers for which Redis was unavailable for as long as for the leader. */
  #dismiss({ callers }: Flight, lock: RedisLock, error: CannotAcquireLockError): void {
    const calledBefore = clock.now() - lock.services.settings.unavailableAfter;
    for (const caller of callers) {
      if (caller.wait.startedAt > calledBefore) continue;
      callers.delete(caller);
      caller.fail(error);
    }
  }

  #over(lock: RedisLock, flight: Flight): void {
    flight.leader = undefined;
    this.#end(lock.key, flight);
  }

  #leave(lock: RedisLock, flight: Flight, caller: Caller): void {
    flight.callers.delete(caller);
    if (flight.leader !== caller || flight.attempt?.isRunning) return;
    flight.leader = undefined;
    const { attempt } = flight;
    flight.attempt = undefined;
    attempt?.waiting.abort();
    // Those that leave at the same time have left by then.
    void clock.immediate().then(() => this.#nextLeads(lock, flight));
  }

  /** The next caller leads. */
  #nextLeads(lock: RedisLock, flight: Flight): void {
    const { attempt, leader } = flight;
    flight.attempt = undefined;
    const next = [...flight.callers].find((caller) => caller !== leader);
    flight.leader = next;
    attempt?.waiting.abort();
    if (next === undefined) this.#end(lock.key, flight);
    else next.hear(LEAD);
  }

  /** Later callers begin anew. */
  #end(key: string, flight: Flight): void {
    if (this.#flights.get(key) === flight) this.#flights.delete(key);
    flight.attempt?.waiting.abort();
  }

  async #fly(lock: RedisLock, flight: Flight, attempt: Attempt): Promise<string> {
    const { key } = lock;
    const { signal } = attempt.waiting;
    const { wait: around } = attempt.caller;
    const { result } = keysOf(lock);
    const there = await this.#asked(lock, flight, attempt, (timeout) => this.#results.read(result, timeout));
    if (there !== undefined) return there;
    const perform = (lease: Lease): Promise<string> => this.#perform(lock, flight, attempt, lease);
    try {
      const tried = await lock.tryRunWithin(around, perform, lockRequest({ signal }, lock, 0));
      if (tried.ran) return tried.value;
    } catch (error) {
      // What may pass is repeated by the wait for the lock.
      if (attempt.hadLock || signal.aborted || !mayPass(error)) throw error;
    }
    // Others have the lock, perhaps to do the same.
    const wait = new Wait(key, Number.POSITIVE_INFINITY, signal);
    const found = (text: string): void => {
      if (!attempt.isRunning) attempt.stored = text;
      attempt.waiting.abort();
    };
    void this.#found(result, wait).then(found, () => undefined);
    const request = lockRequest({ signal }, lock, Number.POSITIVE_INFINITY);
    const performed = (lease: Lease): Promise<string> => {
      // The result is looked for under the lock now. The end of the attempt ends that wait too.
      wait.interrupt(undefined);
      return perform(lease);
    };
    return lock.runWithin(around, performed, request);
  }

  /** Under the lock. */
  async #perform(lock: RedisLock, flight: Flight, attempt: Attempt, lease: Lease): Promise<string> {
    const { key } = lock;
    const { caller, waiting } = attempt;
    attempt.hadLock = true;
    flight.silentSince = undefined;
    const keys = keysOf(lock);
    const begin = (timeout: number) => this.#results.begin(keys, timeout);
    const { text: there, mark } = await this.#asked(lock, flight, attempt, begin, lease);
    attempt.stored = there;
    if (there !== undefined) return there;
    // Its caller may have left since the lock was granted.
    waiting.signal.throwIfAborted();
    // And the lock may be lost.
    lease.signal.throwIfAborted();
    attempt.isRunning = true;
    attempt.scope = Scope.current();
    this.#tasks.add(attempt.scope);
    const end = (): void => this.#end(key, flight);
    // A task whose lock is lost stores no result. The signal may be that of a lease around it, which outlives the attempt.
    lease.signal.addEventListener('abort', end, { signal: waiting.signal });
    try {
      const text = checkedText(key, await caller.serialize(await caller.task(lease)));
      if (await store(lease, keys, text, caller.keepFor, mark)) attempt.stored = text;
      else attempt.isForgotten = true;
      return text;
    } finally {
      this.#tasks.delete(attempt.scope);
      // What has failed is not for those that call while the lock is released.
      end();
    }
  }

  /** Resolves when the result is there. */
  async #found(name: string, wait: Wait): Promise<string> {
    const watch = this.#results.watch(name);
    for (;;) {
      wait.throwIfInterrupted();
      // Before the result is read: what is stored later comes with a message.
      let wake = (): void => undefined;
      const woken = new Promise<void>((resolve) => (wake = resolve));
      const stop = watch.on(wake);
      try {
        // A failure is that of the wait for the lock too, which reports it.
        const text = await this.#results.read(name, this.#timeout).catch(() => undefined);
        if (text !== undefined) return text;
        await wait.within(watch.pause, woken);
      } finally {
        stop();
      }
    }
  }

  /**
   * Asks about the result, and again after failures that pass, until Redis has been unavailable for `unavailableAfter`
   * as far as the caller has seen, or the lease is over.
   */
  async #asked<T>(
    lock: RedisLock,
    flight: Flight,
    attempt: Attempt,
    ask: (timeout: number) => Promise<T>,
    lease?: Lease,
  ): Promise<T> {
    const { connection, settings, waits } = lock.services;
    flight.silentSince ??= clock.now();
    const silentAt = Math.max(attempt.caller.wait.startedAt, flight.silentSince) + settings.unavailableAfter;
    const endsAt = (): number => Math.min(silentAt, clock.now() + (lease?.remaining ?? Number.POSITIVE_INFINITY));
    const asked = (): Promise<T> => wait.unlessOver(ask(Math.max(1, Math.min(this.#timeout, silentAt - clock.now()))));
    const wait = new Wait(lock.key, Number.POSITIVE_INFINITY, attempt.waiting.signal);
    try {
      // `close` interrupts it.
      if (lease === undefined) waits.begin(wait);
      const answer = await repeated(asked, endsAt, (ms) => wait.sleep(ms));
      flight.silentSince = undefined;
      return answer;
    } catch (error) {
      if (wait.isInterrupted || error instanceof RegistryClosedError) throw error;
      throw mayNotBe('read', lock.key, causeOf(error, connection));
    } finally {
      if (lease === undefined) waits.end(wait);
      wait.end();
    }
  }
}

/** Whether Redis is silent about the result, or about the lock. */
function isSilent({ silentSince }: Flight, lock: RedisLock): boolean {
  return silentSince !== undefined || lock.isSilent;
}

/** Whether an error is that of all callers, and not of the leader alone: another one would have the same. */
function isOfAll({ isRunning }: Attempt, error: unknown): boolean {
  return isRunning || !(mayPass(error) || error instanceof LockLostError);
}

/**
 * Stores a result while the lease is held. What fails in a way that may pass is tried again: that is idempotent. Resolves to
 * `false` when the result was forgotten since the task began, and is not stored.
 */
async function store(
  lease: Lease,
  { result, forgotten }: ResultKeys,
  text: string,
  keepFor: number,
  mark: string,
): Promise<boolean> {
  const endedAt = clock.now();
  const keep = (): Promise<unknown> => {
    const left = Math.max(1, Math.ceil(keepFor - (clock.now() - endedAt)));
    return lease.eval(STORE_RESULT, { keys: [result, forgotten], arguments: [text, String(left), mark] });
  };
  try {
    const stored = await repeated(keep, () => clock.now() + lease.remaining);
    return Number(stored) === 1;
  } catch (error) {
    const isOver = error instanceof LockLostError || error instanceof NotLockOwnerError;
    throw isOver ? error : mayNotBe('kept', lease.key, error);
  }
}

function mayNotBe(what: 'kept' | 'forgotten' | 'read', key: string, cause: unknown): CannotAcquireLockError {
  const isRead = what === 'read';
  const message = `The result of "${key}" ${isRead ? 'could' : 'may'} not be ${what}: ${reasonOf(cause)}`;
  const remedy = isRead && serverErrorCode(cause) === 'WRONGTYPE' ? `. forget("${key}") removes it` : '';
  return new CannotAcquireLockError(message + remedy, key, { cause });
}

type Serialize = (value: unknown) => unknown;

function toJson(key: string): Serialize {
  return (value) => {
    try {
      return value === undefined ? NOTHING : JSON.stringify(value);
    } catch (cause) {
      const text = `Expected the result of once("${key}") to have a form in JSON, or a \`serialize\`: ${messageOf(cause)}`;
      throw new TypeError(text, { cause });
    }
  };
}

/**
 * Makes the result of its text. What is stored may be of another `serialize`, and stays there until its `keepFor` ends: the
 * error says what to do. It does not quote the text, which may be a secret, as the error of JSON.parse does.
 */
async function read(text: string, key: string, deserialize: OnceOptions['deserialize']): Promise<unknown> {
  const unreadable = (why: string, options?: ErrorOptions): TypeError =>
    new TypeError(
      `The result of once("${key}") ${why}: another \`serialize\` may have made it. forget("${key}") removes it`,
      options,
    );
  if (deserialize !== undefined) {
    try {
      return await deserialize(text);
    } catch (cause) {
      throw unreadable('was refused by `deserialize`', { cause });
    }
  }
  try {
    return text === NOTHING ? undefined : JSON.parse(text);
  } catch {
    throw unreadable('is not JSON');
  }
}

function checkedText(key: string, result: unknown): string {
  const text = string(`serialize(result of "${key}")`, result);
  const bytes = Buffer.byteLength(text);
  if (bytes <= LONGEST_RESULT) return text;
  throw new RangeError(
    `The result of once("${key}") is not kept: it has ${bytes} bytes, and ${LONGEST_RESULT} are the most. Keep it elsewhere, and return where`,
  );
}
