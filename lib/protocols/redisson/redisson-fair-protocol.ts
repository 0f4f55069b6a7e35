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
import { foundIn, lifeIn } from '../format';
import { Notification } from '../notification';
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
import { ACQUIRE, RELEASE } from './redisson-fair-scripts';
import { CHANNEL, isShardedFor, type RedissonFormat, TOKEN } from './redisson-format';
import { UNLOCKED } from './redisson-scripts';

/** The prefix of the queue of waiters. */
export const QUEUE = 'redisson_lock_queue';

/** ms by which a command may reach the server after its connection was given up. */
const LATE = 10_000;

/** What the locks of a registry share. */
export interface RedissonFairServices {
  readonly redis: Redis;
  readonly settings: ProtocolSettings;
  readonly format: RedissonFormat;
  readonly subscriber: Subscriber;
}

/**
 * Redisson's RedissonFairLock, to be shared with Java processes that use `redisson.getFairLock(name)`. A waiter has a
 * position in a queue in Redis and a channel of its own. A release notifies the first in the queue, which then takes the
 * lock.
 *
 * The callers of one process take the local turn first, so that a process has one position in the queue of a lock, and
 * not one for each caller. The order is that of arrival among processes (and Java threads), and among the callers of
 * each. The reason: nobody takes out the positions of a process that was killed, and each of them holds up all others,
 * Java's too, for the whole wait, five minutes. For the same reason the lock is not handed over locally: that would
 * overtake the queue.
 */
export class RedissonFairProtocol implements LockProtocol {
  readonly availability = new Availability();
  readonly #names: LockNames;
  readonly #services: RedissonFairServices;
  /** Of the local caller that has the turn: the owner value that its channel is named after. */
  #ticket = '';
  #notification: Notification | undefined;
  #deleteCommand: 'UNLINK' | 'DEL' = 'UNLINK';

  constructor(names: LockNames, services: RedissonFairServices) {
    this.#names = names;
    this.#services = services;
  }

  get queue(): 'local' {
    return 'local';
  }

  get isActive(): boolean {
    return this.#notification?.isActive ?? false;
  }

  /** The queue gives every process its turn. */
  standBack(): undefined {}

  async attempt(acquisition: Acquisition, timeout: number): Promise<Grant | Refusal> {
    const { ticket, ttl, waits, sentAt, drift } = acquisition;
    const notification = ticket === this.#ticket ? this.#notification : undefined;
    const heard = notification?.isHearing ? notification.hints : undefined;
    acquisition.isEnqueued = waits;
    const reply = await this.#run(ACQUIRE, ticket, ttl, waits ? '1' : '0', timeout);
    if (Array.isArray(reply)) {
      const [remaining] = arrayIn(ACQUIRE, reply, 1);
      return { granted: false, remaining: lifeIn(ACQUIRE, reply, remaining), roundTrip: clock.now() - sentAt, heard };
    }
    const token = numberIn(ACQUIRE, reply, reply);
    if (token < 1) throw new UnexpectedReplyError(ACQUIRE.name, reply);
    const fencingToken = this.#services.settings.fencing ? token : undefined;
    return { granted: true, owner: ticket, until: reliableUntil(sentAt, ttl), fencingToken, drift };
  }

  wait({ ticket }: Acquisition, refusal: Refusal, wait: Wait): Promise<NotGranted> {
    if (ticket !== this.#ticket || this.#notification === undefined) {
      const { subscriber, settings } = this.#services;
      const channels = {
        channels: (names: LockNames) => [`${names.redisson(CHANNEL)}:${ticket}`],
        isRelease: (message: string) => message === UNLOCKED,
      };
      this.#ticket = ticket;
      this.#notification = new Notification(this.#names, channels, subscriber, settings.idleBetweenTries);
    }
    return this.#notification.wait(refusal, wait);
  }

  renew(owner: string, ttl: number, mode: RenewalMode, timeout: number): Promise<Ownership> {
    return this.#services.format.renew(this.#names, owner, ttl, mode, timeout);
  }

  async release(owner: string, timeout: number): Promise<Released> {
    const reply = await this.#run(RELEASE, owner, 0, this.#deleteCommand, timeout);
    if (Number(reply) === 2) this.#deleteCommand = 'DEL';
    return foundIn(RELEASE, reply, reply);
  }

  /** The lock is for the first in the queue. */
  async handOver(owner: string, _to: Acquisition, timeout: number): Promise<HandOver> {
    return { handedOver: undefined, found: await this.release(owner, timeout) };
  }

  /** A position has no expiry, and is kept for one wait more than the one before it. This covers the first, and late commands. */
  orphanLife({ ttl, isEnqueued }: Acquisition): number {
    return isEnqueued ? ttl + this.#services.settings.fairLockWaitTimeout + LATE : ttl;
  }

  #run(script: Script, owner: string, ttl: number, last: string, timeout: number): Promise<unknown> {
    const { redis, settings } = this.#services;
    const wait = String(Math.ceil(settings.fairLockWaitTimeout));
    const publish = isShardedFor(redis, settings) ? 'SPUBLISH' : 'PUBLISH';
    const args = [owner, String(ttl), wait, publish, this.#names.redisson(CHANNEL), last];
    return redis.run(script, this.#keys(), args, timeout);
  }

  #keys(): string[] {
    const names = this.#names;
    const keys = [names.lock, names.redisson(QUEUE), names.redisson('redisson_lock_timeout')];
    return this.#services.settings.fencing ? [...keys, names.redisson(TOKEN)] : keys;
  }
}
