import { clock } from '../internal/clock';
import { WakeTimer } from '../internal/timers';
import type { ScriptCommand } from './command';
import { isErrorReply } from './failure';

/** ms; a server that did not answer anything for longer may have been frozen, and replaced meanwhile. */
export const LONG = 500;

/** ms without an answer after which Redis is called silent in a warning. */
export const SILENT_FOR = 3_000;

/** ms in which a server that has woken up learns that it was replaced. It answers as before until then. */
export const LEARNS_REPLACEMENT = 120;

/**
 * When a client came back from a silence: a time without an answer, while something was unanswered. What a waiter does
 * meanwhile: `Call` in `core/acquire`.
 */
export class Silence {
  /** Answers come in the order of the commands, so one that took long is no silence if there were others before it. */
  readonly #isOneConnection: boolean;
  #heardAt = Number.NEGATIVE_INFINITY;
  /** The answer to what was sent before then may come from a server that does not know that it was replaced. */
  outdatedUntil = Number.NEGATIVE_INFINITY;

  constructor(isOneConnection: boolean) {
    this.#isOneConnection = isOneConnection;
  }

  /** A server answered. `askedAt`: when the command was sent, or an earlier one to that server that was lost. */
  answered(askedAt: number): void {
    const now = clock.now();
    const since = this.#isOneConnection ? Math.max(askedAt, this.#heardAt) : askedAt;
    if (now - since > LONG) this.outdatedUntil = now + LEARNS_REPLACEMENT;
    this.#heardAt = now;
  }
}

/** The most keys that may be in the commands that a client keeps for a server that is silent. */
const MOST = 200;

/** ms after which what is over is dropped. */
const TICK = 1_000;

/** ms; one more call goes out, first after `TICK`: the client may have found another way for those that come now. */
const LONGEST_PAUSE = 5_000;

/**
 * What goes to one server. A client keeps whatever it was given while its server is away, for as long as that takes,
 * though the callers gave up long ago. So when it keeps many, and the server is silent, further calls are held back
 * here. Those whose time is over are dropped: they leave nothing behind, neither here nor in Redis. The others go out as
 * soon as anything is heard of the server.
 */
export class Line {
  readonly #silence: Silence;
  readonly #send: (calls: readonly ScriptCommand[]) => void;
  /** Keys in the commands that the client keeps. */
  #unanswered = 0;
  /** When the first command was sent, of those since the last answer. */
  #askedAt: number | undefined;
  /** When the first command was sent that was lost with its connection, if none was answered since. */
  #lostSince: number | undefined;
  /** Why the client gave up the last command, without an answer of the server. */
  rejection: unknown;
  #held: ScriptCommand[] = [];
  #probeAt = 0;
  /** ms until the next probe after that. */
  #pause = TICK;
  readonly #timer = new WakeTimer(() => this.#tick(), false);

  constructor(silence: Silence, send: (calls: readonly ScriptCommand[]) => void) {
    this.#silence = silence;
    this.#send = send;
  }

  /** When the first command was sent, of those since the last answer; `undefined`: nothing is unanswered. */
  get unansweredSince(): number | undefined {
    return this.#lostSince ?? this.#askedAt;
  }

  /** Whether the call is held back, to be sent later; not any more when its time is over. */
  holdsBack(call: ScriptCommand, now: number): boolean {
    if (this.#unanswered < MOST || this.#askedAt === undefined || now - this.#askedAt <= LONG) return false;
    this.#held.push(call);
    this.#timer.by(Math.min(this.#probeAt, now + TICK), now);
    return true;
  }

  /** A command goes out. */
  asked(keys: number, now: number): void {
    this.#unanswered += keys;
    this.#askedAt ??= now;
  }

  /** The client does not keep a command any more. `sentAt`: the command was answered, or failed; else it was not sent. */
  settled(keys: number, sentAt?: number, error?: unknown): void {
    this.#unanswered -= keys;
    // Nothing was heard of the server, which has others to answer.
    if (sentAt === undefined && this.#unanswered > 0) return;
    if (sentAt !== undefined) {
      const askedAt = Math.min(sentAt, this.#lostSince ?? sentAt);
      const isAnswered = error === undefined || isErrorReply(error);
      this.#lostSince = isAnswered ? undefined : askedAt;
      this.rejection = isAnswered ? undefined : error;
      if (isAnswered) this.#silence.answered(askedAt);
    }
    this.#askedAt = undefined;
    this.#pause = TICK;
    if (this.#held.length === 0) return;
    const held = this.#held;
    this.#held = [];
    this.#timer.cancel();
    this.#send(held.filter(({ isOver }) => !isOver));
  }

  #tick(): void {
    this.#held = this.#held.filter(({ isOver }) => !isOver);
    const [first] = this.#held;
    if (first === undefined) return;
    const now = clock.now();
    if (now >= this.#probeAt) {
      this.#probeAt = now + this.#pause;
      this.#pause = Math.min(2 * this.#pause, LONGEST_PAUSE);
      this.#held.shift();
      this.#send([first]);
    }
    this.#timer.by(now + TICK);
  }
}
