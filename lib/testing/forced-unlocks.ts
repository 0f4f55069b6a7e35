import { clock } from '../internal/clock';

/** Owners whose lease was ended by force, so that they do not take that for an expiry. */
export class ForcedUnlocks {
  /** By owner: when the lease would have expired, in ms on the monotonic clock. */
  readonly #until = new Map<string, number>();

  /** Whether one of these leases would not have expired yet. */
  get isAnyLive(): boolean {
    this.#forgetExpired();
    return this.#until.size > 0;
  }

  note(owner: string, until: number): void {
    this.#forgetExpired();
    this.#until.set(owner, until);
  }

  has(owner: string): boolean {
    return this.#until.has(owner);
  }

  #forgetExpired(): void {
    for (const [owner, until] of this.#until) if (until <= clock.now()) this.#until.delete(owner);
  }
}
