import type { Hold } from '../../core/hold';
import {
  type Exchange,
  type Grant,
  type Keep,
  type LockProtocol,
  NOT_GRANTED,
  type NotGranted,
  type Ownership,
  type Refusal,
  type Released,
  type RenewalMode,
} from '../../core/protocol';
import type { Wait } from '../../core/wait';
import { clock } from '../../internal/clock';
import { isServerAnswer } from '../../redis/failure';
import { FairQueue } from './fair-queue';
import type { NotifiedBy } from './fair-scripts';
import { type AcquireReply, type QueueReply, type ReleaseReply, replyUntil } from './queue-replies';
import type { Ticket } from './ticket';

/**
 * FIFO over all callers of all processes, by direct hand-over: the releasing script itself makes the next caller the
 * owner. The callers of a process take the local turn, so that it has one ticket in the queue in Redis: that of its
 * first caller. A release says who is next in the process, and since when; the script (`HAND_OVER`) decides between
 * that caller and the tickets of other processes. A process that cannot be reached is passed over, and its ticket keeps
 * its position.
 *
 * The ticket that the script was sent for gets its full ttl, and the reply says so. Every other one gets the claim
 * window. A message tells the ticket's process, unless that process polls, or ran the script itself.
 *
 * A caller may enter as soon as its process is notified, without another round trip. Why that is safe: the grant is a
 * key. Redis keeps it for the window W from the moment M at which the script made it. The message carries the server's
 * time of M. From that, `ServerClock` computes the earliest local time at which M can have been. Until that time + W,
 * minus a margin for clocks of different rates, the key is there, and nobody else has the lock. The first renewal gives
 * the key its full ttl. It is sent before the caller enters, and has half of the window to arrive. If it is not
 * confirmed, the lease ends with the window. If less than half of the window is certain, the caller waits for the
 * answer of the renewal.
 */
export class FairProtocol extends FairQueue implements LockProtocol {
  /** The number of `wanted` when nobody else waited. `undefined`: it is not known whether others wait. */
  #aloneAt: number | undefined;

  get queue(): 'local' {
    return 'local';
  }

  /** The queue gives every process its turn. */
  standBack(): undefined {}

  attempt(hold: Hold, timeout: number): Promise<Grant | Refusal> {
    const { sentAt, waits } = hold;
    const ticket = this.waiters.ticketFor(hold);
    ticket.asking();
    hold.isEnqueued = waits;
    const notifiedBy = waits ? this.notifiedBy : 'none';
    const { format } = this.services;
    const { wanted } = this;
    const answered = (reply: AcquireReply): Grant | Refusal => {
      ticket.isAsked = false;
      ticket.score = reply.score;
      if (ticket.hasOwner(reply.owner)) {
        this.pollers?.acquired(sentAt);
        return this.enter(ticket, reply, notifiedBy, wanted);
      }
      this.onReply(reply);
      return { granted: false, remaining: reply.life, owner: reply.holder, roundTrip: clock.now() - sentAt };
    };
    const failed = (error: unknown): void => {
      ticket.isAsked = false;
      this.missedReply(error);
    };
    return format.enter(this.names, ticket, notifiedBy, hold, timeout, answered, failed);
  }

  /** The reply to a script that was sent for the ticket says that the ticket has the lock. `wanted`: as it was before. */
  private enter(ticket: Ticket, reply: QueueReply, notifiedBy: NotifiedBy, wanted: number): Grant {
    this.#aloneAt = reply.isAlone && notifiedBy === 'message' ? wanted : undefined;
    const { owner = ticket.id, token, drift } = reply;
    this.waiters.enter(ticket, owner);
    this.lazyPresence?.leave();
    const fencingToken = this.services.format.fencingToken(token);
    return { granted: true, owner, until: replyUntil(reply), fencingToken, drift };
  }

  async wait(hold: Hold, _refusal: Refusal, wait: Wait): Promise<Grant | NotGranted> {
    const ticket = this.waiters.ticketFor(hold);
    this.presence.listen();
    try {
      const offered = await wait.suspend<Grant | undefined>(wait.remaining, (resume) => ticket.attach(resume));
      // The key of a grant by hand-over may end with the claim window, before the `minHold` ends.
      const isShort = offered?.renewal !== undefined && offered.until - clock.now() < hold.leastLife;
      const grant = isShort ? await whenRenewed(offered, wait) : offered;
      if (grant === undefined || grant.until <= clock.now()) {
        if (offered !== undefined) ticket.offered = undefined;
        return NOT_GRANTED;
      }
      this.waiters.enter(ticket, grant.owner);
      this.#aloneAt = undefined;
      this.pollers?.acquired(clock.now());
      this.presence.leave();
      return grant;
    } catch (interruption) {
      this.forgetTicket(ticket.id);
      throw interruption;
    }
  }

  renew(owner: string, ttl: number, mode: RenewalMode, timeout: number, settle: (ownership: Ownership) => void): void {
    this.services.format.renew(this.names, owner, ttl, mode, timeout, settle);
  }

  /**
   * Also removes from the queue the ticket of a caller that gave up. If that ticket had the lock, the next one gets
   * it.
   */
  release(ownerOrTicket: string, timeout: number, now = clock.now()): Promise<Released> {
    this.lazyPresence?.leaveAsHolder();
    return this.end(ownerOrTicket, undefined, timeout, now, ({ found, queue }) =>
      queue === undefined ? found : this.takeOver(queue, timeout).then(() => found),
    );
  }

  /**
   * Nobody waited in the queue at the last answer, and a message would have said so if anybody did since. The order stays
   * that of the calls, but for a message's time.
   */
  mayPassOn(): boolean {
    if (this.#aloneAt !== this.wanted || this.services.format.isFencing) return false;
    return this.pollers === undefined && this.lazyPresence?.notifiedBy === 'message';
  }

  /**
   * The lock goes to the earliest caller whose process can be reached: the next one of this process, or one that waits
   * in another process. In the second case, the next one of this process has a position in the queue afterwards.
   */
  exchange(owner: string, to: Hold, timeout: number): Promise<Exchange> {
    const { sentAt } = to;
    const ticket = this.waiters.ticketFor(to);
    to.isEnqueued = true;
    ticket.asking();
    const { notifiedBy, wanted } = this;
    // So that the next ones need no command, as long as nobody else waits.
    this.presence.listenAsHolder(owner);
    return this.end(owner, ticket, timeout, sentAt, (reply) => {
      const { found, queue } = reply;
      if (queue === undefined || !ticket.hasOwner(queue.owner)) return this.notGranted(ticket, reply, timeout, sentAt);
      ticket.isAsked = false;
      return { found, answer: this.enter(ticket, queue, notifiedBy, wanted) };
    });
  }

  /** The lock went to another process: the next caller has a position in the queue, if it was ours. */
  private async notGranted(ticket: Ticket, reply: ReleaseReply, timeout: number, sentAt: number): Promise<Exchange> {
    const { found, queue, score } = reply;
    ticket.isAsked = false;
    this.lazyPresence?.leaveAsHolder();
    if (queue === undefined) return this.notQueued(ticket, found);
    await this.takeOver(queue, timeout);
    if (score === '') return this.notQueued(ticket, found);
    ticket.score = score;
    this.presence.schedulePoll(queue.life);
    return { found, answer: { granted: false, remaining: queue.life, roundTrip: clock.now() - sentAt } };
  }

  /** The next caller has to make an attempt of its own. */
  private notQueued(ticket: Ticket, found: Released): Exchange {
    this.forgetTicket(ticket.id);
    return { found, answer: undefined };
  }

  /** Ends a lease, or takes a ticket out of the queue. Resolves to what `use` makes of the reply. */
  private end<T>(
    ownerOrTicket: string,
    next: Ticket | undefined,
    timeout: number,
    now: number,
    use: (reply: ReleaseReply) => T | Promise<T>,
  ): Promise<T> {
    this.forgetTicket(ownerOrTicket);
    // Hand-overs leave the key of a busy lock no free moment. So it is left to pollers at intervals.
    const { pollers } = this;
    const pause = pollers?.isDue(now) ? { length: pollers.pause, interval: pollers.interval } : undefined;
    const { format, onNotificationRefused } = this.services;
    const answered = (reply: ReleaseReply): T | Promise<T> => {
      this.waiters.forgetEntered(ownerOrTicket);
      const { found, pauseIn, isNotificationRefused } = reply;
      if (found === 'released') pollers?.released(clock.now());
      // It was left to pollers now, or not long ago.
      if (pauseIn !== undefined) pollers?.left(clock.now());
      if (isNotificationRefused) onNotificationRefused();
      return use(reply);
    };
    const failed = (error: unknown): void => {
      this.waiters.forgetEntered(ownerOrTicket);
      this.missedReply(error);
      if (next === undefined) return;
      next.isAsked = false;
      if (isServerAnswer(error)) this.forgetTicket(next.id);
    };
    const notifiedBy = next === undefined ? 'none' : this.notifiedBy;
    return format.leave(this.names, ownerOrTicket, next, notifiedBy, pause, now, timeout, answered, failed);
  }

  /** The reply of a release may say that a ticket of this process has the lock now. */
  private async takeOver(reply: QueueReply, timeout: number): Promise<void> {
    const unclaimed = this.takeGrant(reply);
    // Its caller has left: release it, or the lock stays taken.
    if (unclaimed !== undefined) await this.release(unclaimed, timeout).catch(() => undefined);
  }

  /**
   * The grant stays known as entered: a repeated message about it must not release the lock before it is kept. Waiters
   * of this process learn at once when the key ends, though messages may not arrive.
   */
  async keep(ownerOrTicket: string, keep: Keep, timeout: number): Promise<Released> {
    const found = await this.services.format.keepUntil(this.names, ownerOrTicket, keep, timeout);
    this.lazyPresence?.poll();
    return found;
  }

  /** The lock may be free: a poll hands it over to the next ticket. */
  leaseLost(): void {
    if (this.waiters.size > 0) this.presence.poll();
  }

  orphanLife({ ttl }: Hold): number {
    return Math.max(ttl, this.services.format.processLife);
  }
}

/** The grant, when its first renewal is confirmed; `undefined`: it was not, or the wait was over before. */
async function whenRenewed(grant: Grant, wait: Wait): Promise<Grant | undefined> {
  const { owner, fencingToken, drift, renewal } = grant;
  const ownership = await wait.suspend<Ownership>(wait.remaining, (resume) => void renewal?.then(resume));
  return ownership?.state === 'held'
    ? { granted: true, owner, until: ownership.until, fencingToken, drift }
    : undefined;
}
