import { inWords, type WarningListener, warn } from '../api/warnings';
import { clock } from '../internal/clock';
import { WakeTimer } from '../internal/timers';
import type { InternalLease } from './internal-lease';

/** ms until a lease is looked at again of which Redis has been asked whether it is still held. */
const LOOK_AGAIN = 250;

/** What is looked at, and said, of a lease that is held for long. */
interface LongLease extends Pick<InternalLease, 'key' | 'owner' | 'remaining' | 'checkLost'> {
  /** It is renewed as long as it is held. */
  readonly renewUntil: number | undefined;
  readonly hold: { readonly failure: unknown };
}

/** When a lease began, and where it was asked for, if that is known. */
interface Begun {
  /** On the monotonic clock. */
  readonly at: number;
  /** When it is warned of next. */
  due: number;
  readonly origin: { readonly stack?: string } | undefined;
}

/**
 * Warns of every lease of a registry that is held for `warnHeldAfter`, and again when it is held for twice as long. One
 * timer, which does not keep the process alive.
 */
export class LongHolds {
  /** In the order in which they began. */
  readonly #leases = new Map<LongLease, Begun>();
  /** ms */
  readonly #warnAfter: number;
  readonly #onWarning: WarningListener;
  readonly #timer = new WakeTimer(() => this.#tick(), false);

  /** `warnAfter` in ms. */
  constructor(warnAfter: number, onWarning: WarningListener) {
    this.#warnAfter = warnAfter;
    this.#onWarning = onWarning;
  }

  add(lease: LongLease, origin: Begun['origin']): void {
    const at = clock.now();
    const due = at + this.#warnAfter;
    this.#leases.set(lease, { at, due, origin });
    this.#timer.by(due, at);
  }

  /** The lease was unlocked, or lost. */
  remove(lease: LongLease): void {
    this.#leases.delete(lease);
  }

  /** Leaves no timer behind. */
  close(): void {
    this.#leases.clear();
    this.#timer.close();
  }

  #tick(): void {
    const now = clock.now();
    for (const [lease, begun] of this.#leases) {
      const { at, origin } = begun;
      // After a pause of the process it may be over, and nobody has noticed it yet; or an answer says it in a moment.
      if (begun.due <= now && lease.checkLost()) continue;
      if (begun.due <= now && lease.remaining === 0) begun.due = now + LOOK_AGAIN;
      const { due } = begun;
      if (due <= now) begun.due = now + (now - at);
      this.#timer.by(begun.due, now);
      // The listener may close the registry, which leaves no timer behind.
      if (due <= now) this.#warn(lease, inWords(now - at), origin?.stack);
      // Leases behind it began later.
      if (due > now && due <= at + this.#warnAfter) return;
    }
  }

  #warn({ hold, key, owner, renewUntil }: LongLease, held: string, stack: string | undefined): void {
    const renewed =
      hold.failure === undefined ? 'and it is renewed until it is unlocked' : 'and its last renewal failed';
    const end = renewUntil === undefined ? renewed : 'and it ends with its ttl';
    const message = `This process has held lock "${key}" for ${held}, ${end} (owner ${owner})`;
    warn(this.#onWarning, { code: 'LONG_HOLD', message, key, ...(stack === undefined ? {} : { stack }) });
  }
}
