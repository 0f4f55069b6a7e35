import { clock } from '../../internal/clock';
import { WakeTimer } from '../../internal/timers';
import { WaitingTime } from '../../internal/waiting-time';
import type { Redis } from '../../redis/redis';
import { LockScript } from '../../redis/script';
import { kindLua } from './script-parts';

/**
 * ms of waiting after which a waiter leaves a mark: most waits are over by then, and cost no command. After a pause as
 * long, another wait begins.
 */
const MARKED_AFTER = 100;

/** ms that a mark has to be written. */
const TIMEOUT = 1_000;

/** A mark lasts for this many of the longest sleeps; one with a head start, which costs the others time, for one of them. */
const SLEEPS_OF_MARK = 4;

export const MARK = new LockScript('mark as wanted', kindLua('common/mark'));

/**
 * The mark by which the process that has a lock finds that another one waits: a string beside the lock, in its hash slot,
 * "<waiter> <its head start in ms, or 0>". It ends by itself. A busy process also counts the connections that listen. But
 * these may listen at another server, or be gone: the mark tells it to give the lock up too. The head start is for how long
 * a free lock has to stay free for it: one interval where it polls, a message and an attempt where it is far.
 */
export class WantedMark {
  readonly #redis: Redis;
  readonly #key: string;
  readonly #id: string;
  /** ms between two polls of a waiter that messages reach. */
  readonly #longestSleep: number;
  readonly #timer = new WakeTimer(() => this.#leave(), false);
  readonly #waiting = new WaitingTime(MARKED_AFTER);
  #headStart = 0;
  /** When the last mark was left, and what it names. */
  #left = { at: Number.NEGATIVE_INFINITY, headStart: 0 };

  /** `longestSleep`: ms between two polls of a waiter that messages reach. */
  constructor(redis: Redis, key: string, id: string, longestSleep: number) {
    this.#redis = redis;
    this.#key = key;
    this.#id = id;
    this.#longestSleep = longestSleep;
  }

  /** What the mark that this process has left names. */
  get headStart(): number {
    return clock.now() - this.#left.at < this.#longestSleep ? this.#left.headStart : 0;
  }

  /** A caller waits, until `end`. `headStart`: ms that others are to leave it a free lock for; 0: it is as quick as they are. */
  begin(headStart: number): void {
    const now = clock.now();
    this.#waiting.begin(now);
    this.#headStart = Math.ceil(headStart);
    const isNews = this.#headStart > this.#left.headStart;
    const next = isNews ? now : this.#left.at + this.#markTtl / 2;
    const due = Math.max(this.#waiting.since + MARKED_AFTER, next);
    // One that is far may hardly ever sleep: each answer comes after another message.
    if (due <= now) this.#leave();
    else this.#timer.by(due, now);
  }

  end(): void {
    if (this.#waiting.end(clock.now())) this.#timer.cancel();
  }

  /** This process has the lock: what follows is another wait. */
  acquired(): void {
    this.#waiting.over();
  }

  /** ms; renewed after half. A process whose waiter has left gives the lock up for nothing until then. */
  get #markTtl(): number {
    return Math.ceil(this.#headStart > 0 ? this.#longestSleep : SLEEPS_OF_MARK * this.#longestSleep);
  }

  #leave(): void {
    const now = clock.now();
    this.#left = { at: now, headStart: this.#headStart };
    this.#timer.by(now + this.#markTtl / 2);
    if (this.#redis.isClosed) return;
    const args = [this.#id, String(this.#headStart), String(this.#markTtl)];
    // The next one follows soon.
    this.#redis.run(MARK, [this.#key], args, TIMEOUT, () => undefined).catch(() => undefined);
  }
}
