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

/** A mark lasts for this many polls of a waiter that no message reaches, and sleeps of another one; renewed after half. */
const POLLS_OF_MARK = 10;
const SLEEPS_OF_MARK = 4;

export const MARK = new LockScript('mark as wanted', kindLua('common/mark'));

/**
 * The mark by which the process that has a lock finds that another one waits: a string beside the lock, in its hash slot,
 * "<waiter> <ms between two polls where no message arrives, else 0>". It ends by itself. A busy process also counts the
 * connections that listen. But these may listen at another server, or be gone: the mark tells it to give the lock up too.
 */
export class WantedMark {
  readonly #redis: Redis;
  readonly #key: string;
  readonly #id: string;
  /** ms between two polls of a waiter that messages reach. */
  readonly #longestSleep: number;
  readonly #timer = new WakeTimer(() => this.#leave(), false);
  readonly #waiting = new WaitingTime(MARKED_AFTER);
  #pollInterval = 0;
  /** When the last mark was left, and the interval that it names. */
  #left = { at: Number.NEGATIVE_INFINITY, pollInterval: 0 };

  /** `longestSleep`: ms between two polls of a waiter that messages reach. */
  constructor(redis: Redis, key: string, id: string, longestSleep: number) {
    this.#redis = redis;
    this.#key = key;
    this.#id = id;
    this.#longestSleep = longestSleep;
  }

  /** A caller waits, until `end`. `pollInterval`: ms between two polls where no message arrives; 0: messages arrive. */
  begin(pollInterval: number): void {
    const now = clock.now();
    this.#waiting.begin(now);
    this.#pollInterval = Math.ceil(pollInterval);
    const isNews = this.#pollInterval > this.#left.pollInterval;
    const next = isNews ? now : this.#left.at + this.#markTtl / 2;
    this.#timer.by(Math.max(this.#waiting.since + MARKED_AFTER, next), now);
  }

  end(): void {
    if (this.#waiting.end(clock.now())) this.#timer.cancel();
  }

  /** This process has the lock: what follows is another wait. */
  acquired(): void {
    this.#waiting.over();
  }

  /** The ttl of a mark, in ms: some polls. A process whose waiter has left gives the lock up for nothing until then. */
  get #markTtl(): number {
    return Math.ceil(this.#pollInterval > 0 ? POLLS_OF_MARK * this.#pollInterval : SLEEPS_OF_MARK * this.#longestSleep);
  }

  #leave(): void {
    const now = clock.now();
    this.#left = { at: now, pollInterval: this.#pollInterval };
    this.#timer.by(now + this.#markTtl / 2);
    if (this.#redis.isClosed) return;
    const args = [this.#id, String(this.#pollInterval), String(this.#markTtl)];
    // The next one follows soon.
    this.#redis.run(MARK, [this.#key], args, TIMEOUT, () => undefined).catch(() => undefined);
  }
}
