import type { Acquisition } from '../../acquire/acquisition';
import { Availability } from '../../acquire/availability';
import type { Wait } from '../../acquire/wait';
import { clock, reliableUntil } from '../../internal/clock';
import { UnexpectedReplyError } from '../../redis/failure';
import type { LockNames } from '../../redis/names';
import type { Redis } from '../../redis/redis';
import { arrayIn, numberIn } from '../../redis/reply';
import type { Script } from '../../redis/script';
import type { Subscriber } from '../../redis/subscriber';
import { foundIn, lifeIn, ownerIn } from '../format';
import { isKept, type Keep, keepArguments } from '../kept';
import { Notification } from '../notification';
import { PATIENCE, Pollers, SOON } from '../pollers';
import type {
  Grant,
  HandOver,
  LockProtocol,
  NotGranted,
  Ownership,
  ProtocolSettings,
  Refusal,
  Released,
  RenewalMode,
} from '../protocol';
import { KEEP_FAIR } from './keep-scripts';
import type { PastPositions } from './past-positions';
import { ACQUIRE, LEAVE, RELEASE } from './redisson-fair-scripts';
import { CHANNEL, isShardedFor, type RedissonFormat, TOKEN } from './redisson-format';
import { UNLOCKED } from './redisson-scripts';

/** The prefix of the queue of waiters. */
export const QUEUE = 'redisson_lock_queue';

/** ms by which a command may reach the server after its connection was given up. */
const LATE = 10_000;

/** Shared by the locks of a registry. */
export interface RedissonFairServices {
  readonly redis: Redis;
  readonly settings: ProtocolSettings;
  readonly format: RedissonFormat;
  readonly subscriber: Subscriber;
  readonly pastPositions: PastPositions;
}

/**
 * Redisson's RedissonFairLock, shared with Java processes that use `redisson.getFairLock(name)`. A waiter has a position
 * in a queue in Redis and a channel of its own. A release notifies the first in the queue, which then takes the lock.
 *
 * The callers of one process take the local turn first, so that a process has one position in the queue of a lock. The
 * order is that of arrival among processes (and Java threads), and among the callers of each. The reason: nobody takes
 * out the positions of a process that was killed, and each of them holds up all others, Java's too, for the whole wait,
 * five minutes. For the same reason the lock is not handed over locally: that would overtake the queue.
 */
export class RedissonFairProtocol implements LockProtocol {
  readonly availability = new Availability();
  readonly #names: LockNames;
  readonly #services: RedissonFairServices;
  /** Of the local caller that has the turn: the owner value that its channel is named after. */
  #ticket = '';
  /** The last owner value that had a position in the queue. */
  #enqueued = '';
  /** Made when the lock is contended, or acquired again soon after its release. */
  #lazyPollers: Pollers | undefined;
  #releasedAt = Number.NEGATIVE_INFINITY;
  #notification: Notification | undefined;

  constructor(names: LockNames, services: RedissonFairServices) {
    this.#names = names;
    this.#services = services;
  }

  get #pollers(): Pollers {
    this.#lazyPollers ??= new Pollers(this.#services.settings.idleBetweenTries, PATIENCE);
    return this.#lazyPollers;
  }

  get queue(): 'local' {
    return 'local';
  }

  get isActive(): boolean {
    return this.#notification?.isActive ?? false;
  }

  /** The queue gives every process its turn, but not those that poll. */
  standBack(wait: Wait): Promise<void> | undefined {
    const pause = this.#lazyPollers?.pauseLeft ?? 0;
    return pause > 0 ? wait.sleep(Math.min(pause, wait.remaining / 2)) : undefined;
  }

  attempt(acquisition: Acquisition, timeout: number): Promise<Grant | Refusal> {
    const { ticket, ttl, waits, sentAt, drift } = acquisition;
    const notification = ticket === this.#ticket ? this.#notification : undefined;
    const heard = notification?.isSubscribed ? notification.hints : undefined;
    acquisition.isEnqueued = waits;
    return this.#run(ACQUIRE, ticket, ttl, [waits ? '1' : '0'], timeout, (reply): Grant | Refusal => {
      if (Array.isArray(reply)) {
        const [life, isFirst, owner] = arrayIn(ACQUIRE, reply, 2, 3);
        const now = clock.now();
        if (waits) this.#enqueued = ticket;
        const remaining = lifeIn(ACQUIRE, reply, life);
        // Only the first in the queue is notified. The end of a kept key is no sign of others that poll.
        if (isFirst === 1 && !isKept(ownerIn(owner))) this.#pollers.refused(now, remaining, notification?.hints ?? 0);
        else this.#pollers.waiting(now);
        return { granted: false, remaining, owner: ownerIn(owner), roundTrip: now - sentAt, heard };
      }
      const token = numberIn(ACQUIRE, reply, reply);
      if (token < 1) throw new UnexpectedReplyError(ACQUIRE.name, reply);
      if (sentAt - this.#releasedAt < SOON) this.#pollers.acquired(sentAt);
      else this.#lazyPollers?.acquired(sentAt);
      const fencingToken = this.#services.settings.fencing ? token : undefined;
      return { granted: true, owner: ticket, until: reliableUntil(sentAt, ttl), fencingToken, drift };
    });
  }

  wait({ ticket }: Acquisition, refusal: Refusal, wait: Wait): Promise<NotGranted> {
    if (ticket !== this.#ticket || this.#notification === undefined) {
      const { subscriber, settings } = this.#services;
      const channels = {
        channels: (names: LockNames) => [`${names.redisson(CHANNEL)}:${ticket}`],
        isRelease: (message: string) => message === UNLOCKED,
        isLeftToPollers: () => false,
      };
      this.#ticket = ticket;
      this.#notification = new Notification(
        this.#names,
        channels,
        subscriber,
        settings.idleBetweenTries,
        this.#pollers,
      );
    }
    return this.#notification.wait(refusal, wait);
  }

  renew(owner: string, ttl: number, mode: RenewalMode, timeout: number, settle: (ownership: Ownership) => void): void {
    this.#services.format.renew(this.#names, owner, ttl, mode, timeout, settle);
  }

  release(owner: string, timeout: number): Promise<Released> {
    const now = clock.now();
    if (owner === this.#enqueued) this.#services.pastPositions.add(this, () => this.#releaseAgain(owner));
    const pollers = this.#lazyPollers;
    if (pollers?.isPauseDue(now)) return this.#leave(owner, pollers.busyFor(now), timeout);
    return this.#release(owner, timeout, (found) => {
      this.#releasedAt = clock.now();
      this.#lazyPollers?.released(this.#releasedAt, false);
      return found;
    });
  }

  #release<T>(owner: string, timeout: number, use: (found: Released) => T): Promise<T> {
    const { format } = this.#services;
    const read = (reply: unknown) => use(format.foundIn(RELEASE, reply, reply));
    return this.#run(RELEASE, owner, 0, [format.deleteCommand], timeout, read);
  }

  #releaseAgain(owner: string): Promise<Released> {
    return this.#release(owner, this.#services.settings.commandTimeout, (found) => found);
  }

  /** Releases the lock, and leaves it to those that poll for a moment before the first in the queue is notified. */
  #leave(owner: string, busy: number, timeout: number): Promise<Released> {
    const { format } = this.#services;
    const { interval, pause } = this.#pollers;
    const last = [format.deleteCommand, String(busy), String(interval)];
    return this.#run(LEAVE, owner, 0, last, timeout, (reply) => {
      const [found, isLeft] = Array.isArray(reply) ? arrayIn(LEAVE, reply, 2) : [reply];
      this.#pollers.released(clock.now(), false);
      if (isLeft === 1) {
        this.#pollers.beginPause(clock.now(), false);
        clock.setTimeout(() => void this.#endPause(owner), pause).unref?.();
      }
      return format.foundIn(LEAVE, reply, found);
    });
  }

  /** A release that finds no key notifies the first in the queue. */
  async #endPause(owner: string): Promise<void> {
    try {
      this.#pollers.pauseOver((await this.#releaseAgain(owner)) === 'stolen', clock.now());
    } catch {
      // Waiters of this library poll.
    }
  }

  keep(owner: string, keep: Keep, timeout: number): Promise<Released> {
    const read = (reply: unknown): Released => foundIn(KEEP_FAIR, reply, reply);
    return this.#run(KEEP_FAIR, owner, 0, keepArguments(keep), timeout, read);
  }

  /** The lock is for the first in the queue. */
  async handOver(owner: string, _to: Acquisition, timeout: number): Promise<HandOver> {
    return { handedOver: undefined, found: await this.release(owner, timeout) };
  }

  /**
   * A position has no expiry. It ends one `fairLockWaitTimeout` after the position before it. This covers the first
   * position, and late commands.
   */
  orphanLife({ ttl, isEnqueued }: Acquisition): number {
    return isEnqueued ? ttl + this.#services.settings.fairLockWaitTimeout + LATE : ttl;
  }

  #run<T>(
    script: Script,
    owner: string,
    ttl: number,
    last: readonly string[],
    timeout: number,
    read: (reply: unknown) => T,
  ): Promise<T> {
    const { redis, settings } = this.#services;
    const wait = String(Math.ceil(settings.fairLockWaitTimeout));
    const publish = isShardedFor(redis, settings) ? 'SPUBLISH' : 'PUBLISH';
    const args = [owner, String(ttl), wait, publish, this.#names.redisson(CHANNEL), ...last];
    return redis.run(script, this.#keys(), args, timeout, read);
  }

  #keys(): string[] {
    const names = this.#names;
    const keys = [names.lock, names.redisson(QUEUE), names.redisson('redisson_lock_timeout')];
    return this.#services.settings.fencing ? [...keys, names.redisson(TOKEN)] : keys;
  }
}
