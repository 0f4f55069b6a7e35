import { Availability } from '../core/availability';
import type { Hold } from '../core/hold';
import type { Permits } from '../core/protocol';
import {
  type Grant,
  type Holder,
  type Keep,
  type LockProtocol,
  NOT_GRANTED,
  type NotGranted,
  type Ownership,
  type Refusal,
  type Released,
  type RenewalMode,
} from '../core/protocol';
import type { Wait } from '../core/wait';
import type { InMemoryBackend } from './in-memory-backend';
import type { StoredKind, StoredLock } from './stored-lock';

/** One lock in memory, as its callers see it. They queue there, each for itself: FIFO over all registries. */
export class InMemoryProtocol implements LockProtocol {
  readonly availability = new Availability();
  holder: Holder | undefined;
  /** Of a semaphore. */
  permits: Permits | undefined;
  /** All that is remembered is in `InMemoryLocks`. */
  readonly isActive = false;
  readonly #name: string;
  readonly #kind: StoredKind;
  readonly #backend: InMemoryBackend;
  readonly #isFencing: boolean;
  /** Those of this registry that wait, each with what makes it attempt again. */
  readonly #waiting = new Set<(result: NotGranted) => void>();

  constructor(name: string, kind: StoredKind, backend: InMemoryBackend, isFencing: boolean) {
    this.#name = name;
    this.#kind = kind;
    this.#backend = backend;
    this.#isFencing = isFencing && (kind === 'lock' || kind === 'write');
  }

  /** Readers enter together with those of their process, as in Redis. */
  get queuesItself(): boolean {
    return this.#kind !== 'read';
  }

  /** The queue gives every caller its turn. */
  standBack(): undefined {}

  async attempt(hold: Hold, timeout: number): Promise<Grant | Refusal> {
    const { ticket, ttl, waits, permits: takes } = hold;
    hold.isEnqueued = waits;
    const answer = await this.#backend.send(() => {
      const permits = this.permits && { count: this.permits.count, at: this.permits.givenAt };
      return this.#lock.acquire({ ticket, kind: this.#kind, ttl, permits, takes }, waits);
    }, timeout);
    return this.#answer(answer);
  }

  async wait({ ticket }: Hold, _refusal: Refusal, wait: Wait): Promise<Grant | NotGranted> {
    if (this.permits !== undefined) this.permits.waiting = this;
    let answer: Grant | NotGranted | undefined;
    try {
      answer = await wait.suspend<Grant | NotGranted>(wait.remaining, (resume) => {
        this.#waiting.add(resume);
        const leave = this.#lock.await(ticket, resume);
        return () => {
          this.#waiting.delete(resume);
          leave();
        };
      });
    } finally {
      // Its caller has given up. In a silence the orphan is followed up.
      if (answer === undefined && !this.#backend.locks.isSilent) this.#lock.release(ticket);
    }
    return this.#answer(answer ?? NOT_GRANTED);
  }

  /** A caller that waits tells its number of permits. It keeps its position. */
  wake(): void {
    const [first] = this.#waiting;
    first?.(NOT_GRANTED);
  }

  renew(owner: string, ttl: number, mode: RenewalMode, timeout: number, settle: (ownership: Ownership) => void): void {
    const execute = (): Ownership => this.#lock.renew(owner, ttl, mode);
    // At once: timers that a test advances in one go fire without the promise jobs between them.
    if (!this.#backend.locks.isSilent) settle(execute());
    else this.#backend.send(execute, timeout).then(settle, (cause: unknown) => settle({ state: 'unknown', cause }));
  }

  release(ownerOrTicket: string, timeout: number, keep?: Keep): Promise<Released> {
    return this.#backend.send(
      () => (keep === undefined ? this.#lock.release(ownerOrTicket) : this.#lock.keep(ownerOrTicket, keep)),
      timeout,
    );
  }

  /** The lock is for the first in the queue. Where nobody waits, readers enter beside others. */
  mayPassOn(): boolean {
    return this.#kind === 'read' && !this.#backend.locks.isSilent && !this.#lock.isAwaited;
  }

  orphanLife({ ttl }: Hold): number {
    return ttl;
  }

  #answer<T extends Grant | NotGranted>(answer: T): T {
    return answer.granted && !this.#isFencing ? { ...answer, fencingToken: undefined } : answer;
  }

  get #lock(): StoredLock {
    return this.#backend.locks.find(this.#name);
  }
}
