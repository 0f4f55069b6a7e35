import { Availability } from '../../core/availability';
import type { Holder, Released } from '../../core/protocol';
import { clock } from '../../internal/clock';
import { isServerAnswer } from '../../redis/failure';
import type { LockNames } from '../../redis/names';
import { Pollers, USUAL_PACE_FOR } from '../pollers';
import { type NotifiedBy, WANTED } from './fair-scripts';
import { type FairServices, Presence, type PresenceListener } from './presence';
import { type QueueReply, replyUntil } from './queue-replies';
import { grantIn, ticketOf } from './ticket';
import { Waiters } from './waiters';

/**
 * What this process knows of the queue of one fair lock: its callers in it, and what messages and replies say. A base
 * class: an object for it would cost memory in each idle lock.
 */
export abstract class FairQueue implements PresenceListener {
  readonly availability = new Availability();
  holder: Holder | undefined;
  protected readonly names: LockNames;
  protected readonly services: FairServices;
  protected readonly waiters: Waiters;
  protected readonly pollers: Pollers | undefined;
  /** Messages that said that another process waits, or may have. */
  protected wanted = 0;
  /** Messages that said that the lock may be free. */
  #hints = 0;
  protected lazyPresence: Presence | undefined;

  constructor(names: LockNames, services: FairServices) {
    const { format, idleBetweenTries, sharedWithPollers } = services;
    this.names = names;
    this.services = services;
    this.waiters = new Waiters(names, format);
    this.pollers = sharedWithPollers ? new Pollers(idleBetweenTries, USUAL_PACE_FOR) : undefined;
  }

  /** As LockProtocol. */
  abstract release(ownerOrTicket: string, timeout: number): Promise<Released>;

  get isActive(): boolean {
    return this.waiters.size > 0 || (this.lazyPresence?.isActive ?? false);
  }

  /** Made for the first waiter. */
  protected get presence(): Presence {
    this.lazyPresence ??= new Presence(this.names, this.services, this.waiters, this.availability, this);
    return this.lazyPresence;
  }

  /** How this process is notified of a grant. After an earlier wait it may still be subscribed. */
  protected get notifiedBy(): NotifiedBy {
    // Without a presence, the first attempt says 'poll', and the first poll corrects it. A free lock needs no presence.
    return this.lazyPresence?.notifiedBy ?? 'poll';
  }

  /** As PresenceListener: messages may have been missed. */
  onResubscribed(): void {
    this.wanted++;
  }

  /**
   * As PresenceListener. A grant; `wanted`: another process waits; or the lock's name: the lock may be free, or its key
   * ends at another time now.
   */
  onMessage(message: string): void {
    if (message === WANTED) this.wanted++;
    if (message === this.names.lock) {
      this.#hints++;
      this.holder?.confirmNow();
      this.presence.poll();
    }
    const grant = grantIn(message);
    if (grant === undefined || this.waiters.takeReported(grant) === 'taken') return;
    this.release(grant.owner, this.services.commandTimeout).catch(() => undefined);
  }

  /** As PresenceListener: the reply of a poll or of an attempt. */
  onReply(reply: QueueReply): void {
    const { holder, life } = reply;
    if (this.waiters.size > 0) this.presence.schedulePoll(this.pollIn(reply));
    if (life > 0) this.availability.refused(clock.now(), life, holder);
    this.takeGrant(reply);
  }

  /** Gives a grant that a reply reports to its caller. Returns its owner value if that caller has left. */
  protected takeGrant(reply: QueueReply): string | undefined {
    const { owner, token, life, drift } = reply;
    if (owner === undefined) return undefined;
    const taken = this.waiters.take({ owner, token, until: replyUntil(reply), drift, life });
    return taken === 'unclaimed' && owner !== ticketOf(owner) ? owner : undefined;
  }

  /** ms until the next poll at the latest: sooner where the holder may notify nobody of its release. */
  private pollIn({ owner, isOutsiders, life }: QueueReply): number {
    const now = clock.now();
    if (isOutsiders) {
      this.pollers?.refused(now, { remaining: life }, this.#hints);
      const { longestPollInterval } = this.services;
      return Math.min(life, this.pollers?.pollingInterval(longestPollInterval) ?? longestPollInterval);
    }
    if (owner === undefined) this.pollers?.refusedByListener(now);
    return life;
  }

  /** A reply that did not arrive may have granted the lock to a caller of this process: polls to find out. */
  protected missedReply(error: unknown): void {
    if (!isServerAnswer(error)) this.lazyPresence?.poll();
  }

  /** The caller of the ticket waits no more, or the lease is about to be given back. Sends nothing. */
  protected forgetTicket(ownerOrTicket: string): void {
    this.waiters.forget(ownerOrTicket);
    this.lazyPresence?.leave();
  }
}
