import type { Grant, HoldOfProtocol } from '../../core/protocol';

/** The process of a ticket or owner value: "<process>:<number>", "<process>:<number>@<server time>". */
export function processOf(owner: string): string {
  return owner.slice(0, owner.lastIndexOf(':'));
}

/** The ticket that an owner value was granted for. */
export function ticketOf(owner: string): string {
  const at = owner.lastIndexOf('@');
  return at < 0 ? owner : owner.slice(0, at);
}

/** One caller of this process that waits for a fair lock. */
export class Ticket {
  readonly id: string;
  /** What its caller asks for. */
  readonly hold: HoldOfProtocol;
  /** When it was first sent, on the monotonic clock, and the drift between the clocks then. */
  readonly sentAt: number;
  readonly drift: number;
  /** The position of the ticket. Kept when the ticket is entered again. '': Redis has given it none yet. */
  score = '';
  /** The owner value of the grant that it is about to enter with. */
  offered: string | undefined;
  /** A command that may give it the lock, or a position, is in flight: a poll could not tell its outcome. */
  isAsked = false;
  /** The number of WANTED before that; `undefined`: no message would say it. */
  aloneAt: number | undefined;
  /** What came while its caller did not wait for it: before its first wait, or during an attempt. */
  #missed: { readonly grant: Grant | undefined } | undefined;
  #resume: ((grant: Grant | undefined) => void) | undefined;

  constructor(hold: HoldOfProtocol) {
    this.id = hold.ticket;
    this.hold = hold;
    this.sentAt = hold.sentAt;
    this.drift = hold.drift;
  }

  /** Whether the owner value was granted for it. Mostly it is its id itself. */
  hasOwner(owner: string | undefined): boolean {
    return owner === this.id || (owner !== undefined && ticketOf(owner) === this.id);
  }

  /** A command for it is about to be sent. It is also the attempt that an earlier `retry` asked for. */
  asking(aloneAt: number | undefined): void {
    this.isAsked = true;
    this.aloneAt = aloneAt;
    if (this.#missed?.grant === undefined) this.#missed = undefined;
  }

  /** Calls `resume` once, with a grant, or with nothing when another attempt is needed. At once if that came before. */
  attach(resume: (grant: Grant | undefined) => void): () => void {
    this.#resume = resume;
    const missed = this.#missed;
    this.#missed = undefined;
    if (missed !== undefined) resume(missed.grant);
    return () => {
      this.#resume = undefined;
    };
  }

  /** The lock is its own; `undefined`: see `retry`. */
  deliver(grant: Grant | undefined): void {
    if (this.#resume === undefined) this.#missed = { grant };
    else this.#resume(grant);
  }

  /** Another attempt is needed: it enters the ticket again, or shows what is wrong. */
  retry(): void {
    this.offered = undefined;
    this.deliver(undefined);
  }
}
