import { type WarningListener, warn } from '../api/warnings';
import { clock } from '../internal/clock';
import { WakeTimer } from '../internal/timers';
import type { RedisLease } from './lease';

/** When a lease began, and where it was asked for, if that is known. */
interface Begun {
  /** On the monotonic clock. */
  readonly at: number;
  readonly origin: { readonly stack?: string } | undefined;
}

/**
 * Warns once of every lease of a registry that is held for `warnHeldAfter`. One timer, which does not keep the process
 * alive.
 */
export class LongHolds {
  /** Those that were not warned of, in the order in which they began. */
  readonly #leases = new Map<RedisLease, Begun>();
  /** ms */
  readonly #warnAfter: number;
  readonly #onWarning: WarningListener;
  readonly #timer = new WakeTimer(() => this.#tick(), false);

  /** `warnAfter` in ms. */
  constructor(warnAfter: number, onWarning: WarningListener) {
    this.#warnAfter = warnAfter;
    this.#onWarning = onWarning;
  }

  add(lease: RedisLease, origin: Begun['origin']): void {
    const at = clock.now();
    this.#leases.set(lease, { at, origin });
    this.#timer.by(at + this.#warnAfter, at);
  }

  /** It was unlocked, or lost. */
  remove(lease: RedisLease): void {
    if (this.#leases.delete(lease) && this.#leases.size === 0) this.#timer.rest();
  }

  /** Leaves no timer behind. */
  close(): void {
    this.#leases.clear();
    this.#timer.cancel();
  }

  #tick(): void {
    const now = clock.now();
    for (const [lease, { at, origin }] of this.#leases) {
      if (at + this.#warnAfter > now) {
        this.#timer.by(at + this.#warnAfter, now);
        return;
      }
      this.#leases.delete(lease);
      this.#warn(lease, Math.round((now - at) / 1_000), origin?.stack);
    }
  }

  #warn({ key, owner, isRenewed }: RedisLease, seconds: number, stack: string | undefined): void {
    const end = isRenewed ? 'and it is renewed until it is unlocked' : 'and it ends with its ttl';
    const message = `This process has held lock "${key}" for ${seconds} s, ${end} (owner ${owner})`;
    warn(this.#onWarning, { code: 'LONG_HOLD', message, key, ...(stack === undefined ? {} : { stack }) });
  }
}
