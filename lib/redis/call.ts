import { clock } from '../internal/clock';
import type { EvalOptions, RedisCommands } from './client';
import type { Deadline, Deadlines } from './deadlines';
import { CommandTimeoutError, isNoScript, NotSentError } from './failure';
import type { Line } from './line';
import type { Script } from './script';
import type { Silence } from './silence';

/** Receives the answer of Redis. */
export interface Receiver {
  /** Nobody waits for the answer any more: sending something now would only do harm. */
  readonly isOver: boolean;
  answer(reply: unknown): void;
  fail(error: unknown): void;
}

/** What is to be run, for a receiver. */
export interface ScriptRun extends Receiver {
  readonly script: Script;
  readonly keys: string[];
  readonly args: string[];
  /** It is about to go to the client: whether it is executed is unknown until the answer. */
  isSent: boolean;
}

/** Scripts that a command in flight brings to the server, by the client that it goes over. */
const loading = new WeakMap<RedisCommands, Set<Script>>();

/**
 * Runs a script: EVALSHA, and EVAL where the server does not know it (NOSCRIPT; also after a failover). Of many calls at
 * once only the first one sends the text; the others ask by the digest once more. `asText`: EVAL at once, where a second
 * round trip would come too late.
 */
export function evaluate(
  commands: RedisCommands,
  script: Script,
  options: EvalOptions,
  receiver: Receiver,
  silence: Silence,
  line: Line,
  asText = false,
  isSecond = false,
): void {
  const known = loading.get(commands) ?? new Set();
  loading.set(commands, known);
  const sentAt = clock.now();
  const count = options.keys?.length ?? 0;
  line.asked(count, sentAt);
  try {
    const sent = asText ? commands.eval(script.source, options) : commands.evalSha(script.sha1, options);
    if (asText) known.add(script);
    sent.then(
      (reply) => {
        silence.answered(sentAt);
        line.settled(count);
        if (asText) known.delete(script);
        receiver.answer(reply);
      },
      (error: unknown) => {
        silence.failed(error, sentAt);
        line.settled(count);
        if (asText) known.delete(script);
        if (!isNoScript(error) || receiver.isOver || asText) receiver.fail(error);
        else if (isSecond || !known.has(script)) evaluate(commands, script, options, receiver, silence, line, true);
        else evaluate(commands, script, options, receiver, silence, line, false, true);
      },
    );
  } catch (error) {
    line.settled(count);
    receiver.fail(error);
  }
}

/** Sends scripts to Redis. */
export interface ScriptRunner {
  run(script: Script, options: EvalOptions, receiver: Receiver): void;
}

/** One run of a script. It settles once: with the answer of Redis or at its deadline, whichever comes first. */
export class Call<T> implements Deadline, ScriptRun {
  readonly script: Script;
  readonly keys: string[];
  readonly args: string[];
  readonly at: number;
  previous: Deadline | undefined;
  next: Deadline | undefined;
  isSent = false;

  /** ms */
  readonly #timeout: number;
  readonly #deadlines: Deadlines;
  readonly #read: (reply: unknown) => T;
  readonly #resolve: (value: T) => void;
  readonly #reject: (error: unknown) => void;
  /** After the deadline: passes on the answer that may still come. */
  #late: ((answer: Promise<unknown>) => void) | undefined;
  #isSettled = false;

  /** `timeout` in ms, from `now` on. `read` makes the result of a reply, or throws what the call fails with. */
  constructor(
    script: Script,
    keys: string[],
    args: string[],
    timeout: number,
    now: number,
    deadlines: Deadlines,
    read: (reply: unknown) => T,
    resolve: (value: T) => void,
    reject: (error: unknown) => void,
  ) {
    this.script = script;
    this.keys = keys;
    this.args = args;
    this.#timeout = timeout;
    this.at = now + timeout;
    this.#read = read;
    this.#resolve = resolve;
    this.#reject = reject;
    this.#deadlines = deadlines;
    deadlines.add(this, now);
  }

  /** Its deadline has passed. */
  get isOver(): boolean {
    return this.#late !== undefined;
  }

  answer(reply: unknown): void {
    if (this.#late === undefined) this.#deadlines.remove(this);
    else this.#late(Promise.resolve(reply));
    // Its caller has gone on: what the reply says may be of the past.
    if (this.#isSettled) return;
    let value: T;
    try {
      value = this.#read(reply);
    } catch (error) {
      this.#settle(this.#reject, error);
      return;
    }
    this.#settle(this.#resolve, value);
  }

  fail(error: unknown): void {
    if (this.#late === undefined) {
      this.#deadlines.remove(this);
      this.#settle(this.#reject, error);
      return;
    }
    this.#late(Promise.reject(error));
    // NOSCRIPT is no answer to a caller: the script would have been sent, in time.
    if (!isNoScript(error)) this.#settle(this.#reject, error);
  }

  /** As Deadline. */
  missed(): void {
    const elapsed = clock.now() - (this.at - this.#timeout);
    const late = new Promise((pass) => (this.#late = pass));
    const error = this.isSent ? new CommandTimeoutError(elapsed, late) : new NotSentError(elapsed);
    // After a pause of the event loop the answer may lie in the socket's buffer: it is read first.
    void clock.immediate().then(() => this.#settle(this.#reject, error));
  }

  /** Once: an answer may be read between the deadline and the rejection. */
  #settle<R>(settle: (result: R) => void, result: R): void {
    if (this.#isSettled) return;
    this.#isSettled = true;
    settle(result);
  }
}
