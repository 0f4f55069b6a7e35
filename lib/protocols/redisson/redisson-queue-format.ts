import type { Keep, ProtocolSettings, Released } from '../../core/protocol';
import { UnexpectedReplyError } from '../../redis/failure';
import type { LockNames } from '../../redis/names';
import type { Redis } from '../../redis/redis';
import { arrayIn, numberIn } from '../../redis/reply';
import type { Script } from '../../redis/script';
import { keepArguments } from '../format/left-to-keep';
import { type Acquired, foundIn, ownerIn, remainingIn } from '../format/replies';
import { KEEP } from './redisson-fair-keep-script';
import { ACQUIRE, LEAVE, RELEASE } from './redisson-fair-scripts';
import { type RedissonFormat, TOKEN } from './redisson-format';
import { redissonName } from './redisson-names';

/** The prefix of the queue of waiters. */
export const QUEUE = 'redisson_lock_queue';

/** The prefix of the ends of their positions. */
const TIMEOUTS = 'redisson_lock_timeout';

/** What an attempt found. `isFirst`: the owner was the first in the queue before it. */
type Entered = Extract<Acquired, { granted: true }> | (Extract<Acquired, { granted: false }> & { isFirst: boolean });

/**
 * Redisson's lock and its queue: runs the scripts of redisson-fair-scripts.ts and reads their replies. One object for
 * each registry. Timeouts are in ms. `use` makes the result of what the reply says.
 */
export class RedissonQueueFormat {
  /** The lock itself: to renew it takes no queue. */
  readonly hash: RedissonFormat;
  readonly #redis: Redis;
  readonly #settings: ProtocolSettings;

  constructor(redis: Redis, settings: ProtocolSettings, hash: RedissonFormat) {
    this.hash = hash;
    this.#redis = redis;
    this.#settings = settings;
  }

  /** The registry is closed. */
  get isClosed(): boolean {
    return this.#redis.isClosed;
  }

  /** The channel of one waiter. */
  channelOf(names: LockNames, owner: string): string {
    return `${this.hash.channel(names)}:${owner}`;
  }

  /** Acquires the lock, or takes a position in its queue if the owner waits. */
  enter<T>(
    names: LockNames,
    owner: string,
    ttl: number,
    waits: boolean,
    timeout: number,
    use: (found: Entered) => T,
  ): Promise<T> {
    const read = (reply: unknown): T => use(this.#entered(reply));
    return this.#run(ACQUIRE, names, owner, ttl, [waits ? '1' : '0'], timeout, read);
  }

  /**
   * Also takes the owner out of the queue. A release that finds no key notifies the first in the queue. `toPollers`:
   * the waiters are asked to make no attempt.
   */
  release<T>(
    names: LockNames,
    owner: string,
    toPollers: boolean,
    timeout: number,
    use: (found: Released) => T,
  ): Promise<T> {
    const script = toPollers ? LEAVE : RELEASE;
    const read = (reply: unknown): T => use(this.hash.foundIn(script, reply, reply));
    return this.#run(script, names, owner, 0, [this.hash.deleteCommand], timeout, read);
  }

  keep(names: LockNames, owner: string, keep: Keep, timeout: number): Promise<Released> {
    const read = (reply: unknown): Released => foundIn(KEEP, reply, reply);
    return this.#run(KEEP, names, owner, 0, keepArguments(keep), timeout, read);
  }

  #entered(reply: unknown): Entered {
    if (Array.isArray(reply)) {
      const [pttl, isFirst, owner] = arrayIn(ACQUIRE, reply, 2, 3);
      const remaining = remainingIn(ACQUIRE, reply, pttl);
      return { granted: false, remaining, isFirst: isFirst === 1, owner: ownerIn(owner) };
    }
    const token = numberIn(ACQUIRE, reply, reply);
    if (token < 1) throw new UnexpectedReplyError(ACQUIRE.name, reply);
    return { granted: true, fencingToken: this.#settings.fencing ? token : undefined };
  }

  #run<T>(
    script: Script,
    names: LockNames,
    owner: string,
    ttl: number,
    last: readonly string[],
    timeout: number,
    read: (reply: unknown) => T,
  ): Promise<T> {
    const wait = String(Math.ceil(this.#settings.fairLockWaitTimeout));
    const args = [owner, String(ttl), wait, ...this.hash.notification(names), ...last];
    return this.#redis.run(script, this.#keys(names), args, timeout, read);
  }

  #keys(names: LockNames): string[] {
    const keys = [names.lock, redissonName(names, QUEUE), redissonName(names, TIMEOUTS)];
    return this.#settings.fencing ? [...keys, redissonName(names, TOKEN)] : keys;
  }
}
