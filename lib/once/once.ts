import type { Lease } from '../api/distributed-lock';
import { CannotAcquireLockError, cannotAcquire, LockLostError, NotLockOwnerError } from '../api/errors';
import type { OnceOptions } from '../api/options';
import { noAnswer } from '../core/availability';
import type { Results } from '../core/backend';
import { repeated } from '../core/give-back';
import type { RedisLock } from '../core/lock';
import { Scope } from '../core/scope';
import { LEAST_TIME_TO_ANSWER, Wait } from '../core/wait';
import { clock } from '../internal/clock';
import {
  abortSignal,
  type Checks,
  callback,
  checkedOptions,
  duration,
  durationOrNever,
  string,
} from '../internal/validation';
import { causeOf, messageOf, reasonOf } from '../redis/failure';
import { KEEP_RESULT } from './keep-result';

/** bytes; a longer result belongs elsewhere, and its place may be the result. */
const LONGEST_RESULT = 2 ** 20;

/** JSON has no word for `undefined`, which a task returns that only does something. */
const NOTHING = '';

const CHECKS: Checks<OnceOptions<unknown>> = {
  keepFor: duration,
  waitTime: durationOrNever,
  signal: abortSignal,
  serialize: callback,
  deserialize: callback,
};

type Task = (lease: Lease) => unknown;

/** The key of the result of a lock. Throws `RangeError` if it could not share the lock's hash slot. */
const resultOf = ({ names }: RedisLock): string => names.companion('once');

/**
 * The callers of one process that want the result of one key: one of them asks for all. It ends with the result, with
 * an error, or when all callers have left before the task ran.
 */
class Flight {
  /** The text of the result. */
  text!: Promise<string>;
  /** The text of a result that is there: read, or kept by the task. The result counts, whatever becomes of the lock. */
  kept: string | undefined;
  callers = 0;
  /** Redis is asked for the result, and not for the lock. */
  isLooking = false;
  /** The task runs here, or has run. */
  isRunning = false;
  /** The scope of the task. */
  scope: Scope | undefined;
  readonly waiting = new AbortController();
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
    const { waitTime = Number.POSITIVE_INFINITY, signal, deserialize = fromJson, serialize = toJson(key) } = options;
    const keepFor = duration('keepFor', options.keepFor);
    if (signal?.aborted) throw signal.reason;
    const running = this.#flights.get(key);
    // A task that has unlocked its lease keeps no result.
    if (running?.scope?.holds === false) this.#end(key, running);
    const scope = Scope.holding(lock.scopeLock);
    if (scope?.isWithin(this.#tasks)) {
      throw new CannotAcquireLockError(`The task of once("${key}") would wait for its own result: a deadlock`, key);
    }
    // The flight of others waits for the lock that this caller holds.
    const joined = scope === undefined ? this.#flights.get(key) : undefined;
    const flight = joined ?? this.#start(lock, task, serialize as Serialize, keepFor);
    const wait = new Wait(key, waitTime, signal);
    flight.callers++;
    try {
      const isSilent = (): boolean => flight.isLooking || lock.isSilent;
      const text = await this.#textFor(flight, wait, joined === undefined, isSilent);
      if (text !== undefined) return (await deserialize(text)) as T;
      throw isSilent() ? noAnswer(key, lock.services.connection) : lock.timeoutError({ waitTime });
    } finally {
      wait.end();
      if (--flight.callers === 0 && !flight.isRunning) this.#end(key, flight);
    }
  }

  /** Resolves to whether there was a result. */
  async forget(lock: RedisLock): Promise<boolean> {
    const wasThere = await this.#results.forget(resultOf(lock), this.#timeout).catch((error: unknown) => {
      throw mayNotBe('forgotten', lock.key, causeOf(error, lock.services.connection));
    });
    // What a flight has read before is not for later callers.
    this.#flights.delete(lock.key);
    return wasThere;
  }

  /** `undefined`: the wait is over. The caller whose own task runs waits for that. */
  async #textFor(flight: Flight, wait: Wait, isOwn: boolean, isSilent: () => boolean): Promise<string | undefined> {
    let text = await wait.within(wait.remaining, flight.text);
    // What was asked has some time to be answered in any case.
    if (text === undefined && isSilent()) text = await wait.within(LEAST_TIME_TO_ANSWER, flight.text);
    return text ?? (isOwn && flight.isRunning ? wait.unlessOver(flight.text) : undefined);
  }

  #start(lock: RedisLock, task: Task, serialize: Serialize, keepFor: number): Flight {
    const { key } = lock;
    const flight = new Flight();
    const end = (): void => this.#end(key, flight);
    const flying = this.#fly(lock, flight, async (lease) => {
      const there = await this.#read(lock, flight);
      if (there !== undefined) return there;
      // All callers may have left since the lock was granted.
      flight.waiting.signal.throwIfAborted();
      // And the lock may be lost.
      lease.signal.throwIfAborted();
      flight.isRunning = true;
      flight.scope = Scope.current();
      this.#tasks.add(flight.scope);
      // A task whose lock is lost keeps no result. The signal may be that of a lease around it, which outlives the flight.
      lease.signal.addEventListener('abort', end, { signal: flight.waiting.signal });
      try {
        const text = checkedText(key, await serialize(await task(lease)));
        await keep(lease, resultOf(lock), text, keepFor);
        return text;
      } finally {
        this.#tasks.delete(flight.scope);
        // What has failed is not for those that call while the lock is released.
        end();
      }
    });
    flight.text = flying.catch((error: unknown) => {
      if (flight.kept === undefined) throw error;
      return flight.kept;
    });
    if (!this.#flights.has(key)) this.#flights.set(key, flight);
    flight.text.then(end, end);
    return flight;
  }

  /** Later callers begin anew. */
  #end(key: string, flight: Flight): void {
    if (this.#flights.get(key) === flight) this.#flights.delete(key);
    flight.waiting.abort();
  }

  async #fly(lock: RedisLock, flight: Flight, perform: (lease: Lease) => Promise<string>): Promise<string> {
    const { signal } = flight.waiting;
    const there = await this.#read(lock, flight);
    if (there !== undefined) return there;
    const performed = async (lease: Lease): Promise<string> => (flight.kept = await perform(lease));
    const tried = await lock.tryRun(performed, { signal });
    if (tried.ran) return tried.value;
    // Others have the lock, perhaps to do the same.
    const wait = new Wait(lock.key, Number.POSITIVE_INFINITY, signal);
    const found = (text: string): void => {
      if (!flight.isRunning) flight.kept = text;
      this.#end(lock.key, flight);
    };
    void this.#found(lock, wait).then(found, () => undefined);
    return lock.run(
      (lease) => {
        // The result is looked for under the lock now. The end of the flight ends that wait too.
        wait.interrupt(undefined);
        return performed(lease);
      },
      { signal },
    );
  }

  /** Resolves when the result is there. */
  async #found(lock: RedisLock, wait: Wait): Promise<string> {
    const name = resultOf(lock);
    const watch = this.#results.watch(name);
    for (;;) {
      wait.throwIfInterrupted();
      // Before the result is read: what is kept later comes with a message.
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

  async #read(lock: RedisLock, flight: Flight): Promise<string | undefined> {
    flight.isLooking = true;
    const text = await this.#results.read(resultOf(lock), this.#timeout).catch((error: unknown) => {
      const cause = causeOf(error, lock.services.connection);
      throw cannotAcquire(lock.key, reasonOf(cause), cause);
    });
    flight.isLooking = false;
    return text;
  }
}

/** Keeps a result while the lease is held. What fails in a way that may pass is tried again: that is idempotent. */
async function keep(lease: Lease, name: string, text: string, keepFor: number): Promise<void> {
  const options = { keys: [name], arguments: [text, String(Math.ceil(keepFor))] };
  try {
    await repeated(
      () => lease.eval(KEEP_RESULT, options),
      () => clock.now() + lease.remaining,
    );
  } catch (error) {
    const isOver = error instanceof LockLostError || error instanceof NotLockOwnerError;
    throw isOver ? error : mayNotBe('kept', lease.key, error);
  }
}

function mayNotBe(what: 'kept' | 'forgotten', key: string, error: unknown): CannotAcquireLockError {
  return new CannotAcquireLockError(`The result of "${key}" may not be ${what}: ${reasonOf(error)}`, key, {
    cause: error,
  });
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

const fromJson = (text: string): unknown => (text === NOTHING ? undefined : JSON.parse(text));

function checkedText(key: string, result: unknown): string {
  const text = string(`serialize(result of "${key}")`, result);
  const bytes = Buffer.byteLength(text);
  if (bytes <= LONGEST_RESULT) return text;
  throw new RangeError(
    `The result of once("${key}") is not kept: it has ${bytes} bytes, and ${LONGEST_RESULT} are the most. Keep it elsewhere, and return where`,
  );
}
