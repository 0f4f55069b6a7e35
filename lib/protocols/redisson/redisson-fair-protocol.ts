import type { Acquisition } from '../../acquire/acquisition';
import type { Wait } from '../../acquire/wait';
import { clock, reliableUntil } from '../../internal/clock';
import type { LockNames } from '../../redis/names';
import type { Subscriber } from '../../redis/subscriber';
import { isKept, type Keep } from '../min-hold/kept';
import { Notification } from '../notification';
import { PollableProtocol } from '../pollable-protocol';
import { PATIENCE, Pollers } from '../pollers';
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
import type { PastPositions } from './past-positions';
import type { RedissonQueueFormat } from './redisson-queue-format';
import { UNLOCKED } from './redisson-scripts';

/** ms by which a command may reach the server after its connection was given up. */
const LATE = 10_000;

/** Shared by the locks of a registry. */
export interface RedissonFairServices {
  readonly settings: ProtocolSettings;
  readonly format: RedissonQueueFormat;
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
export class RedissonFairProtocol extends PollableProtocol implements LockProtocol {
  readonly #names: LockNames;
  readonly #services: RedissonFairServices;
  /** Of the local caller that has the turn: the owner value that its channel is named after. */
  #ticket = '';
  /** The last owner value that had a position in the queue. */
  #enqueued = '';
  #notification: Notification | undefined;

  constructor(names: LockNames, services: RedissonFairServices) {
    super();
    this.#names = names;
    this.#services = services;
  }

  protected createPollers(): Pollers {
    return new Pollers(this.#services.settings.idleBetweenTries, PATIENCE);
  }

  get isActive(): boolean {
    return this.#notification?.isActive ?? false;
  }

  /** The queue gives every process its turn, but not those that poll. */
  standBack(wait: Wait): Promise<void> | undefined {
    const pause = this.lazyPollers?.pauseLeft ?? 0;
    return pause > 0 ? wait.sleep(Math.min(pause, wait.remaining / 2)) : undefined;
  }

  attempt(acquisition: Acquisition, timeout: number): Promise<Grant | Refusal> {
    const { ticket, ttl, waits, sentAt, drift } = acquisition;
    const notification = ticket === this.#ticket ? this.#notification : undefined;
    const hintsBefore = notification?.isSubscribed ? notification.hints : undefined;
    acquisition.isEnqueued = waits;
    return this.#services.format.enter(this.#names, ticket, ttl, waits, timeout, (found): Grant | Refusal => {
      if (!found.granted) {
        const { remaining, isFirst, owner } = found;
        const now = clock.now();
        if (waits) this.#enqueued = ticket;
        // Only the first in the queue is notified. The end of a kept key is no sign of others that poll.
        if (isFirst && !isKept(owner)) this.pollers.refused(now, remaining, notification?.hints ?? 0);
        else this.pollers.waiting(now);
        return { granted: false, remaining, owner, roundTrip: now - sentAt, hintsBefore };
      }
      this.noteGrant(sentAt);
      const { fencingToken } = found;
      return { granted: true, owner: ticket, until: reliableUntil(sentAt, ttl), fencingToken, drift };
    });
  }

  wait({ ticket }: Acquisition, refusal: Refusal, wait: Wait): Promise<NotGranted> {
    if (ticket !== this.#ticket || this.#notification === undefined) {
      const { format, subscriber, settings } = this.#services;
      const channels = {
        channels: (names: LockNames) => [format.channelOf(names, ticket)],
        isRelease: (message: string) => message === UNLOCKED,
        isLeftToPollers: () => false,
      };
      this.#ticket = ticket;
      this.#notification = new Notification(this.#names, channels, subscriber, settings.idleBetweenTries, this.pollers);
    }
    return this.#notification.wait(refusal, wait);
  }

  renew(owner: string, ttl: number, mode: RenewalMode, timeout: number, settle: (ownership: Ownership) => void): void {
    this.#services.format.hash.renew(this.#names, owner, ttl, mode, timeout, settle);
  }

  release(owner: string, timeout: number): Promise<Released> {
    const now = clock.now();
    if (owner === this.#enqueued) this.#services.pastPositions.add(this, () => this.#releaseAgain(owner));
    const pollers = this.lazyPollers;
    if (pollers?.isPauseDue(now)) return this.#leave(owner, pollers.busyFor(now), timeout);
    return this.#services.format.release(this.#names, owner, timeout, (found) => {
      this.noteRelease(clock.now(), false);
      return found;
    });
  }

  #releaseAgain(owner: string): Promise<Released> {
    const { format, settings } = this.#services;
    return format.release(this.#names, owner, settings.commandTimeout, (found) => found);
  }

  /** Releases the lock, and leaves it to those that poll for a moment before the first in the queue is notified. */
  #leave(owner: string, busy: number, timeout: number): Promise<Released> {
    const { interval, pause } = this.pollers;
    return this.#services.format.leaveToPollers(this.#names, owner, busy, interval, timeout, (found, isLeft) => {
      this.pollers.released(clock.now(), false);
      if (isLeft) {
        this.pollers.beginPause(clock.now(), false);
        clock.setTimeout(() => void this.#endPause(owner), pause).unref?.();
      }
      return found;
    });
  }

  /** A release that finds no key notifies the first in the queue. */
  async #endPause(owner: string): Promise<void> {
    try {
      this.pollers.pauseOver((await this.#releaseAgain(owner)) === 'stolen', clock.now());
    } catch {
      // Waiters of this library poll.
    }
  }

  keep(owner: string, keep: Keep, timeout: number): Promise<Released> {
    return this.#services.format.keep(this.#names, owner, keep, timeout);
  }

  /** The lock is for the first in the queue. */
  async handOver(owner: string, _to: Acquisition, timeout: number): Promise<HandOver> {
    return { answer: undefined, found: await this.release(owner, timeout) };
  }

  /**
   * A position has no expiry. It ends one `fairLockWaitTimeout` after the position before it. This covers the first
   * position, and late commands.
   */
  orphanLife({ ttl, isEnqueued }: Acquisition): number {
    return isEnqueued ? ttl + this.#services.settings.fairLockWaitTimeout + LATE : ttl;
  }
}
