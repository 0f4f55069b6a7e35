import type { Availability } from '../../core/availability';
import { clock, drift } from '../../internal/clock';
import { isFinal } from '../../redis/failure';
import type { LockNames } from '../../redis/names';
import type { Subscription } from '../../redis/subscription';
import type { Waiting } from '../common/waiting';
import type { FairFormat, QueueReply } from './format';
import { CLAIM_WINDOW, type NotifiedBy, POLL, WANTED } from './scripts';
import { processOf, type Ticket } from './ticket';

/** ms for which a process that messages do not reach polls at least, while its connection for them is made anew. */
const DEAF_FOR = 10_000;

/** ms; the shortest interval between two polls, and how long each has to be answered at least. */
const LEAST_INTERVAL = 10;
const LEAST_TIMEOUT = 500;

/** The lock in whose queue the process is. */
interface QueuedLock {
  readonly availability: Availability;
  /** That of the caller that waits; it may have left. */
  readonly ticket: Ticket | undefined;
  /** The reply of a poll. */
  onReply(reply: QueueReply): void;
  onMessage(message: string): void;
}

/**
 * How the waiter of this process is present in the queue of one lock: it listens for messages, and polls. A poll
 * prolongs the life of its ticket. It finds a grant whose message was lost, a lock whose holder died or whose key was
 * deleted, and an unreachable Redis.
 */
export class Presence {
  /** Messages that said that another process waits, or may have. */
  wanted = 0;
  /** The number of `wanted` when nobody else waited. `undefined`: it is not known whether others wait. */
  aloneAt: number | undefined;
  /** Messages that said that the lock may be free. */
  hints = 0;
  /** How callers wait that stand in no queue. */
  outside: Waiting | undefined;
  readonly #names: LockNames;
  readonly #format: FairFormat;
  readonly #lock: QueuedLock;
  #subscription: Subscription | undefined;
  #hasJoined = false;
  #isHolder = false;
  #isPolling = false;
  /** A poll is to follow the poll in flight, or the attempt in flight. */
  #isToPollAgain = false;
  /** Until when no message reaches the process. A later poll ends that: before it, Redis sends no message for a grant. */
  #deafUntil: number | undefined;
  readonly #pollNow = (): void => this.poll();

  constructor(names: LockNames, format: FairFormat, lock: QueuedLock) {
    this.#names = names;
    this.#format = format;
    this.#lock = lock;
  }

  get notifiedBy(): NotifiedBy {
    return this.#subscription?.isOpen && this.#deafUntil === undefined ? 'message' : 'poll';
  }

  /** The ticket, if a poll can tell what became of it. */
  get #waiting(): Ticket | undefined {
    const { ticket } = this.#lock;
    return ticket?.offered === undefined && !ticket?.isAsked ? ticket : undefined;
  }

  /** Listens while there is a waiter; `isHolder`: also while this process passes its hold on, to hear of others. */
  listen(isHolder = this.#isHolder): void {
    this.#isHolder = isHolder;
    const { ticket } = this.#lock;
    if (ticket === undefined) return;
    if (this.#subscription?.isOver !== false) {
      this.#hasJoined = false;
      const { countsListeners, subscriber } = this.#format;
      const channels = [`${this.#names.companion('grants')}:${processOf(ticket.id)}`];
      // On a cluster, the other lock types and Spring publish a release on a channel that is not sharded: polls find it.
      if (countsListeners) channels.push(...this.#format.channels(this.#names));
      this.#subscription = subscriber.subscribe(channels, (message) => this.#lock.onMessage(message));
      this.#subscription?.onWake(() => {
        // A message may have been missed.
        this.#lock.onMessage(WANTED);
        this.poll();
      });
    }
    if (this.#hasJoined || this.#subscription === undefined) return;
    this.#subscription.join();
    this.#hasJoined = true;
  }

  /** The waiter has left, or with `isHolder` false the holder: that ends the polls, and a moment later the subscription. */
  leave(isHolder = this.#isHolder): void {
    this.#isHolder = isHolder;
    if (this.#lock.ticket !== undefined) return;
    this.#isToPollAgain = false;
    this.#format.pollTimer.cancel(this.#pollNow);
    if (this.#isHolder) return;
    if (this.#hasJoined) this.#subscription?.leave();
    this.#hasJoined = false;
  }

  /** A reply says that the lock's key lives for `life` ms: the next poll comes then, or after the longest interval. */
  schedulePoll(life: number): void {
    if (this.#lock.ticket === undefined) return;
    if (this.#isToPollAgain) this.poll();
    const { pollTimer, longestPollInterval, parts } = this.#format;
    const withoutMessages = Math.min(parts.settings.idleBetweenTries, CLAIM_WINDOW / 3);
    const longest = this.notifiedBy === 'message' ? longestPollInterval : withoutMessages;
    pollTimer.schedule(this.#pollNow, clock.now() + Math.max(LEAST_INTERVAL, Math.min(life + 1, longest)));
  }

  /** Polls now, or after the poll or the attempt that is in flight: that one may have been sent too early. */
  poll(): void {
    if (this.#lock.ticket === undefined) return;
    if (this.#isPolling || this.#waiting === undefined) this.#isToPollAgain = true;
    else void this.#poll();
  }

  async #poll(): Promise<void> {
    this.#isPolling = true;
    for (let ticket = this.#waiting; ticket !== undefined; ticket = this.#isToPollAgain ? this.#waiting : undefined) {
      this.#isToPollAgain = false;
      this.listen();
      await this.#pollFor(ticket);
    }
    this.#isPolling = false;
  }

  async #pollFor(ticket: Ticket): Promise<void> {
    const format = this.#format;
    const { settings } = format.parts;
    const { availability } = this.#lock;
    // A poll that goes over a connection that is silently dead, as one of a pool may be, must not hold up the next one.
    const timeout = Math.min(settings.commandTimeout, Math.max(format.longestPollInterval, LEAST_TIMEOUT));
    const now = clock.now();
    const driftBefore = drift(now);
    if (this.#deafUntil !== undefined && now >= this.#deafUntil) this.#deafUntil = undefined;
    const args = [ticket.id, format.presence[this.notifiedBy]];
    const read = (reply: unknown) => format.read(POLL, reply, ticket, now, driftBefore);
    // A caller that makes a single attempt, and does not get the turn, waits for the answer.
    const question = availability.ask<QueueReply>(now);
    question.reply = format.parts.redis.run(POLL, format.keysOf(this.#names), args, timeout, read, now);
    try {
      const reply = await question.reply;
      availability.answered(now);
      // Else a message has come meanwhile: it lay in the socket while a task had the event loop.
      if (reply.isUnreachable && this.#waiting === ticket) this.#noteDeaf();
      this.#lock.onReply(reply);
      if (reply.score !== '' || this.#waiting !== ticket) return;
      // The ticket is missing in the queue, and has no grant: that has lapsed, and its message may not have arrived. An
      // attempt enters it again.
      this.#noteDeaf();
      ticket.retry();
    } catch (error) {
      availability.failed(error);
      // An attempt reports a final error, or that there was no answer for `unavailableAfter`.
      const isSilent = availability.silence(ticket.sentAt, clock.now()) >= settings.unavailableAfter;
      if (isFinal(error) || isSilent) ticket.retry();
      this.schedulePoll(settings.idleBetweenTries);
    } finally {
      question.reply = undefined;
    }
  }

  #noteDeaf(): void {
    if (this.notifiedBy === 'message') this.#format.subscriber.renew();
    this.#deafUntil = clock.now() + DEAF_FOR;
  }
}
