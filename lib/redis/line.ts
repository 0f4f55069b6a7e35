import { clock } from '../internal/clock';
import { WakeTimer } from '../internal/timers';
import { isErrorReply } from './failure';
import type { Silence } from './silence';
import { MAYBE_REPLACED_AFTER } from './silence-times';

/** The most keys that may be in the commands that a client keeps for a server that is silent. */
const MOST = 200;

/** ms after which what is over is dropped. */
const TICK = 1_000;

/** ms; the longest pause between two probes. A probe is one run of those held back: the client may have a new connection. */
const LONGEST_PAUSE = 5_000;

/** A run that may be held back. */
interface HeldBack {
  /** Nobody waits for its answer any more. */
  readonly isOver: boolean;
}

/**
 * What goes to one server. A client keeps whatever it was given while its server is away, for as long as that takes,
 * though the callers gave up long ago. So when it keeps many, and the server is silent, further runs are held back
 * here. Those whose time is over are dropped: they leave nothing behind, neither here nor in Redis. The others go out as
 * soon as anything is heard of the server.
 */
export class Line<Run extends HeldBack> {
  readonly #silence: Silence;
  readonly #send: (runs: readonly Run[]) => void;
  /** Keys in the commands that the client keeps. */
  #unanswered = 0;
  /** When the first command was sent, of those since the last answer. */
  #askedAt: number | undefined;
  /** When the first command was sent that was lost with its connection, if none was answered since. */
  #lostSince: number | undefined;
  /** Why the client gave up the last command, without an answer of the server. */
  rejection: unknown;
  #heldBack: Run[] = [];
  #probeAt = 0;
  /** ms until the next probe after that. */
  #pause = TICK;
  readonly #timer = new WakeTimer(() => this.#tick(), false);

  constructor(silence: Silence, send: (runs: readonly Run[]) => void) {
    this.#silence = silence;
    this.#send = send;
  }

  /** When the first command was sent, of those since the last answer; `undefined`: nothing is unanswered. */
  get unansweredSince(): number | undefined {
    return this.#lostSince ?? this.#askedAt;
  }

  /** Whether the run is held back, to be sent later; not any more when its time is over. */
  holdsBack(run: Run, now: number): boolean {
    if (this.#unanswered < MOST || this.#askedAt === undefined || now - this.#askedAt <= MAYBE_REPLACED_AFTER)
      return false;
    this.#heldBack.push(run);
    this.#timer.by(Math.min(this.#probeAt, now + TICK), now);
    return true;
  }

  /** A command goes out. */
  asked(keys: number, now: number): void {
    this.#unanswered += keys;
    this.#askedAt ??= now;
  }

  /** The server answered a command that was sent then. */
  answered(keys: number, sentAt: number): void {
    this.#unanswered -= keys;
    this.#silence.answered(Math.min(sentAt, this.#lostSince ?? sentAt));
    this.#lostSince = undefined;
    this.rejection = undefined;
    this.#askedAt = undefined;
    this.#pause = TICK;
    // Every command comes here, and mostly nothing is held back.
    if (this.#heldBack.length > 0) this.#goOn();
  }

  /** A command that was sent then failed: the server answered with an error, or the client gave it up. */
  failed(keys: number, sentAt: number, error: unknown): void {
    if (isErrorReply(error)) {
      this.answered(keys, sentAt);
      return;
    }
    this.#unanswered -= keys;
    this.#lostSince = Math.min(sentAt, this.#lostSince ?? sentAt);
    this.rejection = error;
    this.#goOn();
  }

  /** A command was not sent after all: nothing was heard of the server. */
  dropped(keys: number): void {
    this.#unanswered -= keys;
    if (this.#unanswered <= 0) this.#goOn();
  }

  /** The silence counts anew, and what was held back goes out. */
  #goOn(): void {
    this.#askedAt = undefined;
    this.#pause = TICK;
    if (this.#heldBack.length === 0) return;
    const heldBack = this.#heldBack;
    this.#heldBack = [];
    this.#timer.cancel();
    this.#send(heldBack.filter(({ isOver }) => !isOver));
  }

  #tick(): void {
    this.#heldBack = this.#heldBack.filter(({ isOver }) => !isOver);
    const [first] = this.#heldBack;
    if (first === undefined) return;
    const now = clock.now();
    if (now >= this.#probeAt) {
      this.#probeAt = now + this.#pause;
      this.#pause = Math.min(2 * this.#pause, LONGEST_PAUSE);
      this.#heldBack.shift();
      this.#send([first]);
    }
    this.#timer.by(now + TICK);
  }
}
