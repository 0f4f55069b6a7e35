import type { Acquisition } from '../../acquire/acquisition';
import { Availability } from '../../acquire/availability';
import type { Wait } from '../../acquire/wait';
import { clock, drift } from '../../internal/clock';
import { isServerAnswer } from '../../redis/failure';
import type { LockNames } from '../../redis/names';
import {
  type Grant,
  type HandOver,
  type LockProtocol,
  NOT_GRANTED,
  type NotGranted,
  type Ownership,
  type Refusal,
  type Released,
  type RenewalMode,
} from '../protocol';
import { CLAIM_WINDOW } from './fair-scripts';
import { type FairServices, Presence, type PresenceListener } from './presence';
import { type AcquireReply, type QueueReply, replyUntil } from './queue-format';
import { ticketOf } from './ticket';
import { Waiters } from './waiters';

/**
 * Strict FIFO over all callers of all processes, by direct hand-over: the releasing script itself makes the next ticket
 * the owner, for the claim window, and notifies its process. The callers of this process queue in Redis, each for itself.
 *
 * A caller may enter as soon as its process is notified, without another round trip. Why that is safe: the grant is a
 * key that Redis keeps for the window W from the moment M at which the script made it. The message carries the server's
 * time of M, from which `ServerClock` proves a local time before which M was not. So until that time + W, minus the
 * drift, the key is there, and nobody else has the lock. The first renewal, which gives the key its full ttl, is sent
 * before the caller enters, and has half of the window to arrive. If it is not confirmed, the lease ends with the window.
 * Where nothing can be proved, or less than half of the window is left, the answer of the renewal is waited for.
 */
export class FairProtocol implements LockProtocol, PresenceListener {
  readonly availability = new Availability();
  readonly #names: LockNames;
  readonly #services: FairServices;
  readonly #waiters: Waiters;
  #lazyPresence: Presence | undefined;

  constructor(names: LockNames, services: FairServices) {
    this.#names = names;
    this.#services = services;
    this.#waiters = new Waiters(names, services.format);
  }

  get queue(): 'redis' {
    return 'redis';
  }

  get isActive(): boolean {
    return this.#waiters.size > 0 || (this.#lazyPresence?.isActive ?? false);
  }

  /** Made for the first waiter. */
  get #presence(): Presence {
    this.#lazyPresence ??= new Presence(this.#names, this.#services, this.#waiters, this.availability, this);
    return this.#lazyPresence;
  }

  /** The queue gives every process its turn. */
  standBack(): undefined {}

  async attempt(acquisition: Acquisition, timeout: number): Promise<Grant | Refusal> {
    const { sentAt, waits } = acquisition;
    const ticket = this.#waiters.ticketFor(acquisition);
    const presence = waits ? this.#presence : undefined;
    // After an earlier wait this process may still be subscribed. The first wait of all must not cost an uncontended lock.
    if (presence?.isSubscribed) presence.listen();
    acquisition.isEnqueued = waits;
    let reply: AcquireReply;
    try {
      const notifiedBy = presence?.notifiedBy ?? 'none';
      reply = await this.#services.format.enter(this.#names, ticket, notifiedBy, acquisition, timeout);
    } catch (error) {
      this.#missedReply(error);
      throw error;
    }
    ticket.score = reply.score;
    if (reply.owner !== undefined && ticketOf(reply.owner) === ticket.id) {
      this.#waiters.enter(ticket, reply.owner);
      this.#lazyPresence?.leave();
      const fencingToken = this.#services.format.fencingToken(reply.token);
      return { granted: true, owner: reply.owner, until: replyUntil(reply), fencingToken, drift: reply.drift };
    }
    this.onReply(reply);
    return { granted: false, remaining: reply.life, roundTrip: clock.now() - sentAt };
  }

  async wait(acquisition: Acquisition, _refusal: Refusal, wait: Wait): Promise<Grant | NotGranted> {
    const ticket = this.#waiters.ticketFor(acquisition);
    this.#presence.listen();
    try {
      const grant = await wait.suspend<Grant | undefined>(wait.remaining, (resume) => ticket.attach(resume));
      if (grant === undefined) return NOT_GRANTED;
      if (grant.until <= clock.now()) {
        ticket.offered = undefined;
        return NOT_GRANTED;
      }
      this.#waiters.enter(ticket, grant.owner);
      this.#presence.leave();
      return grant;
    } catch (interruption) {
      this.#leave(ticket.id);
      throw interruption;
    }
  }

  renew(owner: string, ttl: number, mode: RenewalMode, timeout: number): Promise<Ownership> {
    return this.#services.format.renew(this.#names, owner, ttl, mode, timeout);
  }

  /** Also for a ticket whose caller has left: then it passes on a grant of it. */
  async release(ownerOrTicket: string, timeout: number): Promise<Released> {
    this.#leave(ownerOrTicket);
    try {
      const { found, queue, isNotificationRefused } = await this.#services.format.leave(
        this.#names,
        ownerOrTicket,
        timeout,
      );
      if (isNotificationRefused) this.#services.onNotificationRefused();
      const unclaimed = queue && this.#learn(queue);
      // The lock is not free while it is granted to a caller that has left.
      if (unclaimed !== undefined) await this.release(unclaimed, timeout).catch(() => undefined);
      return found;
    } catch (error) {
      this.#missedReply(error);
      throw error;
    }
  }

  /** The lock may be free: it is the turn of the next ticket, and this process is alive. */
  leaseLost(): void {
    if (this.#waiters.size > 0) this.#presence.poll();
  }

  /** Callers queue in Redis, each for itself: a release hands the lock over. */
  async handOver(owner: string, _to: Acquisition, timeout: number): Promise<HandOver> {
    return { handedOver: undefined, found: await this.release(owner, timeout) };
  }

  orphanLife({ ttl }: Acquisition): number {
    return Math.max(ttl, this.#services.format.processLife);
  }

  /** As PresenceListener. */
  onReply(reply: QueueReply): void {
    this.#learn(reply);
  }

  /** As PresenceListener: `grant <owner> <window in ms> <token>`, or the lock's name: another lock type released it. */
  onMessage(message: string): void {
    const [kind, owner = '', milliseconds = '', token = ''] = message.split(' ');
    const window = Number(milliseconds);
    if (message === this.#names.lock) this.#presence.poll();
    if (kind !== 'grant' || !(window > 0)) return;
    const { format, commandTimeout } = this.#services;
    const ticket = this.#waiters.find(owner);
    const now = clock.now();
    const driftNow = drift();
    const until = ticket === undefined ? now : format.grantUntil(owner, window, ticket, now, driftNow);
    if (this.#waiters.take({ owner, token, until, drift: driftNow, window }) === 'taken') return;
    this.release(owner, commandTimeout).catch(() => undefined);
  }

  /** Takes over what a reply says of the lock. Returns a grant by hand-over whose caller has left. */
  #learn(reply: QueueReply): string | undefined {
    this.#lazyPresence?.schedulePoll(reply.life);
    const { owner, token } = reply;
    if (owner === undefined) return undefined;
    const window = Math.min(reply.life, CLAIM_WINDOW);
    const isUnclaimed =
      this.#waiters.take({ owner, token, until: replyUntil(reply), drift: reply.drift, window }) === 'unclaimed';
    return isUnclaimed && owner !== ticketOf(owner) ? owner : undefined;
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
