import type { Hold } from '../../core/hold';
import { clock, drift, wasSuspended } from '../../internal/clock';
import type { LockNames } from '../../redis/names';
import { CLAIM_WINDOW } from './fair-scripts';
import type { QueueFormat } from './queue-format';
import { type ReportedGrant, Ticket, ticketOf } from './ticket';
import { Tickets } from './tickets';

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
  /** ms that its key has to live without a renewal; beyond the claim window: it was given its full ttl. */
  readonly life: number;
}

/**
 * The tickets of this process, and the grants to them: one ticket, and for a moment also that of a caller that
 * gave up.
 */
export class Waiters extends Tickets {
  readonly #names: LockNames;
  readonly #format: QueueFormat;
  /** The last grant that a caller of this process entered with. Whatever repeats it later is ignored. */
  #entered: string | undefined;

  constructor(names: LockNames, format: QueueFormat) {
    super();
    this.#names = names;
    this.#format = format;
  }

  /** Those that are in the queue in Redis, as far as this process knows. */
  get waiting(): Ticket[] {
    return [...this.all()].filter(({ offered, isAsked }) => offered === undefined && !isAsked);
  }

  /** The ticket of any of them. */
  get anyId(): string | undefined {
    return this.first?.id;
  }

  /** The ticket is registered before the command is sent: the message of a grant may arrive before the reply. */
  ticketFor(hold: Hold): Ticket {
    let ticket = this.ticketWith(hold.ticket);
    if (ticket === undefined) {
      ticket = new Ticket(hold);
      if (hold.waits) this.add(ticket);
    }
    return ticket;
  }

  /** The ticket's caller has the lock. */
  enter(ticket: Ticket, owner: string): void {
    this.#entered = owner;
    this.remove(ticket.id);
  }

  /** The lock, or the position in the queue, is about to be given back. */
  forget(ownerOrTicket: string): void {
    this.remove(ticketOf(ownerOrTicket));
  }

  /** The lock was given back. A message may still report the grant; to release it once more changes nothing. */
  forgetEntered(owner: string): void {
    if (this.#entered === owner) this.#entered = undefined;
  }

  /** Gives a grant to the caller that it is for. `unclaimed`: that caller has left. */
  take(grant: ArrivedGrant): 'taken' | 'unclaimed' {
    if (grant.owner === this.#entered) return 'taken';
    const ticket = this.find(grant.owner);
    if (ticket === undefined) return 'unclaimed';
    void this.offer(ticket, grant);
    return 'taken';
  }

  /** The same for a grant that a message reports. */
  takeReported({ owner, token, window }: ReportedGrant): 'taken' | 'unclaimed' {
    const ticket = this.find(owner);
    const now = clock.now();
    const driftNow = drift();
    const until = ticket === undefined ? now : this.#format.grantUntil(owner, window, ticket, now, driftNow);
    return this.take({ owner, token, until, drift: driftNow, life: window });
  }

  /** The ticket that an owner value was granted for, if its caller still waits. */
  find(owner: string): Ticket | undefined {
    return this.ticketWith(ticketOf(owner));
  }

  /**
   * Lets the ticket's caller enter. A grant for the claim window is renewed first: the caller enters at once where half
   * of the window is certain, else when the renewal is confirmed. With `minReplicas` every grant by hand-over is
   * renewed first, and the caller enters when replicas have the renewal, and with it the grant.
   */
  private async offer(ticket: Ticket, grant: ArrivedGrant): Promise<void> {
    const { owner, token, until, life } = grant;
    if (ticket.offered === owner) return;
    if (this.#format.lacksToken(token)) {
      ticket.retry();
      return;
    }
    ticket.offered = owner;
    const driftNow = drift();
    const isUnbroken = !wasSuspended(grant.drift, driftNow);
    const fencingToken = this.#format.fencingToken(token);
    const { isReplicated } = this.#format;
    if (life > CLAIM_WINDOW && isUnbroken && !isReplicated) {
      ticket.deliver({ granted: true, owner, until, fencingToken, drift: grant.drift });
      return;
    }
    const window = Math.min(life, CLAIM_WINDOW);
    const isCertain = until - clock.now() >= window / 2 && isUnbroken && !isReplicated;
    const timeout = Math.max(RENEWAL_AT_LEAST, window / 2);
    const renewal = this.#format.firstRenewal.send(this.#names, owner, ticket.ttl, timeout);
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
