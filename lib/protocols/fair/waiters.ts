import type { Acquisition } from '../../acquire/acquisition';
import { clock, drift } from '../../internal/clock';
import type { LockNames } from '../../redis/names';
import type { QueueFormat } from './queue-format';
import { Ticket, ticketOf } from './ticket';

/** ms; a renewal has at least this long to be answered. */
const RENEWAL_AT_LEAST = 10;

/** A grant by hand-over that arrived. */
export interface ArrivedGrant {
  readonly owner: string;
  readonly token: string;
  /** Until when it may be relied on, on the monotonic clock. */
  readonly until: number;
  /** ms; the longest time that it can still last without a renewal. */
  readonly window: number;
}

/** The callers of this process that wait for one fair lock, and the grants to them. */
export class Waiters {
  readonly #names: LockNames;
  readonly #format: QueueFormat;
  readonly #tickets = new Map<string, Ticket>();
  /** The last grant that a caller of this process entered with. Whatever repeats it later is ignored. */
  #entered: string | undefined;

  constructor(names: LockNames, format: QueueFormat) {
    this.#names = names;
    this.#format = format;
  }

  get size(): number {
    return this.#tickets.size;
  }

  /** Those that have not been granted the lock. */
  get waiting(): Ticket[] {
    return [...this.#tickets.values()].filter(({ offered }) => offered === undefined);
  }

  /** The ticket of any of them. */
  get anyId(): string | undefined {
    return this.#tickets.keys().next().value;
  }

  /** The ticket is here before Redis hears of it: a grant may overtake the reply. */
  ticketFor({ ticket: id, ttl, sentAt, waits }: Acquisition): Ticket {
    let ticket = this.#tickets.get(id);
    if (ticket === undefined) {
      ticket = new Ticket(id, ttl, sentAt);
      if (waits) this.#tickets.set(id, ticket);
    }
    return ticket;
  }

  /** The ticket's caller has the lock. */
  enter(ticket: Ticket, owner: string): void {
    this.#entered = owner;
    this.#tickets.delete(ticket.id);
  }

  /** The lock, or the position in the queue, is given back. */
  leave(ownerOrTicket: string): void {
    this.#tickets.delete(ticketOf(ownerOrTicket));
    if (this.#entered === ownerOrTicket) this.#entered = undefined;
  }

  /** Gives a grant to the caller that it is for. `unclaimed`: that caller has left. */
  take(grant: ArrivedGrant): 'taken' | 'unclaimed' {
    if (grant.owner === this.#entered) return 'taken';
    const ticket = this.#tickets.get(ticketOf(grant.owner));
    if (ticket === undefined) return 'unclaimed';
    void this.#offer(ticket, grant);
    return 'taken';
  }

  /** When the ticket was first sent, on the monotonic clock: no grant of it was made before. */
  sentAt(owner: string): number | undefined {
    return this.#tickets.get(ticketOf(owner))?.sentAt;
  }

  /** Lets the ticket's caller enter: at once where half of the window is certain, else when the renewal is confirmed. */
  async #offer(ticket: Ticket, { owner, token, until, window }: ArrivedGrant): Promise<void> {
    if (ticket.offered === owner) return;
    if (this.#format.lacksToken(token)) {
      ticket.retry();
      return;
    }
    ticket.offered = owner;
    const driftNow = drift();
    const isCertain = until - clock.now() >= window / 2;
    const fencingToken = this.#format.fencingToken(token);
    const timeout = Math.max(RENEWAL_AT_LEAST, window / 2);
    const renewal = this.#format.renewNow(this.#names, owner, ticket.ttl, timeout);
    if (isCertain) {
      // A task may block the event loop as soon as it has the lock: the renewal has to be on its way before.
      await clock.immediate();
      if (ticket.offered !== owner) return;
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
}
