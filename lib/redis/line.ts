import { Backoff } from '../internal/backoff';
import { clock } from '../internal/clock';
import { WakeTimer } from '../internal/wake-timer';
import type { ScriptRun } from './call';
import { LONG } from './silence';

/** So many keys may be in the commands that a client keeps for a server that is silent. */
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
  readonly #send: (call: ScriptRun) => void;
  /** Keys in the commands that the client keeps. */
  #unanswered = 0;
  /** When the first command was sent, of those since the last answer. */
  #askedAt: number | undefined;
  #held: ScriptRun[] = [];
  #probeAt = 0;
  readonly #pauses = new Backoff(TICK, LONGEST_PAUSE);
  readonly #timer = new WakeTimer(() => this.#tick(), false);

  constructor(send: (call: ScriptRun) => void) {
    this.#send = send;
  }

  /** Sends it, now or later; not any more when its time is over. */
  add(call: ScriptRun, now: number): void {
    if (this.#unanswered < MOST || this.#askedAt === undefined || now - this.#askedAt <= LONG) {
      this.#send(call);
      return;
    }
    this.#held.push(call);
    this.#timer.by(Math.min(this.#probeAt, now + TICK), now);
  }

  /** A command goes out. */
  asked(keys: number, now: number): void {
    this.#unanswered += keys;
    this.#askedAt ??= now;
  }

  /** A command was answered, or failed: the client keeps it no longer. */
  settled(keys: number): void {
    this.#unanswered -= keys;
    this.#askedAt = undefined;
    this.#pauses.reset();
    if (this.#held.length === 0) return;
    const held = this.#held;
    this.#held = [];
    for (const call of held) if (!call.isOver) this.#send(call);
  }

  #tick(): void {
    this.#held = this.#held.filter(({ isOver }) => !isOver);
    const [first] = this.#held;
    if (first === undefined) return;
    const now = clock.now();
    if (now >= this.#probeAt) {
      this.#probeAt = now + this.#pauses.next();
      this.#held.shift();
      this.#send(first);
    }
    this.#timer.by(now + TICK);
  }
}
