import { isKept } from '../../api/owner-name';
import { Availability } from '../../core/availability';
import type { Hold } from '../../core/hold';
import type {
  Grant,
  Keep,
  LockProtocol,
  NotGranted,
  Ownership,
  ProtocolSettings,
  Refusal,
  Released,
  RenewalMode,
} from '../../core/protocol';
import type { Wait } from '../../core/wait';
import { clock, reliableUntil } from '../../internal/clock';
import type { LockNames } from '../../redis/names';
import type { Subscriber } from '../../redis/subscriber';
import type { Pollers } from '../pollers';
import { Notification } from '../waiting/notification';
import type { PastPositions } from './past-positions';
import type { RedissonQueueFormat } from './redisson-queue-format';
import { LEFT_TO_POLLERS, UNLOCKED } from './redisson-scripts';

/** ms by which a command may reach the server after its connection was given up. */
const LATE_COMMAND = 10_000;

/** Shared by the locks of a registry. */
export interface RedissonFairServices {
  readonly settings: ProtocolSettings;
  readonly format: RedissonQueueFormat;
  readonly subscriber: Subscriber;
  readonly pastPositions: PastPositions;
  pollers(): Pollers | undefined;
}

/**
 * Redisson's RedissonFairLock, shared with Java processes that use `redisson.getFairLock(name)`. A waiter has a
 * position in a queue in Redis and a channel of its own. A release notifies the first in the queue, which then takes
 * the lock.
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
  readonly #pollers: Pollers | undefined;
  /** Of the local caller that has the turn: the owner value that its channel is named after. */
  #ticket = '';
  /** The last owner value that had a position in the queue. */
  #enqueued = '';
  #notification: Notification | undefined;

  constructor(names: LockNames, services: RedissonFairServices) {
    this.#names = names;
    this.#services = services;
    this.#pollers = services.pollers();
  }

  get queue(): 'local' {
    return 'local';
  }

  get isActive(): boolean {
    return this.#notification?.isActive ?? false;
  }

  /** The queue serves every process in its order, but not pollers. */
  standBack(wait: Wait): Promise<void> | undefined {
    return wait.standBack(this.#pollers?.freeFor ?? 0);
  }

  attempt(hold: Hold, timeout: number): Promise<Grant | Refusal> {
    const { ticket, ttl, waits, sentAt, drift } = hold;
    const notification = ticket === this.#ticket ? this.#notification : undefined;
    const hintsBefore = notification?.isSubscribed ? notification.hints : undefined;
    hold.isEnqueued = waits;
    return this.#services.format.enter(this.#names, ticket, ttl, waits, timeout, (found): Grant | Refusal => {
      if (!found.granted) {
        const { remaining, isFirst, owner } = found;
        const now = clock.now();
        if (waits) this.#enqueued = ticket;
        // Only the first in the queue is notified. The end of a kept key is no sign of pollers.
        if (isFirst && !isKept(owner)) this.#pollers?.refused(now, remaining, notification?.hints ?? 0);
        else this.#pollers?.refusedByListener(now);
        return { granted: false, remaining, owner, roundTrip: now - sentAt, hintsBefore };
      }
      this.#pollers?.acquired(sentAt);
      const { fencingToken } = found;
      return { granted: true, owner: ticket, until: reliableUntil(sentAt, ttl), fencingToken, drift };
    });
  }

  wait({ ticket }: Hold, refusal: Refusal, wait: Wait): Promise<NotGranted> {
    if (ticket !== this.#ticket || this.#notification === undefined) {
      const { format, subscriber, settings } = this.#services;
      const channels = {
        channels: (names: LockNames) => [format.channelOf(names, ticket)],
        isRelease: (message: string) => message === UNLOCKED,
        isLeftToPollers: (message: string) => message === LEFT_TO_POLLERS,
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
    this.#services.format.hash.renew(this.#names, owner, ttl, mode, timeout, settle);
  }

  /**
   * A position is given up when the release is answered and not before: after a reconnect it is removed once more, and
   * that must not overtake the release. A release without an answer is repeated by its caller.
   */
  release(owner: string, timeout: number): Promise<Released> {
    const { format } = this.#services;
    const isPauseDue = this.#pollers?.isDue(clock.now()) ?? false;
    return format.release(this.#names, owner, isPauseDue, timeout, (found) => {
      if (found === 'released') this.#released(owner, isPauseDue);
      if (owner === this.#enqueued) this.#services.pastPositions.add(this, () => this.#releaseAgain(owner));
      return found;
    });
  }

  #released(owner: string, isLeft: boolean): void {
    const now = clock.now();
    if (!isLeft) this.#pollers?.released(now);
    // A release that finds no key notifies the first in the queue. If it fails, waiters of this library poll.
    else this.#pollers?.left(now, () => this.#releaseAgain(owner).catch(() => undefined));
  }

  async #releaseAgain(owner: string): Promise<void> {
    const { format, settings } = this.#services;
    if (!format.isClosed) await format.release(this.#names, owner, false, settings.commandTimeout, () => undefined);
  }

  keep(owner: string, keep: Keep, timeout: number): Promise<Released> {
    return this.#services.format.keep(this.#names, owner, keep, timeout);
  }

  /** The lock is for the first in the queue. */
  mayPassOn(): boolean {
    return false;
  }

  /**
   * A position has no expiry. It ends one `fairLockWaitTimeout` after the position before it. This covers the first
   * position, and late commands.
   */
  orphanLife({ ttl, isEnqueued }: Hold): number {
    return isEnqueued ? ttl + this.#services.settings.fairLockWaitTimeout + LATE_COMMAND : ttl;
  }
}
