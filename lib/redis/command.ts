import { clock } from '../internal/clock';
import { type Linked, LinkedList } from '../internal/linked-list';
import { WakeTimer } from '../internal/timers';
import type { RedisCommands } from './client';
import {
  CommandTimeoutError,
  isErrorLike,
  isNoScript,
  isServerAnswer,
  NOT_ASKED,
  NotSentError,
  noteErrorReply,
  ReplyError,
  UnexpectedReplyError,
} from './failure';
import type { Line } from './line';
import type { LockScript, Run, RunOptions, Script } from './script';
import { WARNED_AFTER } from './silence-times';

/** A command that runs a script, and receives the answer of Redis. */
export interface Command {
  readonly script: Script;
  readonly options: RunOptions;
  /** Nobody waits for the answer any more: sending something now would only do harm. */
  readonly isOver: boolean;
  answer(reply: unknown): void;
  fail(error: unknown): void;
}

/** Scripts that a command in flight brings to the server, by the client that it goes over. */
const loading = new WeakMap<RedisCommands, Set<Script>>();

/**
 * Scripts that the server does not know, and whose text is not on its way: NOSCRIPT came after the deadline, or the
 * connection was lost with the text. The next command sends their text at once. Sending the digest again would never end
 * where a server closes the connection after each error.
 */
const missing = new WeakMap<RedisCommands, Set<Script>>();

/**
 * Runs a script: EVALSHA, and EVAL where the server does not know it (NOSCRIPT; also after a failover). Of many commands
 * at once only the first one sends the text; the others ask by the digest once more. `asText`: EVAL at once, where a
 * second round trip would come too late. `isSecond`: after NOSCRIPT.
 */
export function evaluate(
  commands: RedisCommands,
  command: Command,
  line: Line<ScriptCommand>,
  asText = false,
  isSecond = false,
): void {
  const { script, options } = command;
  const isText = asText || missing.get(commands)?.delete(script) === true;
  const known = loading.get(commands) ?? new Set();
  loading.set(commands, known);
  const keys = options.keys.length;
  const sentAt = clock.now();
  const failed = (reason: unknown): void => {
    const error = isSlipOfClosed(commands, reason) ? new Error('The client is closed', { cause: reason }) : reason;
    line.failed(keys, sentAt, error);
    if (isText) known.delete(script);
    if (isNoScript(error)) noteErrorReply(error);
    const isBrought = isNoScript(error) ? !command.isOver : !isSecond || isServerAnswer(error);
    if (!isBrought) missing.set(commands, (missing.get(commands) ?? new Set()).add(script));
    if (!isNoScript(error) || command.isOver || isText) command.fail(error);
    else evaluate(commands, command, line, isSecond || !known.has(script), true);
  };
  line.asked(keys, sentAt);
  try {
    const sent = isText ? commands.eval(script.source, options) : commands.evalSha(script.sha1, options);
    if (isText) known.add(script);
    sent.then((reply) => {
      line.answered(keys, sentAt);
      if (isText) known.delete(script);
      command.answer(reply);
    }, failed);
  } catch (error) {
    failed(error);
  }
}

/** When a sentinel of node-redis is closed, or a cluster of its version 5, it throws a TypeError before it sends anything. */
function isSlipOfClosed(commands: RedisCommands & { readonly isOpen?: boolean }, error: unknown): boolean {
  return error instanceof TypeError && commands.isOpen === false;
}

/** One run of a script. It settles once: with the answer of Redis or at its deadline, whichever comes first. */
export class ScriptCommand implements Command, Linked<ScriptCommand> {
  readonly script: Script;
  readonly options: RunOptions;
  /** The deadline of the run, on the monotonic clock. */
  readonly at: number;
  previous: ScriptCommand | undefined;
  next: ScriptCommand | undefined;
  /** The run is about to go to the client: whether it is executed is unknown until the answer. */
  isSent = false;
  /** All runs that are made all or none have one object here: see `Connection`. */
  group: object | undefined;

  readonly #madeAt: number;
  readonly #deadlines: Deadlines;
  readonly #read: (reply: unknown) => unknown;
  readonly #resolve: (value: never) => void;
  readonly #reject: (error: unknown) => void;
  /** After the deadline: passes on the answer that may still come. */
  #late: ((answer: Promise<unknown>) => void) | undefined;
  #isSettled = false;

  /** `limit`: ms that a run has at most. */
  constructor(
    run: Run<unknown>,
    limit: number,
    deadlines: Deadlines,
    resolve: (value: never) => void,
    reject: (error: unknown) => void,
  ) {
    const { now } = run;
    const timeout = Math.min(run.timeout, limit);
    this.script = run.script;
    this.options = { keys: run.keys, arguments: run.args };
    this.at = now + timeout;
    this.#madeAt = now;
    this.#deadlines = deadlines;
    this.#read = run.read;
    this.#resolve = resolve;
    this.#reject = reject;
    deadlines.append(this);
    deadlines.timer.by(now + Math.min(timeout, WARNED_AFTER), now);
  }

  /** When something may be to do about it: Redis is silent, or its deadline has passed. */
  wakeAt(now: number): number {
    const silentAt = this.#madeAt + WARNED_AFTER;
    return silentAt > now ? Math.min(this.at, silentAt) : this.at;
  }

  /** The deadline of the run has passed. */
  get isOver(): boolean {
    return this.#late !== undefined;
  }

  answer(reply: unknown): void {
    if (this.#late === undefined) this.#deadlines.remove(this);
    else this.#late(Promise.resolve(reply));
    // The caller has gone on: what the reply says may be of the past.
    if (this.#isSettled) return;
    let value: unknown;
    try {
      value = this.#read(reply);
    } catch (error) {
      this.#fail(error);
      return;
    }
    this.#isSettled = true;
    this.#resolve(value as never);
  }

  fail(error: unknown): void {
    if (this.#late === undefined) this.#deadlines.remove(this);
    else this.#late(Promise.reject(error));
    // NOSCRIPT that comes late is no answer to a caller: the script would have been sent, in time.
    if (this.#late === undefined || !isNoScript(error)) this.#fail(error);
  }

  /** The deadline of the run has passed, without an answer. */
  missed(): void {
    const elapsed = clock.now() - this.#madeAt;
    const late = new Promise((pass) => (this.#late = pass));
    const error = this.isSent ? new CommandTimeoutError(elapsed, late) : new NotSentError(elapsed);
    // After a pause of the event loop the answer may lie in the socket's buffer: it is read first.
    void clock.immediate().then(() => this.#fail(error));
  }

  /** Once: an answer may be read between the deadline and the rejection. */
  #fail(error: unknown): void {
    if (this.#isSettled) return;
    this.#isSettled = true;
    this.#reject(error);
  }
}

/** Runs of one script that go to Redis as one command. */
export class Batch implements Command {
  readonly script: Script;
  readonly options: RunOptions;
  readonly #runs: ScriptCommand[];
  /** Called with all runs of the command. */
  readonly #failed: (runs: readonly ScriptCommand[], error: unknown) => void;

  constructor(
    runs: ScriptCommand[],
    script: LockScript,
    failed: (runs: readonly ScriptCommand[], error: unknown) => void,
  ) {
    const forMany = runs[0]?.group === undefined ? script.forMany : script.allOrNone;
    this.script = forMany;
    this.options = forMany.options(runs.map(({ options }) => options));
    this.#runs = runs;
    this.#failed = failed;
    for (const run of runs) run.isSent = true;
  }

  get isOver(): boolean {
    return this.#runs.every(({ isOver }) => isOver);
  }

  answer(replies: unknown): void {
    if (!Array.isArray(replies) || replies.length !== this.#runs.length) {
      this.fail(new UnexpectedReplyError(this.script.name, replies));
      return;
    }
    this.#takeRuns().forEach((run, i) => {
      const reply: unknown = replies[i];
      if (isErrorLike(reply)) run.fail(reply);
      else if (Array.isArray(reply) && reply[0] === 'error' && reply.length === 2)
        // Redis 6.2 ends the text that a script gets with a line break.
        run.fail(new ReplyError(String(reply[1]).trimEnd()));
      else if (Array.isArray(reply) && reply.length === 0) run.fail(NOT_ASKED);
      else run.answer(reply);
    });
  }

  fail(error: unknown): void {
    this.#failed(this.#takeRuns(), error);
  }

  /** The runs are taken out of the array: node-redis refers to what it has sent for longer than it needs it. */
  #takeRuns(): ScriptCommand[] {
    return this.#runs.splice(0);
  }
}

/**
 * The deadlines of all runs in flight, on one timer: a timer for each would cost as much as the rest of a command.
 * Removing a run leaves the timer as it is; it fires once for nothing then. The timer does not keep the process alive:
 * the connection that brings the answer does.
 */
export class Deadlines extends LinkedList<ScriptCommand> {
  readonly timer = new WakeTimer(() => this.#tick(), false);
  readonly #onTick: () => void;
  #isClosed = false;

  /** `onTick` is called when a run has been in flight for `WARNED_AFTER`, or until its deadline; and may be at other times. */
  constructor(onTick: () => void) {
    super();
    this.#onTick = onTick;
  }

  /** There will be few runs: the timer goes with the last one that is in flight. */
  close(): void {
    this.#isClosed = true;
    this.#rest();
  }

  override remove(run: ScriptCommand): void {
    super.remove(run);
    if (this.#isClosed) this.#rest();
  }

  #rest(): void {
    if (this.first === undefined) this.timer.cancel();
  }

  #tick(): void {
    const now = clock.now();
    let earliest = Number.POSITIVE_INFINITY;
    for (const run of this) {
      if (run.at > now) {
        earliest = Math.min(earliest, run.wakeAt(now));
      } else {
        this.remove(run);
        run.missed();
      }
    }
    this.timer.by(earliest, now);
    this.#onTick();
  }
}
