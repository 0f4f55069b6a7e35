import type { Availability } from '../../core/availability';
import { clock } from '../../internal/clock';
import type { SharedTimer } from '../../internal/shared-timer';
import { isFinal } from '../../redis/failure';
import type { LockNames } from '../../redis/names';
import type { Subscriber, Subscription } from '../../redis/subscriber';
import { CLAIM_WINDOW, type NotifiedBy } from './fair-scripts';
import type { QueueFormat } from './queue-format';
import type { QueueReply } from './queue-replies';
import { processOf, type Ticket } from './ticket';
import type { Waiters } from './waiters';

/** ms for which a process, after a grant to it lapsed, polls instead of relying on messages. */
const POLLS_AFTER_LAPSE = 10_000;

/** ms; the shortest interval between two polls. */
const LEAST_INTERVAL = 10;

/** ms; a poll has at least this long to be answered. */
const POLL_TIMEOUT_AT_LEAST = 500;

/** What the fair locks of a registry share. Durations in ms. */
export interface FairServices {
  readonly format: QueueFormat;
  readonly subscriber: Subscriber;
  readonly pollTimer: SharedTimer;
  /** The longest time between two polls while messages reach this process. */
  readonly longestPollInterval: number;
  /** The same while they do not, but at most a third of the claim window. */
  readonly idleBetweenTries: number;
  readonly sharedWithPollers: boolean;
  readonly commandTimeout: number;
  readonly unavailableAfter: number;
  readonly onNotificationRefused: () => void;
}

/** What presence reports to the protocol of its lock. */
export interface PresenceListener {
  /** Messages may have been missed. */
  onResubscribed(): void;
  /** A message on one of the channels. */
  onMessage(message: string): void;
  /** The reply of a poll, or of an attempt. */
  onReply(reply: QueueReply): void;
}

/**
 * How the waiters of this process are present in the queue of one lock: they listen for messages, and poll. A poll
 * prolongs the life of their tickets. It finds a grant whose message was lost, a lock whose holder died or whose key
 * was deleted, and an unreachable Redis.
 */
export class Presence {
  readonly #names: LockNames;
  readonly #services: FairServices;
  readonly #waiters: Waiters;
  readonly #availability: Availability;
  readonly #listener: PresenceListener;
  #subscription: Subscription | undefined;
  #hasJoined = false;
  #isHolder = false;
  #isPolling = false;
  /** A poll is to follow the poll in flight, or the attempt in flight of the only waiter. */
  #isToPollAgain = false;
  /** At the last poll, Redis knew of no listener of this process. */
  #isUnreachable = false;
  /** A message came after the reply of the last poll. */
  #hasHeard = false;
  #pollsUntil = Number.NEGATIVE_INFINITY;
  readonly #pollNow = (): void => this.poll();

  constructor(
    names: LockNames,
    services: FairServices,
    waiters: Waiters,
    availability: Availability,
    listener: PresenceListener,
  ) {
    this.#names = names;
    this.#services = services;
    this.#waiters = waiters;
    this.#availability = availability;
    this.#listener = listener;
  }

  get isActive(): boolean {
    return this.#isPolling || this.isSubscribed;
  }

  get isSubscribed(): boolean {
    return this.#subscription !== undefined && !this.#subscription.isOver;
  }

  get notifiedBy(): NotifiedBy {
    return this.#listens && !this.#isUnreachable ? 'message' : 'poll';
  }

  /** As far as this process knows. Redis may know of no listener. */
  get #listens(): boolean {
    return (this.#subscription?.isOpen ?? false) && clock.now() >= this.#pollsUntil;
  }

  /** Listens while this process passes its hold on: another process that waits sends a message to it. */
  listenAsHolder(owner: string): void {
    this.#isHolder = true;
    this.listen(owner);
  }

  /** This process passes nothing on any more. */
  leaveAsHolder(): void {
    if (!this.#isHolder) return;
    this.#isHolder = false;
    this.leave();
  }

  /** Listens while there are waiters. Whenever a message may have been missed, it polls. */
  listen(id = this.#waiters.anyId): void {
    if (id === undefined) return;
    if (!this.isSubscribed) {
      this.#hasJoined = false;
      const onMessage = (message: string): void => {
        this.#hasHeard = true;
        this.#listener.onMessage(message);
      };
      this.#subscription = this.#services.subscriber.subscribe(this.#channels(id), onMessage);
      this.#subscription?.onWake(() => {
        this.#listener.onResubscribed();
        this.poll();
      });
    }
    if (this.#hasJoined || this.#subscription === undefined) return;
    this.#subscription.join();
    this.#hasJoined = true;
  }

  /** Waiters have left: the last one ends the polls, and the subscription a moment later. */
  leave(): void {
    if (this.#waiters.size > 0) return;
    this.#isToPollAgain = false;
    this.#services.pollTimer.cancel(this.#pollNow);
    if (this.#isHolder) return;
    if (this.#hasJoined) this.#subscription?.leave();
    this.#hasJoined = false;
  }

  /** A reply says that the lock's key lives for `life` ms: the next poll comes then, or after the longest interval. */
  schedulePoll(life: number): void {
    if (this.#waiters.size === 0) return;
    if (this.#isToPollAgain) this.poll();
    const { idleBetweenTries, pollTimer, longestPollInterval } = this.#services;
    const longest = this.notifiedBy === 'message' ? longestPollInterval : Math.min(idleBetweenTries, CLAIM_WINDOW / 3);
    pollTimer.schedule(this.#pollNow, clock.now() + Math.max(LEAST_INTERVAL, Math.min(life + 1, longest)));
  }

  /** Polls now, or after the poll or the attempt that is in flight: that one may have been sent too early. */
  poll(): void {
    if (this.#waiters.size === 0) return;
    if (this.#isPolling || this.#waiters.waiting.length === 0) this.#isToPollAgain = true;
    else void this.#poll();
  }

  async #poll(): Promise<void> {
    this.#isPolling = true;
    do {
      this.#isToPollAgain = false;
      this.listen();
      await this.#pollFor(this.#waiters.waiting);
    } while (this.#isToPollAgain && this.#waiters.waiting.length > 0);
    this.#isPolling = false;
  }

  async #pollFor(tickets: readonly Ticket[]): Promise<void> {
    const [first] = tickets;
    if (first === undefined) return;
    const { format, commandTimeout, longestPollInterval } = this.#services;
    // A poll that goes over a connection that is silently dead, as one of a pool may be, must not hold up the next one.
    const timeout = Math.min(commandTimeout, Math.max(longestPollInterval, POLL_TIMEOUT_AT_LEAST));
    this.#availability.asked(clock.now());
    try {
      const how = this.#listens ? 'message' : 'poll';
      const reply = await format.pollFor(this.#names, processOf(first.id), how, tickets, timeout);
      this.#availability.answered();
      this.#isUnreachable = reply.isUnreachable;
      this.#listener.onReply(reply);
      // A ticket that is granted the lock leaves the queue. One that is missing, and has no grant, let the grant lapse:
      // its message may not have arrived. An attempt enters it again.
      const missing = reply.missing.flatMap((position) => tickets[position] ?? []);
      const lapsed = missing.filter(({ offered, isAsked }) => offered === undefined && !isAsked);
      // A poll of a process that listens also publishes a message to it. If none came, the connection is dead.
      const isDead = reply.isUnreachable || (lapsed.length > 0 && !this.#hasHeard);
      if (isDead && this.#listens) this.#services.subscriber.renew();
      if (lapsed.length > 0) this.#pollsUntil = clock.now() + POLLS_AFTER_LAPSE;
      this.#hasHeard = false;
      for (const ticket of lapsed) ticket.retry();
    } catch (error) {
      this.#pollFailed(error, tickets);
    }
  }

  /**
   * A final error: all waiters make an attempt, which reports it. Otherwise only waiters that had no answer for
   * `unavailableAfter` do.
   */
  #pollFailed(error: unknown, tickets: readonly Ticket[]): void {
    const now = clock.now();
    this.#availability.failed(error);
    for (const ticket of tickets) {
      const isSilent = this.#availability.silence(ticket.sentAt, now) >= this.#services.unavailableAfter;
      if (isFinal(error) || isSilent) ticket.retry();
    }
    this.schedulePoll(this.#services.idleBetweenTries);
  }

  /**
   * On a cluster, the other lock types and Spring publish a release on a channel that is not sharded: only polls find
   * it.
   */
  #channels(id: string): string[] {
    const { format } = this.#services;
    const grants = format.grants(this.#names, processOf(id));
    return format.countsListeners ? [grants, ...format.channels(this.#names)] : [grants];
  }
}
