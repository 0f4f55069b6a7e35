import { clock, MAX_DELAY } from '../../internal/clock';

/** ms; polls that are due within this time go together. */
const SLACK = 20;

/** A lock whose waiters poll. */
export interface Polled {
  poll(): void;
}

/** Polls for all waiting locks of a registry from one timer, so that their polls go to Redis together. */
export class PollTimer {
  readonly #due = new Map<Polled, number>();
  #timer: NodeJS.Timeout | undefined;
  #wakesAt = Number.POSITIVE_INFINITY;

  /** The next poll comes at this time on the monotonic clock at the latest. A later time never replaces an earlier one. */
  schedule(polled: Polled, at: number): void {
    if (at >= (this.#due.get(polled) ?? Number.POSITIVE_INFINITY)) return;
    this.#due.set(polled, at);
    this.#wakeBy(at);
  }

  /** Without waiters there is no timer: it would keep the process alive for up to a poll interval. */
  cancel(polled: Polled): void {
    if (!this.#due.delete(polled) || this.#due.size > 0) return;
    clock.clearTimeout(this.#timer);
    this.#wakesAt = Number.POSITIVE_INFINITY;
  }

  /** Leaves no timer behind. */
  close(): void {
    this.#due.clear();
    clock.clearTimeout(this.#timer);
  }

  #wakeBy(time: number): void {
    if (time >= this.#wakesAt) return;
    clock.clearTimeout(this.#timer);
    this.#wakesAt = time;
    this.#timer = clock.setTimeout(() => this.#tick(), Math.max(1, Math.min(time - clock.now(), MAX_DELAY)));
  }

  #tick(): void {
    this.#wakesAt = Number.POSITIVE_INFINITY;
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
    if (next < Number.POSITIVE_INFINITY) this.#wakeBy(next);
  }
}
