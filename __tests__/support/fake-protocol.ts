import { Availability } from '../../lib/core/availability';
import type { LockProtocol, Ownership, RenewalMode } from '../../lib/core/protocol';
import { clock, reliableUntil } from '../../lib/internal/clock';

/** Renewals that were asked for in one turn of the event loop: they go to Redis as one command. */
export interface RecordedRequest {
  readonly at: number;
  readonly owners: string[];
  readonly modes: RenewalMode[];
}

/** A protocol without a Redis, on the library's clock. It records the renewals, and does nothing else. */
export class FakeProtocol implements LockProtocol {
  readonly availability = new Availability();
  readonly isActive = false;
  /** ms that every answer takes. */
  latency = 0;
  /** No answer, or an error instead. */
  trouble: 'silence' | 'error' | undefined;
  /** By owner: the answer, where it is not "held". */
  readonly verdicts = new Map<string, Ownership>();
  readonly requests: RecordedRequest[] = [];
  /** The most renewals of one owner that were in flight together. */
  overlap = 0;
  #request: RecordedRequest | undefined;
  readonly #inFlight = new Map<string, number>();

  renew(owner: string, ttl: number, mode: RenewalMode, timeout: number, settle: (ownership: Ownership) => void): void {
    void this.#renew(owner, ttl, mode, timeout).then(settle);
  }

  async #renew(owner: string, ttl: number, mode: RenewalMode, timeout: number): Promise<Ownership> {
    const sentAt = clock.now();
    this.#record(sentAt, owner, mode);
    const inFlight = (this.#inFlight.get(owner) ?? 0) + 1;
    this.#inFlight.set(owner, inFlight);
    this.overlap = Math.max(this.overlap, inFlight);
    const isAnswered = this.trouble === undefined && this.latency <= timeout;
    const duration = this.trouble === 'error' ? 0 : isAnswered ? this.latency : timeout;
    if (duration > 0) await new Promise<void>((resolve) => clock.setTimeout(resolve, duration));
    this.#inFlight.set(owner, (this.#inFlight.get(owner) ?? 1) - 1);
    if (!isAnswered) return { state: 'unknown', cause: new Error('trouble') };
    return this.verdicts.get(owner) ?? { state: 'held', until: reliableUntil(sentAt, ttl) };
  }

  #record(at: number, owner: string, mode: RenewalMode): void {
    if (this.#request === undefined) {
      this.#request = { at, owners: [], modes: [] };
      this.requests.push(this.#request);
      void Promise.resolve().then(() => {
        this.#request = undefined;
      });
    }
    this.#request.owners.push(owner);
    this.#request.modes.push(mode);
  }

  standBack(): undefined {}

  orphanLife(): number {
    return 0;
  }

  readonly attempt = unsupported;
  readonly wait = unsupported;
  readonly release = unsupported;
  readonly mayPassOn = unsupported;
}

function unsupported(): never {
  throw new Error('A fake protocol only renews');
}
