import type { Acquisition } from '../../acquire/acquisition';
import type { Wait } from '../../acquire/wait';
import { clock } from '../../internal/clock';
import { isServerAnswer } from '../../redis/failure';
import type { LockNames } from '../../redis/names';
import type { Keep } from '../min-hold/kept';
import { PollableProtocol } from '../pollers/pollable-protocol';
import { Pollers, USUAL_PACE_FOR } from '../pollers/pollers';
import {
  type Grant,
  type HandOver,
  type Holder,
  type LockProtocol,
  NOT_GRANTED,
  type NotGranted,
  type Ownership,
  type Refusal,
  type Released,
  type RenewalMode,
} from '../protocol';
import { type FairServices, Presence, type PresenceListener } from './presence';
import { type AcquireReply, type QueueReply, replyUntil } from './queue-replies';
import { grantIn, ticketOf } from './ticket';
import { Waiters } from './waiters';

/**
 * FIFO over all callers of all processes, by direct hand-over: the releasing script itself makes the next ticket the
 * owner. A process that cannot be reached is passed over, and its tickets keep their positions. The callers of this
 * process queue in Redis, each for itself. A ticket of the releasing process gets its full ttl, and the reply says so.
 * A ticket of another process gets the claim window, and a message says so.
 *
 * A caller may enter as soon as its process is notified, without another round trip. Why that is safe: the grant is a
 * key. Redis keeps it for the window W from the moment M at which the script made it. The message carries the server's
 * time of M. From that, `ServerClock` computes the earliest local time at which M can have been. Until that time + W,
 * minus a margin for clocks of different rates, the key is there, and nobody else has the lock. The first renewal gives
 * the key its full ttl. It is sent before the caller enters, and has half of the window to arrive. If it is not
 * confirmed, the lease ends with the window. If less than half of the window is certain, the caller waits for the answer
 * of the renewal.
 */
export class FairProtocol extends PollableProtocol implements LockProtocol, PresenceListener {
  holder: Holder | undefined;
  readonly #names: LockNames;
  readonly #services: FairServices;
  readonly #waiters: Waiters;
  /** Releases by other lock types that were noticed. */
  #hints = 0;
  #lazyPresence: Presence | undefined;

  constructor(names: LockNames, services: FairServices) {
    super();
    this.#names = names;
    this.#services = services;
    this.#waiters = new Waiters(names, services.format);
  }

  protected createPollers(): Pollers {
    return new Pollers(this.#services.idleBetweenTries, USUAL_PACE_FOR);
  }

  get queue(): 'redis' {
    return 'redis';
  }

  get isActive(): boolean {
    return this.#waiters.size > 0 || (this.#lazyPresence?.isActive ?? false);
  }

  /** Made for the first waiter. */
  #presence(): Presence {
    this.#lazyPresence ??= new Presence(this.#names, this.#services, this.#waiters, this.availability, this);
    return this.#lazyPresence;
  }

  /** The queue gives every process its turn. */
  standBack(): undefined {}

  async attempt(acquisition: Acquisition, timeout: number): Promise<Grant | Refusal> {
    const { sentAt, waits } = acquisition;
    const ticket = this.#waiters.ticketFor(acquisition);
    // Without a presence yet: an uncontended lock needs none.
    const presence = this.#lazyPresence;
    // After an earlier wait this process may still be subscribed.
    if (waits && presence?.isSubscribed) presence.listen();
    acquisition.isEnqueued = waits;
    let reply: AcquireReply;
    try {
      const notifiedBy = waits ? (presence?.notifiedBy ?? 'poll') : 'none';
      reply = await this.#services.format.enter(this.#names, ticket, notifiedBy, acquisition, timeout);
    } catch (error) {
      this.#missedReply(error);
      throw error;
    }
    ticket.score = reply.score;
    if (reply.owner !== undefined && ticketOf(reply.owner) === ticket.id) {
      this.#waiters.enter(ticket, reply.owner);
      this.noteGrant(sentAt);
      this.#lazyPresence?.leave();
      const fencingToken = this.#services.format.fencingToken(reply.token);
      return { granted: true, owner: reply.owner, until: replyUntil(reply), fencingToken, drift: reply.drift };
    }
    if (waits) this.#presence();
    this.onReply(reply);
    return { granted: false, remaining: reply.life, owner: reply.holder, roundTrip: clock.now() - sentAt };
  }

  async wait(acquisition: Acquisition, _refusal: Refusal, wait: Wait): Promise<Grant | NotGranted> {
    const ticket = this.#waiters.ticketFor(acquisition);
    this.#presence().listen();
    try {
      const grant = await wait.suspend<Grant | undefined>(wait.remaining, (resume) => ticket.attach(resume));
      if (grant === undefined || grant.until <= clock.now()) {
        if (grant !== undefined) ticket.offered = undefined;
        return NOT_GRANTED;
      }
      this.#waiters.enter(ticket, grant.owner);
      this.noteGrant(clock.now());
      this.#presence().leave();
      return grant;
    } catch (interruption) {
      this.#leave(ticket.id);
      throw interruption;
    }
  }

  renew(owner: string, ttl: number, mode: RenewalMode, timeout: number, settle: (ownership: Ownership) => void): void {
    this.#services.format.renew(this.#names, owner, ttl, mode, timeout, settle);
  }

  /** Also takes the ticket of a caller that has left out of the queue. If that was granted the lock, the next one gets it. */
  async release(ownerOrTicket: string, timeout: number): Promise<Released> {
    this.#leave(ownerOrTicket);
    // The key of a busy lock is hardly ever free: it is left to those that poll now and then.
    const now = clock.now();
    const pauses = this.lazyPollers?.pauses;
    const pause = pauses?.isDue(now) ? { length: pauses.length, interval: pauses.interval(now) } : undefined;
    try {
      const { format } = this.#services;
      const reply = await format.leave(this.#names, ownerOrTicket, this.#waiters.firstWaiting, timeout, pause);
      const { found, queue, isNotificationRefused, pauseIn } = reply;
      if (found === 'released') this.noteRelease(clock.now(), false);
      if (pauseIn !== undefined) pauses?.leftOrDueIn(clock.now(), pauseIn);
      if (isNotificationRefused) this.#services.onNotificationRefused();
      const unclaimed = queue && this.onReply(queue);
      // The lock is not free while it is granted to a caller that has left.
      if (unclaimed !== undefined) await this.release(unclaimed, timeout).catch(() => undefined);
      return found;
    } catch (error) {
      this.#missedReply(error);
      throw error;
    }
  }

  /**
   * The grant stays known as entered: a repeated message about it must not release the lock before it is kept. Callers of
   * this process learn at once when the key ends, though messages may not arrive.
   */
  async keep(ownerOrTicket: string, keep: Keep, timeout: number): Promise<Released> {
    const found = await this.#services.format.keepUntil(this.#names, ownerOrTicket, keep, timeout);
    this.#lazyPresence?.poll();
    return found;
  }

  /** The lock may be free: it is the turn of the next ticket, and this process is alive. */
  leaseLost(): void {
    if (this.#waiters.size > 0) this.#presence().poll();
  }

  /** Callers queue in Redis, each for itself: a release hands the lock over. */
  async handOver(owner: string, _to: Acquisition, timeout: number): Promise<HandOver> {
    return { handedOver: undefined, found: await this.release(owner, timeout) };
  }

  orphanLife({ ttl }: Acquisition): number {
    return Math.max(ttl, this.#services.format.processLife);
  }

  /** As PresenceListener: a grant, or the lock's name: another lock type released it. */
  onMessage(message: string): void {
    if (message === this.#names.lock) {
      this.#hints++;
      this.holder?.confirmNow();
      this.#presence().poll();
    }
    const grant = grantIn(message);
    if (grant === undefined || this.#waiters.takeReported(grant) === 'taken') return;
    this.release(grant.owner, this.#services.commandTimeout).catch(() => undefined);
  }

  /** As PresenceListener: takes over what a reply says of the lock. Returns a grant by hand-over whose caller has left. */
  onReply(reply: QueueReply): string | undefined {
    const { owner, token, holder } = reply;
    this.#lazyPresence?.schedulePoll(this.#pollIn(reply));
    if (holder !== undefined) this.availability.sawHolder(clock.now(), reply.life, holder);
    if (owner === undefined) return undefined;
    const { life, drift } = reply;
    const taken = this.#waiters.take({ owner, token, until: replyUntil(reply), drift, life });
    return taken === 'unclaimed' && owner !== ticketOf(owner) ? owner : undefined;
  }

  /** ms until the next poll at the latest: sooner where an outsider holds the lock that may notify nobody of its release. */
  #pollIn({ owner, isOutsiders, life }: QueueReply): number {
    const now = clock.now();
    if (isOutsiders) {
      this.pollers.refused(now, life, this.#hints);
      return Math.min(life, this.pollers.pollingInterval(this.#services.longestPollInterval));
    }
    if (owner === undefined) this.pollers.refusedByListener(now);
    return life;
  }

  /** A reply did not arrive that may have said that the lock is granted to a caller of this process. */
  #missedReply(error: unknown): void {
    if (!isServerAnswer(error)) this.#lazyPresence?.poll();
  }

  #leave(ownerOrTicket: string): void {
    this.#waiters.leave(ownerOrTicket);
    this.#lazyPresence?.leave();
  }
}
