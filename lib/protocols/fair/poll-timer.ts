import { clock } from '../../internal/clock';
import { WakeTimer } from '../../internal/wake-timer';

/** ms; polls that are due within this time go together. */
const SLACK = 20;

/** A lock whose waiters poll. */
export interface Polled {
  poll(): void;
}

/** Polls for all waiting locks of a registry from one timer, so that their polls go to Redis together. */
export class PollTimer {
  readonly #due = new Map<Polled, number>();
  readonly #timer = new WakeTimer(() => this.#tick(), true);

  /**
   * The next poll comes at this time on the monotonic clock at the latest. A later time never replaces an earlier one.
   */
  schedule(polled: Polled, at: number): void {
    if (at >= (this.#due.get(polled) ?? Number.POSITIVE_INFINITY)) return;
    this.#due.set(polled, at);
    this.#timer.by(at);
  }

  /** Without waiters, the timer does not keep the process alive. The next one may come soon. */
  cancel(polled: Polled): void {
    if (this.#due.delete(polled) && this.#due.size === 0) this.#timer.rest();
  }

  /** Leaves no timer behind. */
  close(): void {
    this.#due.clear();
    this.#timer.cancel();
  }

  #tick(): void {
    const until = clock.now() + SLACK;
    let next = Number.POSITIVE_INFINITY;
    for (const [polled, at] of [...this.#due]) {
      if (at > until) {
        next = Math.min(next, at);
      } else {
        this.#due.delete(polled);
        polled.poll();
      }
    }
    this.#timer.by(next);
  }
}
