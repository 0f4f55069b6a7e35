import type { Acquisition } from '../acquire/acquisition';
import { Availability } from '../acquire/availability';
import type { Wait } from '../acquire/wait';
import { clock, drift } from '../internal/clock';
import type { Keep } from '../protocols/min-hold/kept';
import {
  type Grant,
  type HandOver,
  type Holder,
  type LockProtocol,
  NOT_GRANTED,
  type NotGranted,
  type Ownership,
  type Refusal,
  type Released,
  type RenewalMode,
} from '../protocols/protocol';
import type { Permits } from '../protocols/semaphore-read-write/shared-kinds';
import type { InMemoryLocks } from './in-memory-locks';
import type { Held, StoredKind } from './stored-lease';
import type { StoredLock } from './stored-lock';

/** One lock in memory, as its callers see it. They queue there, each for itself: FIFO over all registries. */
export class InMemoryProtocol implements LockProtocol {
  readonly availability = new Availability();
  holder: Holder | undefined;
  /** Of a semaphore. */
  permits: Permits | undefined;
  readonly #name: string;
  readonly #kind: StoredKind;
  readonly #locks: InMemoryLocks;
  readonly #isFencing: boolean;

  constructor(name: string, kind: StoredKind, locks: InMemoryLocks, isFencing: boolean) {
    this.#name = name;
    this.#kind = kind;
    this.#locks = locks;
    this.#isFencing = isFencing && (kind === 'lock' || kind === 'write');
  }

  get queue(): 'redis' {
    return 'redis';
  }

  /** All that is remembered is in `InMemoryLocks`. */
  get isActive(): boolean {
    return false;
  }

  /** The queue gives every caller its turn. */
  standBack(): undefined {}

  attempt(acquisition: Acquisition, timeout: number): Promise<Grant | Refusal> {
    const { ticket, ttl, waits, sentAt } = acquisition;
    acquisition.isEnqueued = waits;
    return this.#locks.send((): Grant | Refusal => {
      const answer = this.#lock.acquire({ ticket, kind: this.#kind, ttl, permits: this.permits?.count }, waits);
      if (answer.granted) return this.#grant(ticket, answer);
      return { ...answer, roundTrip: clock.now() - sentAt };
    }, timeout);
  }

  async wait({ ticket }: Acquisition, _refusal: Refusal, wait: Wait): Promise<Grant | NotGranted> {
    try {
      const held = await wait.suspend<Held | 'not granted'>(wait.remaining, (resume) =>
        this.#lock.await(ticket, resume),
      );
      if (held !== undefined) return held === 'not granted' ? NOT_GRANTED : this.#grant(ticket, held);
      this.#leave(ticket);
      return NOT_GRANTED;
    } catch (interruption) {
      this.#leave(ticket);
      throw interruption;
    }
  }

  renew(owner: string, ttl: number, mode: RenewalMode, timeout: number, settle: (ownership: Ownership) => void): void {
    const execute = (): Ownership => this.#lock.renew(owner, ttl, mode);
    // At once: timers that a test advances in one go fire without the promise jobs between them.
    if (!this.#locks.isSilent) settle(execute());
    else this.#locks.send(execute, timeout).then(settle, (cause: unknown) => settle({ state: 'unknown', cause }));
  }

  release(ownerOrTicket: string, timeout: number): Promise<Released> {
    return this.#locks.send(() => this.#lock.release(ownerOrTicket), timeout);
  }

  keep(owner: string, keep: Keep, timeout: number): Promise<Released> {
    return this.#locks.send(() => this.#lock.keep(owner, keep), timeout);
  }

  async handOver(owner: string, _to: Acquisition, timeout: number): Promise<HandOver> {
    return { answer: undefined, found: await this.release(owner, timeout) };
  }

  orphanLife({ ttl }: Acquisition): number {
    return ttl;
  }

  /** Its caller has given up. In a silence the orphan is followed up. */
  #leave(ticket: string): void {
    if (!this.#locks.isSilent) this.#lock.release(ticket);
  }

  #grant(owner: string, { until, token }: Held): Grant {
    return { granted: true, owner, until, fencingToken: this.#isFencing ? token : undefined, drift: drift() };
  }

  get #lock(): StoredLock {
    return this.#locks.find(this.#name);
  }
}
