import { clock, drift } from '../internal/clock';
import type { Keep } from '../protocols/min-hold/kept';
import type { Connection } from '../redis/connection';
import { CommandTimeoutError, isServerAnswer } from '../redis/failure';
import { MinHold } from './min-hold';
import type { TicketSequence } from './ticket-sequence';

/** ms; a grant whose answer took longer may come from a server that was frozen, and replaced meanwhile. */
const LATE_GRANT = 500;

/**
 * One caller's acquisition, from its first attempt on: what it asks for, and what is known of its attempts. Its ticket
 * is an owner value that is used for no other acquisition, so a late command of it can never touch another one.
 */
export class Acquisition {
  /** The owner value that its attempts write. A hand-over may grant it the lock under a value derived from this one. */
  readonly ticket: string;
  /** ms, whole. */
  readonly ttl: number;
  /** It may get a position in a queue in Redis. */
  readonly waits: boolean;
  /** The connection that its attempts go over, if the client reports it. */
  readonly epoch: number | undefined;
  /** When its caller called, on the monotonic clock: the order of `fair` is that of the calls. */
  readonly since: number;
  /** When the last attempt was sent, on the monotonic clock, and the drift between the clocks then. */
  sentAt = 0;
  drift = 0;
  /** It has, or may get, a position in a queue in Redis. */
  isEnqueued = false;
  /** Attempts whose outcome is not known yet. */
  inDoubt = 0;
  /** When the outcome of all of them is known. */
  settled: Promise<unknown> | undefined;
  /** ms for which its key has to live from the grant on, even if its process dies: the `minHold` of the call. */
  leastLife = 0;
  /** Set when its caller has the lock: how long it stays taken though it is unlocked. */
  minHold: MinHold | undefined;
  /** The outcome of an attempt will never be known: its connection was lost before Redis answered. */
  lostTrack = false;

  constructor(ticket: string, ttl: number, waits: boolean, epoch: number | undefined, since: number) {
    this.ticket = ticket;
    this.ttl = Math.ceil(ttl);
    this.waits = waits;
    this.epoch = epoch;
    this.since = since;
  }

  /** An attempt is about to be sent. `now`: for a caller that has read the clock just now. */
  stamp(now = clock.now()): void {
    this.sentAt = now;
    this.drift = drift(now);
  }

  /** The answer to the last attempt took so long that the server may have been replaced. */
  isLate(now = clock.now()): boolean {
    return now - this.sentAt > LATE_GRANT;
  }

  /** The outcome of `attempt` is not known: it failed without an answer, or its caller left before the answer. */
  doubt(attempt: Promise<unknown>): void {
    this.inDoubt++;
    const settled = wasAnswered(attempt).then((answered) => {
      this.inDoubt--;
      if (!answered) this.lostTrack = true;
    });
    this.settled = Promise.all([this.settled, settled]);
  }

  /** The lock stays taken for `ms` from now on. `age`: ms since it was acquired, or more. */
  holdAtLeast(ms: number, age: number): void {
    this.minHold ??= new MinHold();
    this.minHold.extend(ms, age);
  }

  /** How long it is to be kept when it is released now; `undefined`: not at all. */
  get keep(): Keep | undefined {
    return this.minHold?.keep(this.ttl);
  }

  /** Every attempt was answered: what Redis says of this acquisition from now on is final. */
  get isCertain(): boolean {
    return this.inDoubt === 0 && !this.lostTrack;
  }

  /** Something of it may be in Redis, or may still be written there. */
  get mayBeInRedis(): boolean {
    return this.settled !== undefined || this.isEnqueued;
  }
}

/** What acquisitions are made from. */
interface AcquisitionServices {
  readonly connection: Connection;
  readonly tickets: TicketSequence;
}

/** `ttl` in ms. `waits`: its caller may queue in Redis. `since`: when it called. */
export function newAcquisition(services: AcquisitionServices, ttl: number, waits: boolean, since: number): Acquisition {
  return new Acquisition(services.tickets.next(), ttl, waits, services.connection.connectionEpoch, since);
}

/** Resolves when it is known whether Redis answered. An answer that comes late counts, a lost connection does not. */
async function wasAnswered(attempt: Promise<unknown>): Promise<boolean> {
  try {
    await attempt;
    return true;
  } catch (error) {
    return error instanceof CommandTimeoutError ? wasAnswered(error.late) : isServerAnswer(error);
  }
}
