import { clock, MAX_DELAY } from '../clock';
import type { LockNames } from '../redis/names';
import type { Subscription } from '../redis/subscription';
import type { Claim, Grant } from './strategy';

/** A ticket is "<process>:<number>": its process has a channel of its own. */
export function processOf(owner: string): string {
  return owner.slice(0, owner.lastIndexOf(':'));
}

/** So many tickets are sent by one script. */
const BATCH = 500;

/** One caller of this process that waits for a fair lock. */
export class Ticket {
  readonly claim: Claim;
  #grant: Grant | undefined;
  #resume: ((grant: Grant | undefined) => void) | undefined;

  constructor(claim: Claim) {
    this.claim = claim;
  }

  get isGranted(): boolean {
    return this.#grant !== undefined;
  }

  /** Calls `resume` with the grant, which may be there already; or with nothing when it is time for another attempt. */
  attach(resume: (grant: Grant | undefined) => void): () => void {
    this.#resume = resume;
    if (this.#grant !== undefined) resume(this.#grant);
    return () => {
      this.#resume = undefined;
    };
  }

  deliver(grant: Grant): void {
    this.#grant = grant;
    this.#resume?.(grant);
  }

  /** Another attempt tells what is the matter. */
  retry(): void {
    this.#resume?.(undefined);
  }
}

/** What a waiting room needs of its strategy. */
export interface RoomServices {
  /** Sends the tickets (again), and answers with the ms that the lock's key has to live; -1: no end. */
  ask(names: LockNames, tickets: readonly Ticket[]): Promise<number>;
  listen(names: LockNames, process: string): Subscription | undefined;
  leave(subscription: Subscription): void;
  empty(names: LockNames): void;
  readonly idleBetweenTries: number;
}

/**
 * The callers of this process that wait for one fair lock. Between them they look at Redis once when the life of the
 * lock's key ends, since a dead holder tells nobody; more often only as long as no message can reach this process.
 */
export class WaitingRoom {
  readonly names: LockNames;
  readonly #services: RoomServices;
  readonly #tickets = new Map<string, Ticket>();
  #subscription: Subscription | undefined;
  #unlisten: (() => void) | undefined;
  #timer: NodeJS.Timeout | undefined;
  #isLooking = false;
  #isToLookAgain = false;
  #deputyAt = Number.POSITIVE_INFINITY;

  constructor(names: LockNames, services: RoomServices) {
    this.names = names;
    this.#services = services;
  }

  /** Messages reach this process. */
  get isListening(): boolean {
    return this.#subscription?.isOpen ?? false;
  }

  admit(claim: Claim): Ticket {
    let ticket = this.#tickets.get(claim.owner);
    if (ticket === undefined) {
      ticket = new Ticket(claim);
      this.#tickets.set(claim.owner, ticket);
    }
    return ticket;
  }

  ticket(owner: string): Ticket | undefined {
    return this.#tickets.get(owner);
  }

  /** It waits no longer. */
  dismiss(owner: string): void {
    if (!this.#tickets.delete(owner) || this.#tickets.size > 0) return;
    this.close();
    this.#services.empty(this.names);
  }

  close(): void {
    clock.clearTimeout(this.#timer);
    this.#unlisten?.();
    if (this.#subscription !== undefined) this.#services.leave(this.#subscription);
    this.#subscription = undefined;
  }

  /** Makes sure that messages reach this process, or will. Whenever one may have been missed, it looks. */
  listen(): void {
    if (this.#subscription !== undefined || this.#tickets.size === 0) return;
    const [owner = ''] = this.#tickets.keys();
    this.#subscription = this.#services.listen(this.names, processOf(owner));
    this.#unlisten = this.#subscription?.next(() => {
      // Not to be had: the next look tries to listen again.
      if (this.#subscription?.hasFailed) this.#subscription = undefined;
      void this.look();
    });
  }

  /** The lock's key lives for so many ms yet: looks then, if nothing has happened. */
  lookAfter(life: number): void {
    if (this.#tickets.size === 0) return;
    const idle = this.#services.idleBetweenTries;
    const end = life >= 0 ? life : 10 * idle;
    const polling = this.isListening ? end : Math.min(end, idle);
    const delay = Math.max(1, Math.min(polling, this.#deputyAt - clock.now()));
    clock.clearTimeout(this.#timer);
    this.#timer = clock.setTimeout(() => void this.look(), Math.min(delay, MAX_DELAY));
  }

  /** Another process was granted the lock for `window` ms: it is for us to look whether it took it. */
  seeTo(window: number): void {
    // Remembered, since the reply to what was sent before knows nothing of it.
    this.#deputyAt = clock.now() + window;
    this.lookAfter(window);
  }

  async look(): Promise<void> {
    if (this.#tickets.size === 0) return;
    // What is missed now, the look that is under way may have been too early for.
    if (this.#isLooking) {
      this.#isToLookAgain = true;
      return;
    }
    this.#isToLookAgain = false;
    this.#isLooking = true;
    this.#deputyAt = Number.POSITIVE_INFINITY;
    this.listen();
    const wasListening = this.isListening;
    try {
      const waiting = [...this.#tickets.values()].filter((ticket) => !ticket.isGranted);
      for (let from = 0; from < waiting.length; from += BATCH) {
        this.lookAfter(await this.#services.ask(this.names, waiting.slice(from, from + BATCH)));
      }
    } catch {
      // Each caller asks for itself, and finds out what is the matter.
      for (const ticket of [...this.#tickets.values()]) ticket.retry();
    } finally {
      this.#isLooking = false;
    }
    // Redis was told that these tickets poll: now they need not.
    if (this.#isToLookAgain || (this.isListening && !wasListening)) await this.look();
  }
}
