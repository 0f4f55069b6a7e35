import { clock } from '../internal/clock';
import type { Keep } from '../protocols/min-hold/kept';

/** The time for which a lock stays taken, even if it is unlocked earlier. */
export class MinHold {
  /** On the monotonic clock. */
  #endsAt = Number.NEGATIVE_INFINITY;
  /** ms, from the acquisition. */
  #fromAcquisition = 0;

  /** It lasts for another `ms` at least. `age`: ms since the acquisition, or more. */
  extend(ms: number, age: number): void {
    this.#endsAt = Math.max(this.#endsAt, clock.now() + ms);
    this.#fromAcquisition = Math.max(this.#fromAcquisition, age + ms);
  }

  /** What is left of it, for a key that was given `ttl` ms; `undefined`: it is over. */
  keep(ttl: number): Keep | undefined {
    const left = Math.ceil(this.#endsAt - clock.now());
    return left > 0 ? { left, minHold: Math.ceil(this.#fromAcquisition), ttl } : undefined;
  }
}
