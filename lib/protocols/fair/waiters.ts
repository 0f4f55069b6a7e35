import type { Acquisition } from '../../acquire/acquisition';
import { clock, drift, wasSuspended } from '../../internal/clock';
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
  /** The drift between the clocks when that was measured. */
  readonly drift: number;
  /** ms; the longest time that it can still last without a renewal. */
  readonly window: number;
}

/** The callers of this process that wait for one fair lock, and the grants to them. */
export class Waiters {
  readonly #names: LockNames;
  readonly #format: QueueFormat;
  /** Made for the first of them. */
  #tickets: Map<string, Ticket> | undefined;
  /** The last grant that a caller of this process entered with. Whatever repeats it later is ignored. */
  #entered: string | undefined;

  constructor(names: LockNames, format: QueueFormat) {
    this.#names = names;
    this.#format = format;
  }

  get size(): number {
    return this.#tickets?.size ?? 0;
  }

  /** Those that have not been granted the lock. */
  get waiting(): Ticket[] {
    return [...(this.#tickets?.values() ?? [])].filter(({ offered }) => offered === undefined);
  }

  /** The ticket of any of them. */
  get anyId(): string | undefined {
    return this.#tickets?.keys().next().value;
  }

  /** The ticket is here before Redis hears of it: a grant may overtake the reply. */
  ticketFor({ ticket: id, ttl, sentAt, drift, waits }: Acquisition): Ticket {
    let ticket = this.#tickets?.get(id);
    if (ticket === undefined) {
      ticket = new Ticket(id, ttl, sentAt, drift);
      if (waits) {
        this.#tickets ??= new Map();
        this.#tickets.set(id, ticket);
      }
    }
    return ticket;
  }

  /** The ticket's caller has the lock. */
  enter(ticket: Ticket, owner: string): void {
    this.#entered = owner;
    this.#tickets?.delete(ticket.id);
  }

  /** The lock, or the position in the queue, is given back. */
  leave(ownerOrTicket: string): void {
    this.#tickets?.delete(ticketOf(ownerOrTicket));
    if (this.#entered === ownerOrTicket) this.#entered = undefined;
  }

  /** Gives a grant to the caller that it is for. `unclaimed`: that caller has left. */
  take(grant: ArrivedGrant): 'taken' | 'unclaimed' {
    if (grant.owner === this.#entered) return 'taken';
    const ticket = this.find(grant.owner);
    if (ticket === undefined) return 'unclaimed';
    void this.#offer(ticket, grant);
    return 'taken';
  }

  /** The ticket that an owner value was granted for, if its caller still waits. */
  find(owner: string): Ticket | undefined {
    return this.#tickets?.get(ticketOf(owner));
  }

  /** Lets the ticket's caller enter: at once where half of the window is certain, else when the renewal is confirmed. */
  async #offer(ticket: Ticket, grant: ArrivedGrant): Promise<void> {
    const { owner, token, until, window } = grant;
    if (ticket.offered === owner) return;
    if (this.#format.lacksToken(token)) {
      ticket.retry();
      return;
    }
    ticket.offered = owner;
    const driftNow = drift();
    const isCertain = until - clock.now() >= window / 2 && !wasSuspended(grant.drift, driftNow);
    const fencingToken = this.#format.fencingToken(token);
    const timeout = Math.max(RENEWAL_AT_LEAST, window / 2);
    const renewal = this.#format.renewNow(this.#names, owner, ticket.ttl, timeout);
    if (isCertain) {
      // A task may block the event loop as soon as it has the lock: the renewal has to be on its way before.
      await clock.immediate();
      if (ticket.offered !== owner) return;
      ticket.deliver({ granted: true, owner, until, fencingToken, drift: grant.drift, renewal });
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
