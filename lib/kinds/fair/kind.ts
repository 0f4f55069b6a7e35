import { AskedLock } from '../../core/availability';
import {
  type Exchange,
  type Grant,
  type HoldOfProtocol,
  type Keep,
  type LockProtocol,
  NOT_GRANTED,
  type NotGranted,
  type Ownership,
  type Refusal,
  type Released,
  type Travel,
} from '../../core/protocol';
import type { Wait } from '../../core/wait';
import { clock, drift, reliableUntil, wasSuspended } from '../../internal/clock';
import { isServerAnswer, isWithoutEffect } from '../../redis/failure';
import { LockNames } from '../../redis/names';
import type { Script } from '../../redis/script';
import { asOwner, inspectorOf } from '../common/inspector';
import type { LockTypeDefinition } from '../common/registry-parts';
import { exchanged } from '../common/replies';
import { keepArguments, kindLua } from '../common/script-parts';
import { type Pollers, USUAL_PACE_FOR } from '../common/shared-with-pollers';
import { Waiting } from '../common/waiting';
import { FairFormat, type QueueReply } from './format';
import { Presence } from './presence';
import { ACQUIRE, CLAIM_WINDOW, FIND_WAITER, HAND_OVER, INSPECTION, type NotifiedBy, RELEASE, WANTED } from './scripts';
import { Ticket, ticketOf } from './ticket';

/** ms; the first renewal has at least this long to be answered. */
const LEAST_TIMEOUT = 10;

/** A grant by hand-over that arrived. */
type ArrivedGrant = Pick<QueueReply, 'owner' | 'token' | 'until' | 'sentAt' | 'drift' | 'life'>;

/**
 * FIFO over all callers of all processes, by direct hand-over: the releasing script itself makes the next caller the
 * owner. The callers of a process take the local turn, so that it has one ticket in the queue in Redis: that of its
 * first caller. A release says who is next in the process, and since when; the script decides between that caller and
 * the tickets of other processes.
 *
 * The ticket that the script was sent for gets its full ttl. Every other one gets the claim window W, and a message tells
 * its process. Its caller may enter at once. Why that is safe: Redis keeps the key for W from the moment at which the
 * script made it, and that was after the ticket was first sent. The first renewal, which gives the key its full ttl, is
 * sent before the caller enters. It has half of W to arrive; if less is certain, as after a long wait, the caller waits
 * for its answer. If it is not confirmed, the lease ends with W.
 */
export class FairProtocol extends AskedLock implements LockProtocol {
  holder: HoldOfProtocol | undefined;
  /**
   * The ticket of the caller that has the local turn, if it waits. Set before a command is sent: the message of a grant
   * may come before the reply. It stays if that caller leaves meanwhile, until it is removed from Redis or there is
   * another one.
   */
  ticket: Ticket | undefined;
  readonly #key: string;
  readonly #lock: string;
  readonly #format: FairFormat;
  readonly #pollers: Pollers | undefined;
  /** Made for the first waiter, or the first one that watches: most locks need none. */
  #presence: Presence | undefined;
  /** The last grant that a caller of this process entered with. Whatever repeats it later is ignored. */
  #entered: string | undefined;
  #isRetired = false;

  constructor({ key, lock }: LockNames, format: FairFormat) {
    super();
    this.#key = key;
    this.#lock = lock;
    this.#format = format;
    this.#pollers = format.parts.pollers(USUAL_PACE_FOR);
  }

  get hasQueue(): boolean {
    return true;
  }

  private get names(): LockNames {
    return new LockNames(this.#format.parts.settings.registryKey, this.#key, this.#lock);
  }

  override get hasLearnt(): boolean {
    return super.hasLearnt || (this.#pollers ?? this.#presence ?? this.ticket ?? this.#entered) !== undefined;
  }

  /** From now on a grant to this process is for a caller of the other object, which learns of it by a poll at the latest. */
  retire(): void {
    this.#isRetired = true;
    this.ticket = undefined;
    this.#presence?.leave(false);
  }

  private get presence(): Presence {
    this.#presence ??= new Presence(this.names, this.#format, this);
    return this.#presence;
  }

  /** How this process is notified of a grant. A free lock needs no presence: the first attempt says 'poll'. */
  private get notifiedBy(): NotifiedBy {
    return this.#presence?.notifiedBy ?? 'poll';
  }

  /** The queue gives every process its turn. */
  standBack(): undefined {}

  // A caller on its way to the lock

  attempt(hold: HoldOfProtocol, timeout: number): Promise<Grant | Refusal> {
    const { sentAt } = hold;
    const notifiedBy = hold.waits ? this.notifiedBy : 'none';
    const ticket = this.asking(hold, notifiedBy);
    const text = `${this.#format.presence[notifiedBy]} ${hold.waited} ${ticket.score}`;
    return this.ask(ACQUIRE, [ticket.id, String(hold.ttl), text], ticket, sentAt, timeout, (reply) => {
      ticket.score = reply.score;
      if (ticket.hasOwner(reply.owner)) {
        this.#pollers?.acquired(sentAt);
        return this.enter(ticket, reply);
      }
      this.onReply(reply);
      return { granted: false, remaining: reply.life, owner: reply.holder, roundTrip: clock.now() - sentAt };
    });
  }

  /** The ticket of a hold for which a script is about to be sent. */
  private asking(hold: HoldOfProtocol, notifiedBy: NotifiedBy): Ticket {
    const ticket = this.ticket?.id === hold.ticket ? this.ticket : new Ticket(hold);
    if (hold.waits) this.ticket = ticket;
    hold.owner = hold.ticket;
    ticket.asking(notifiedBy === 'message' ? this.#presence?.wanted : undefined);
    return ticket;
  }

  /** The reply to the script that was sent for the ticket says that the ticket has the lock. */
  private enter(ticket: Ticket, reply: QueueReply): Grant {
    const { owner = ticket.id, until, drift: driftBefore } = reply;
    this.#entered = owner;
    this.forgetTicket(owner);
    if (this.#presence !== undefined) this.#presence.aloneAt = reply.isAlone ? ticket.aloneAt : undefined;
    const fencingToken = this.#format.isFencing ? Number(reply.token) : undefined;
    return { granted: true, owner, until, fencingToken, moreTokens: reply.moreTokens, drift: driftBefore };
  }

  /** The caller of the ticket waits no more, or the lease is about to be given back. Sends nothing. */
  private forgetTicket(ownerOrTicket: string): void {
    if (this.ticket?.hasOwner(ownerOrTicket)) this.ticket = undefined;
    this.#presence?.leave();
  }

  async wait(hold: HoldOfProtocol, _refusal: Refusal, wait: Wait): Promise<Grant | NotGranted> {
    const { ticket } = this;
    // The ticket was forgotten, for a reason that another attempt will show.
    if (ticket?.id !== hold.ticket) return NOT_GRANTED;
    this.presence.listen();
    const grant = await wait.suspend<Grant | undefined>(wait.remaining, (resume) => ticket.attach(resume));
    if (grant === undefined || grant.until <= clock.now()) {
      if (grant !== undefined) ticket.offered = undefined;
      return NOT_GRANTED;
    }
    // The hold begins now: its ticket was sent long before.
    hold.sentAt = Math.floor(clock.now());
    this.presence.aloneAt = undefined;
    this.#pollers?.acquired(hold.sentAt);
    this.#entered = grant.owner;
    this.forgetTicket(grant.owner);
    return grant;
  }

  orphanLife({ longestTtl }: HoldOfProtocol): number {
    return Math.max(longestTtl, this.#format.processLife);
  }

  /** Without a position: a release is published where nobody stands in the queue. */
  watch(onHint: () => void): () => void {
    this.presence.outside ??= outsideQueue(this.names, this.#format);
    return this.presence.outside.watch(onHint);
  }

  get hints(): number | undefined {
    const outside = this.#presence?.outside;
    return outside?.isSubscribed ? outside.hints : undefined;
  }

  get pollingInterval(): number {
    return this.#presence?.outside?.pollingInterval ?? this.#format.parts.settings.idleBetweenTries;
  }

  // A lease that ends

  renew(owner: string, ttl: number, timeout: number, settle: (ownership: Ownership) => void): void {
    this.#format.renew(this.names, owner, ttl, timeout, settle);
  }

  /** Also removes the ticket of a caller that gave up. If that had the lock, the next one gets it. */
  release(ownerOrTicket: string, timeout: number, keep?: Keep, now = clock.now()): Promise<Released> {
    this.#presence?.leave(false);
    if (keep !== undefined) {
      // The waiter of this process learns at once when the key ends, though messages may not arrive.
      return this.end(ownerOrTicket, undefined, keep, timeout, now, ({ found }) => {
        this.#presence?.poll();
        return found;
      });
    }
    const use = (reply: QueueReply) => this.take(reply, timeout)?.then(() => reply.found) ?? reply.found;
    return this.end(ownerOrTicket, undefined, undefined, timeout, now, use);
  }

  /** Nobody waited at the last answer, and a message would have said so since: the order is right but for its time. */
  mayPassOn(): boolean {
    return this.hearsOfOthers && this.presence.aloneAt === this.presence.wanted;
  }

  /** A message says when another process waits, and there are no pollers, which none would be about. */
  private get hearsOfOthers(): boolean {
    return this.#pollers === undefined && this.#presence?.notifiedBy === 'message';
  }

  /** See HAND_OVER. */
  exchange(owner: string, to: HoldOfProtocol, timeout: number, keep?: Keep): Promise<Exchange> {
    const ticket = this.asking(to, this.notifiedBy);
    // So that the next ones need no command, as long as nobody else waits.
    this.presence.listen(true);
    const exchange = this.end(owner, ticket, keep, timeout, to.sentAt, (reply): Exchange | Promise<Exchange> => {
      if (!ticket.hasOwner(reply.owner)) return this.notGranted(ticket, reply, timeout);
      return { found: reply.found, answer: this.enter(ticket, reply) };
    });
    const format = this.#format;
    if (!format.parts.redis.isReplicated) return exchange;
    return exchanged(exchange, (reply) => format.read(HAND_OVER, reply, ticket, to.sentAt, to.drift).found);
  }

  /** The lock went to another process: the next caller has a position in the queue, if it was ours. */
  private async notGranted(ticket: Ticket, reply: QueueReply, timeout: number): Promise<Exchange> {
    const { found, score, life, sentAt } = reply;
    this.presence.leave(false);
    await this.take(reply, timeout);
    if (score === '') {
      // The next caller has to make an attempt of its own.
      this.forgetTicket(ticket.id);
      return { found, answer: undefined };
    }
    ticket.score = score;
    this.presence.schedulePoll(life);
    return { found, answer: { granted: false, remaining: life, roundTrip: clock.now() - sentAt } };
  }

  /**
   * Ends a lease, or takes a ticket out of the queue. `next`: that of the caller of this process that gets the lock or a
   * position. `keep`: the lock stays taken. Resolves to what `use` makes of the reply.
   */
  private end<T>(
    ownerOrTicket: string,
    next: Ticket | undefined,
    keep: Keep | undefined,
    timeout: number,
    now: number,
    use: (reply: QueueReply) => T | Promise<T>,
  ): Promise<T> {
    this.forgetTicket(ownerOrTicket);
    const format = this.#format;
    // Hand-overs leave the key of a busy lock no free moment. So it is left to pollers at intervals.
    const pollers = this.#pollers;
    let more = '';
    if (keep !== undefined) more = ` 0 0 ${keepArguments(keep).join(' ')}`;
    else if (pollers?.isDue(now)) more = ` ${pollers.pause} ${pollers.interval} 0 0 0`;
    let text: string = format.publish;
    if (next !== undefined || more !== '') {
      text = `${format.presence[this.notifiedBy]} ${next === undefined ? '0 0 0 ' : this.wordsOf(next)}${more}`;
    }
    const script = next === undefined ? RELEASE : HAND_OVER;
    const args = [ownerOrTicket, format.deleteCommand, text, ...format.notification(this.names)];
    const answered = (reply: QueueReply): T | Promise<T> => {
      if (reply.found === 'released' && keep === undefined) pollers?.released(clock.now());
      // The lock was left to pollers now, or not long ago.
      if (reply.pauseIn !== undefined) pollers?.left(clock.now());
      if (reply.isNotificationRefused) format.parts.warnNotificationRefused();
      return use(reply);
    };
    // A kept grant stays known as entered: a repeated message about it must not release the lock before it is kept.
    return this.ask(script, args, next, now, timeout, answered, keep === undefined ? ownerOrTicket : undefined);
  }

  /** The next caller, as HAND_OVER takes it. */
  private wordsOf({ hold, id }: Ticket): string {
    // Where each caller takes a script, its token comes with that.
    const tokens = this.hearsOfOthers ? this.#format.tokensFor() : 1;
    return `${hold.waited} ${hold.ttl} ${tokens} ${id}`;
  }

  /** The queue stays as it is. */
  get travel(): Travel {
    return this.#format.travelOf(this.names);
  }

  /** The lock may be free: a poll hands it over to the next ticket. */
  leaseLost(): void {
    this.#presence?.leave(false);
    this.#presence?.poll();
  }

  // What messages and replies say

  /** `grant <owner> <ms> <token>`, WANTED, or the lock's name: it may be free, or its key ends at another time now. */
  onMessage(message: string): void {
    if (message === WANTED) this.presence.wanted++;
    if (message === this.#lock) {
      this.presence.hints++;
      this.holder?.confirmSoon();
      this.presence.poll();
    }
    const [kind, owner = '', milliseconds, token = ''] = message.split(' ');
    const life = Number(milliseconds);
    if (kind !== 'grant' || !(life > 0)) return;
    const now = clock.now();
    const driftNow = drift(now);
    const { ticket } = this;
    // The grant was made after the ticket was sent. After a suspension of the machine that proves nothing.
    const isProved = ticket !== undefined && !wasSuspended(ticket.drift, driftNow);
    const until = isProved ? reliableUntil(ticket.sentAt, life) : Number.NEGATIVE_INFINITY;
    const sentAt = ticket?.sentAt ?? now;
    void this.take({ owner, token, until, sentAt, drift: driftNow, life }, this.#format.parts.settings.commandTimeout);
  }

  /** The reply of a poll or of an attempt. */
  onReply(reply: QueueReply): void {
    const { owner, holder, life, isOutsiders } = reply;
    const now = clock.now();
    if (life > 0) this.availability.refused(now, life, holder);
    if (this.ticket !== undefined) {
      let pollIn = life;
      if (isOutsiders && this.#pollers !== undefined) {
        // The holder may notify nobody of its release.
        this.#pollers.refused(now, { remaining: life, owner: holder }, this.presence.hints);
        pollIn = Math.min(life, this.#pollers.pollingInterval(this.#format.longestPollInterval));
      } else if (owner === undefined) this.#pollers?.refusedByListener(now);
      this.presence.schedulePoll(pollIn);
    }
    void this.take(reply);
  }

  /** Gives a grant to the caller that it is for. `timeout`: if that caller has left, it is released within this time. */
  private take(grant: ArrivedGrant, timeout?: number): Promise<unknown> | undefined {
    const { owner } = grant;
    const { ticket } = this;
    if (owner === undefined || owner === this.#entered || this.#isRetired) return undefined;
    if (ticket?.hasOwner(owner)) void this.offer(ticket, owner, grant);
    else if (timeout !== undefined && owner !== ticketOf(owner))
      return this.release(owner, timeout).catch(() => undefined);
    return undefined;
  }

  /**
   * Sends the first renewal, and lets the ticket's caller enter: at once where half of the window is certain, else when
   * that is confirmed. With `minReplicas`, when replicas have it, and with it the grant.
   */
  private async offer(ticket: Ticket, owner: string, grant: ArrivedGrant): Promise<void> {
    const { until, sentAt, life, drift: driftBefore } = grant;
    if (ticket.offered === owner) return;
    // A process without fencing may have granted it.
    if (this.#format.isFencing && grant.token === '') return ticket.retry();
    ticket.offered = owner;
    const now = clock.now();
    const driftNow = drift(now);
    const fencingToken = this.#format.isFencing ? Number(grant.token) : undefined;
    const isProved = !wasSuspended(driftBefore, driftNow) && !this.#format.parts.redis.isReplicated;
    const window = Math.min(life, CLAIM_WINDOW);
    // Without the renewal, its key may end with the window, before the `minHold` ends.
    const isCertain = isProved && until - now >= Math.max(window / 2, ticket.hold.leastLife);
    const renewal = this.#format.renewGrant(this.names, owner, ticket.hold.ttl, Math.max(window / 2, LEAST_TIMEOUT));
    // A task may block the event loop as soon as it has the lock: the renewal has to be on its way before.
    const ownership = await (isCertain ? clock.immediate() : renewal);
    if (ticket.offered !== owner) return;
    if (ownership === undefined) {
      ticket.deliver({ granted: true, owner, until, fencingToken, sentAt, drift: driftBefore, renewal });
    } else if (ownership.state === 'held') {
      ticket.deliver({ granted: true, owner, until: ownership.until, fencingToken, sentAt: now, drift: driftNow });
    } else {
      ticket.retry();
    }
  }

  /**
   * Runs a script that ends a lease, `ended`, or may give `ticket` the lock. `use` makes the result of the reply: to await
   * the promise for that would cost each acquisition another one.
   */
  private ask<T>(
    script: Script,
    args: string[],
    ticket: Ticket | undefined,
    sentAt: number,
    timeout: number,
    use: (reply: QueueReply) => T | Promise<T>,
    ended?: string,
  ): Promise<T> {
    const format = this.#format;
    const driftBefore = ticket?.hold.drift ?? drift(sentAt);
    return new Promise((resolve, reject) => {
      const read = (reply: unknown): T | Promise<T> => {
        this.settled(ticket, ended);
        return use(format.read(script, reply, ticket, sentAt, driftBefore));
      };
      const failed = (error: unknown): void => {
        this.settled(ticket, ended);
        // Redis does not know the ticket: nothing will be released for it. Another attempt makes it anew.
        const isUnknown = isWithoutEffect(error) || (isServerAnswer(error) && ended !== undefined);
        if (isUnknown && ticket?.score === '') this.forgetTicket(ticket.id);
        // A caller of this process may have been granted the lock: a poll finds out.
        if (!isServerAnswer(error)) this.#presence?.poll();
        reject(error);
      };
      const run = { script, keys: format.keysOf(this.names), args, timeout, now: sentAt, read };
      format.parts.redis.send(run, resolve, failed);
    });
  }

  private settled(ticket: Ticket | undefined, ended: string | undefined): void {
    if (ticket !== undefined) ticket.isAsked = false;
    // A message may still report the grant; to release it once more changes nothing.
    if (this.#entered === ended) this.#entered = undefined;
  }
}

/** How callers wait that stand in no queue. */
function outsideQueue(names: LockNames, format: FairFormat): Waiting {
  const { parts } = format;
  const meaningOf = (message: string) => format.meaningOf(message, names);
  const waited = { lock: names.lock, channels: format.channels(names), meaningOf };
  return new Waiting(waited, parts.subscriber(false, true), parts.settings.idleBetweenTries);
}

/** A queue in Redis on Spring's format. */
export const FAIR: LockTypeDefinition = (parts) => {
  const format = new FairFormat(parts);
  return {
    held: kindLua('spring/held'),
    inspector: inspectorOf(
      parts.redis,
      INSPECTION,
      {
        keys: (names) => format.keysOf(names),
        notification: (names) => [format.publish, names.companion('grants'), ...format.notification(names)],
      },
      { queue: { script: FIND_WAITER, key: (names) => names.companion('queue'), beginnings: asOwner } },
    ),
    open(names) {
      format.assertNames(names);
      return new FairProtocol(names, format);
    },
    close: () => format.pollTimer.close(),
  };
};
