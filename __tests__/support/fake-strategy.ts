import { clock, reliableUntil } from '../../lib/internal/clock';
import type { Claim, Grant, LockStrategy, Ownership, Released, Renewal } from '../../lib/strategies/strategy';

/** One call of `renew`. */
export interface RecordedRenewal {
  readonly at: number;
  readonly claims: readonly Claim[];
  readonly ttls: readonly number[];
}

/** A strategy without a Redis, on the library's clock, which writes down what it is asked to renew. */
export class FakeStrategy implements LockStrategy {
  readonly queue = 'local';
  readonly handOver = 0;
  /** ms that every answer takes. */
  latency = 0;
  /** No answer, or an error instead. */
  trouble: 'silence' | 'error' | undefined;
  /** What it says of a claim, if it is not "held". */
  readonly verdicts = new Map<Claim, Ownership>();
  readonly renewals: RecordedRenewal[] = [];
  readonly released: Claim[] = [];
  /** The most renewals of one claim that were in flight together. */
  overlap = 0;
  readonly #inFlight = new Map<Claim, number>();

  async renew(renewals: readonly Renewal[], timeout: number): Promise<readonly Ownership[]> {
    const sentAt = clock.now();
    this.renewals.push({
      at: sentAt,
      claims: renewals.map(({ claim }) => claim),
      ttls: renewals.map(({ ttl }) => ttl),
    });
    for (const { claim } of renewals) {
      const many = (this.#inFlight.get(claim) ?? 0) + 1;
      this.#inFlight.set(claim, many);
      this.overlap = Math.max(this.overlap, many);
    }
    const answers = this.trouble === undefined && this.latency <= timeout;
    const duration = this.trouble === 'error' ? 0 : answers ? this.latency : timeout;
    if (duration > 0) await new Promise<void>((resolve) => clock.setTimeout(resolve, duration));
    for (const { claim } of renewals) this.#inFlight.set(claim, (this.#inFlight.get(claim) ?? 1) - 1);
    return renewals.map(({ claim, ttl }) =>
      answers
        ? (this.verdicts.get(claim) ?? { state: 'held', until: reliableUntil(sentAt, ttl) })
        : { state: 'unknown', cause: new Error('trouble') },
    );
  }

  async release(claim: Claim): Promise<Released> {
    this.released.push(claim);
    return 'released';
  }

  attempt(): Promise<Grant> {
    throw new Error('nobody acquires here');
  }

  wait(): Promise<Grant | undefined> {
    throw new Error('nobody waits here');
  }

  transfer(): Promise<Released> {
    throw new Error('nobody hands over here');
  }

  assertNames(): void {}

  async close(): Promise<void> {}
}
