import type { Acquisition } from '../../acquire/acquisition';
import { Availability } from '../../acquire/availability';
import type { Wait } from '../../acquire/wait';
import { clock, drift } from '../../internal/clock';
import { isFinal, isServerAnswer } from '../../redis/failure';
import type { LockNames } from '../../redis/names';
import type { Subscriber } from '../../redis/subscriber';
import type { Subscription } from '../../redis/subscription';
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
import { CLAIM_WINDOW, type NotifiedBy } from './fair-scripts';
import type { Polled, Poller } from './poller';
import { type QueueFormat, type QueueReply, replyUntil } from './queue-format';
import { processOf, Ticket, ticketOf } from './ticket';

/** At most this many tickets go into one poll. */
const LARGEST_POLL = 500;

/** ms for which a process that let a grant run out polls instead of relying on messages. */
const POLLS_AFTER_LAPSE = 10_000;

/** ms; the shortest interval between two polls. */
const LEAST_INTERVAL = 10;

/** What the fair locks of a registry share. Durations in ms. */
export interface FairServices {
  readonly format: QueueFormat;
  readonly subscriber: Subscriber;
  readonly poller: Poller;
  /** The longest time between two polls while messages reach this process, and while they do not. */
  readonly pollInterval: number;
  readonly idleBetweenTries: number;
  readonly commandTimeout: number;
  readonly unavailableAfter: number;
  readonly onNotificationRefused: () => void;
}

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
export class FairProtocol implements LockProtocol, Polled {
  readonly queue = 'redis';
  readonly availability = new Availability();
  readonly #names: LockNames;
  readonly #services: FairServices;
  readonly #tickets = new Map<string, Ticket>();
  /** The last grant that a caller of this process entered with. Whatever repeats it later is ignored. */
  #entered: string | undefined;
  #subscription: Subscription | undefined;
  #hasJoined = false;
  #isPolling = false;
  #isToPollAgain = false;
  #pollsUntil = Number.NEGATIVE_INFINITY;

  constructor(names: LockNames, services: FairServices) {
    this.#names = names;
    this.#services = services;
  }

  get isActive(): boolean {
    return (
      this.#tickets.size > 0 || this.#isPolling || (this.#subscription !== undefined && !this.#subscription.isOver)
    );
  }

  /** The queue gives every process its turn. */
  standBack(): undefined {}

  async attempt(acquisition: Acquisition, timeout: number): Promise<Grant | Refusal> {
    const { sentAt, drift: driftBefore } = acquisition;
    const ticket = this.#ticketFor(acquisition);
    // After an earlier wait this process may still be subscribed. The first wait of all must not cost an uncontended lock.
    if (acquisition.waits && this.#isSubscribed) this.#listen();
    acquisition.isEnqueued = acquisition.waits;
    const notifiedBy = acquisition.waits ? this.#notifiedBy : 'none';
    let reply: Awaited<ReturnType<QueueFormat['enter']>>;
    try {
      reply = await this.#services.format.enter(this.#names, ticket, notifiedBy, sentAt, timeout);
    } catch (error) {
      this.#missedReply(error);
      throw error;
    }
    ticket.score = reply.score;
    if (reply.owner !== undefined && ticketOf(reply.owner) === ticket.id) {
      this.#enter(ticket, reply.owner);
      const fencingToken = this.#services.format.fencingToken(reply.token);
      return { granted: true, owner: reply.owner, until: replyUntil(reply), fencingToken, drift: driftBefore };
    }
    this.#learn(reply);
    return { granted: false, remaining: reply.life, roundTrip: clock.now() - sentAt };
  }

  async wait(acquisition: Acquisition, _refusal: Refusal, wait: Wait): Promise<Grant | NotGranted> {
    const ticket = this.#ticketFor(acquisition);
    this.#listen();
    try {
      const grant = await wait.suspend<Grant | undefined>(wait.remaining, (resume) => ticket.attach(resume));
      if (grant === undefined) return NOT_GRANTED;
      if (grant.until <= clock.now()) {
        ticket.offered = undefined;
        return NOT_GRANTED;
      }
      this.#enter(ticket, grant.owner);
      return grant;
    } catch (interruption) {
      this.#dismiss(ticket.id);
      throw interruption;
    }
  }

  async renew(owner: string, ttl: number, mode: RenewalMode, timeout: number): Promise<Ownership> {
    try {
      return await this.#services.format.renew(this.#names, owner, ttl, mode, timeout);
    } catch (cause) {
      return { state: 'unknown', cause };
    }
  }

  /** Also for a ticket whose caller has left: then it passes on a grant of it. */
  async release(ownerOrTicket: string, timeout: number): Promise<Released> {
    this.#dismiss(ticketOf(ownerOrTicket));
    if (this.#entered === ownerOrTicket) this.#entered = undefined;
    try {
      const { found, queue, isNotificationRefused } = await this.#services.format.leave(
        this.#names,
        ownerOrTicket,
        timeout,
      );
      if (isNotificationRefused) this.#services.onNotificationRefused();
      const unclaimed = queue && this.#learn(queue);
      // The lock is not free as long as it is granted to a caller that has left.
      if (unclaimed !== undefined) await this.release(unclaimed, timeout).catch(() => undefined);
      return found;
    } catch (error) {
      this.#missedReply(error);
      throw error;
    }
  }

  /** Callers queue in Redis, each for itself: a release hands the lock over. */
  async handOver(owner: string, _to: Acquisition, timeout: number): Promise<HandOver> {
    return { handedOver: undefined, found: await this.release(owner, timeout) };
  }

  orphanLife({ ttl }: Acquisition): number {
    return Math.max(ttl, this.#services.format.processLife);
  }

  /** Polls now, or once more after the poll that is in flight: that one may have been sent too early. */
  poll(): void {
    if (this.#isPolling) this.#isToPollAgain = true;
    else if (this.#tickets.size > 0) void this.#poll();
  }

  async #poll(): Promise<void> {
    this.#isPolling = true;
    do {
      this.#isToPollAgain = false;
      this.#listen();
      const waiting = [...this.#tickets.values()].filter(({ offered }) => offered === undefined);
      for (let from = 0; from < waiting.length; from += LARGEST_POLL) {
        await this.#pollFor(waiting.slice(from, from + LARGEST_POLL));
      }
    } while (this.#isToPollAgain && this.#tickets.size > 0);
    this.#isPolling = false;
  }

  async #pollFor(tickets: readonly Ticket[]): Promise<void> {
    const [first] = tickets;
    if (first === undefined) return;
    const { format, commandTimeout } = this.#services;
    const sentAt = clock.now();
    this.availability.asked(sentAt);
    try {
      const reply = await format.pollFor(this.#names, processOf(first.id), this.#notifiedBy, tickets, commandTimeout);
      this.availability.answered();
      if (reply.hasLapsed) this.#pollsUntil = clock.now() + POLLS_AFTER_LAPSE;
      this.#learn(reply);
      // A ticket that is gone is entered again by an attempt, which is followed up.
      for (const position of reply.missing) {
        const ticket = tickets[position];
        if (ticket !== undefined && ticket.offered === undefined) ticket.retry();
      }
    } catch (error) {
      this.#pollFailed(error, tickets);
    }
  }

  /** Attempts show what is wrong: of all waiters where it will not pass, else of those for which Redis is silent too long. */
  #pollFailed(error: unknown, tickets: readonly Ticket[]): void {
    const now = clock.now();
    this.availability.failed(error);
    for (const ticket of tickets) {
      const isSilent = this.availability.silence(ticket.sentAt, now) >= this.#services.unavailableAfter;
      if (isFinal(error) || isSilent) ticket.retry();
    }
    this.#schedulePoll(this.#services.idleBetweenTries);
  }

  /** A reply did not arrive that may have said that the lock is granted to a caller of this process. */
  #missedReply(error: unknown): void {
    if (!isServerAnswer(error)) this.poll();
  }

  /** Takes over what a reply says of the lock. Returns a grant whose caller has left. */
  #learn(reply: QueueReply): string | undefined {
    if (this.#tickets.size > 0) this.#schedulePoll(reply.life);
    const { owner, token } = reply;
    if (owner === undefined || owner === this.#entered) return undefined;
    const ticket = this.#tickets.get(ticketOf(owner));
    if (ticket === undefined) return owner === ticketOf(owner) ? undefined : owner;
    void this.#offer(ticket, owner, token, replyUntil(reply), Math.min(reply.life, CLAIM_WINDOW));
    return undefined;
  }

  #schedulePoll(life: number): void {
    const { idleBetweenTries, poller, pollInterval } = this.#services;
    const longest = this.#notifiedBy === 'message' ? pollInterval : Math.min(idleBetweenTries, CLAIM_WINDOW / 3);
    poller.schedule(this, clock.now() + Math.max(LEAST_INTERVAL, Math.min(life + 1, longest)));
  }

  /** `grant <owner> <window in ms> <token>`, or the lock's name: another lock type released it. */
  readonly #onMessage = (message: string): void => {
    const [kind, owner = '', window = '', token = ''] = message.split(' ');
    if (message === this.#names.lock) this.poll();
    else if (kind === 'grant' && Number(window) > 0) this.#onGrant(owner, Number(window), token);
  };

  #onGrant(owner: string, window: number, token: string): void {
    if (owner === this.#entered) return;
    const ticket = this.#tickets.get(ticketOf(owner));
    if (ticket === undefined) {
      // Its caller has left.
      this.release(owner, this.#services.commandTimeout).catch(() => undefined);
      return;
    }
    const until = this.#services.format.grantUntil(owner, window, ticket.sentAt, clock.now());
    void this.#offer(ticket, owner, token, until, window);
  }

  /** Lets the ticket's caller enter: at once where half of the window is certain, else when the renewal is confirmed. */
  async #offer(ticket: Ticket, owner: string, token: string, until: number, window: number): Promise<void> {
    if (ticket.offered === owner) return;
    const { format } = this.#services;
    if (format.lacksToken(token)) {
      ticket.retry();
      return;
    }
    ticket.offered = owner;
    const now = clock.now();
    const driftNow = drift();
    const fencingToken = format.fencingToken(token);
    const renewal = format.renewNow(this.#names, owner, ticket.ttl, Math.max(LEAST_INTERVAL, window / 2));
    if (until - now >= window / 2) {
      // A task may block the event loop as soon as it has the lock: the renewal has to be on its way before.
      await clock.immediate();
      if (ticket.offered === owner)
        ticket.deliver({ granted: true, owner, until, fencingToken, drift: driftNow, renewal });
      return;
    }
    const ownership = await renewal;
    if (ticket.offered !== owner) return;
    if (ownership.state === 'held') {
      ticket.deliver({ granted: true, owner, until: ownership.until, fencingToken, drift: driftNow });
    } else {
      ticket.retry();
    }
  }

  /** The ticket stands here before Redis hears of it: a grant may overtake the reply. */
  #ticketFor({ ticket: id, ttl, sentAt, waits }: Acquisition): Ticket {
    let ticket = this.#tickets.get(id);
    if (ticket === undefined) {
      ticket = new Ticket(id, ttl, sentAt);
      if (waits) this.#tickets.set(id, ticket);
    }
    return ticket;
  }

  #enter(ticket: Ticket, owner: string): void {
    this.#entered = owner;
    this.#dismiss(ticket.id);
  }

  /** The ticket's caller waits no more. */
  #dismiss(id: string): void {
    if (!this.#tickets.delete(id) || this.#tickets.size > 0) return;
    this.#services.poller.cancel(this);
    if (this.#hasJoined) this.#subscription?.leave();
    this.#hasJoined = false;
  }

  get #isSubscribed(): boolean {
    return this.#subscription !== undefined && !this.#subscription.isOver;
  }

  get #notifiedBy(): NotifiedBy {
    return this.#subscription?.isOpen && clock.now() >= this.#pollsUntil ? 'message' : 'poll';
  }

  /** Listens for grants as long as there are tickets. Whenever a message may have been missed, it polls. */
  #listen(): void {
    const [id] = this.#tickets.keys();
    if (id === undefined) return;
    if (!this.#isSubscribed) {
      this.#hasJoined = false;
      this.#subscription = this.#services.subscriber.subscribe(this.#channels(id), this.#onMessage);
      this.#subscription?.onWake(() => this.poll());
    }
    if (this.#hasJoined || this.#subscription === undefined) return;
    this.#subscription.join();
    this.#hasJoined = true;
  }

  /** On a cluster, the other lock types and Spring publish a release on a channel that is not sharded: only polls find it. */
  #channels(id: string): string[] {
    const { format } = this.#services;
    const grants = format.grants(this.#names, processOf(id));
    return format.countsListeners ? [grants, ...format.channels(this.#names)] : [grants];
  }
}
